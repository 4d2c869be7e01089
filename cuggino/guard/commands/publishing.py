"""Publishing, deploying, and uses of package managers beyond the project."""

from __future__ import annotations

import itertools
import re

from cuggino.guard.commands.base import Call, first
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word

_PUBLISHES: dict[str, frozenset[str]] = {
    "npm": frozenset(
        words(
            "publish unpublish deprecate login logout adduser add-user token owner access"
            " dist-tag dist-tags team org profile hook star unstar set edit explore config c"
        )
    ),
    "pnpm": frozenset(words("publish login logout config self-update env setup")),
    "yarn": frozenset(words("publish login logout owner team tag config global")),
    "bun": frozenset(["publish", "upgrade"]),
    "deno": frozenset(["publish", "upgrade"]),
    "uv": frozenset(["publish", "self", "auth"]),
    "poetry": frozenset(["publish", "config", "self"]),
    "pdm": frozenset(["publish", "self", "config", "plugin"]),
    "hatch": frozenset(["publish", "self"]),
    "flit": frozenset(["publish"]),
    "gem": frozenset(["push", "yank", "owner", "signin", "signout"]),
    "cargo": frozenset(words("publish login logout yank owner install uninstall")),
    "composer": frozenset(["global", "self-update", "selfupdate"]),
    "goreleaser": frozenset(["release", "publish", "announce"]),
    "pipx": frozenset(words("install inject upgrade-all reinstall-all uninstall ensurepath")),
    "rustup": frozenset(["self"]),
    "conda": frozenset(["config", "init"]),
    "pip": frozenset(["config"]),
    "pip3": frozenset(["config"]),
}
_SENDS: dict[str, frozenset[str]] = {
    "npm": frozenset(words("publish unpublish deprecate owner access dist-tag dist-tags")),
    **dict.fromkeys(("pnpm", "bun", "deno", "uv", "pdm", "hatch", "flit", "poetry", "vsce", "ovsx"),
                    frozenset(["publish"])),
    "yarn": frozenset(["publish", "npm publish"]),
    "cargo": frozenset(words("publish yank owner")),
    "gem": frozenset(words("push yank owner")),
    "twine": frozenset(["upload"]),
    "goreleaser": frozenset(words("release publish announce")),
    **dict.fromkeys(("docker", "podman"), frozenset(["push", "image push", "compose push",
                                                     "manifest push", "buildx push"])),
    "helm": frozenset(words("push install upgrade uninstall rollback delete")),
    **dict.fromkeys(("mvn", "mvnw"), frozenset(["deploy"])),
    **dict.fromkeys(("gradle", "gradlew"), frozenset(["publish"])),
    "dotnet": frozenset(["nuget push"]),
    **dict.fromkeys(("kubectl", "oc"), frozenset(words(
        "apply delete create replace patch scale edit drain cordon taint set annotate label"
        " rollout expose run"))),
    **dict.fromkeys(("terraform", "tofu", "pulumi", "cdk"),
                    frozenset(words("apply destroy import up deploy"))),
    **dict.fromkeys(
        words("vercel netlify fly flyctl firebase wrangler serverless sls heroku"),
        frozenset(words("deploy publish remove destroy delete")),
    ),
}  # fmt: skip
"""Subcommands that publish, deploy, or change remote resources."""
_GH_READS = frozenset(
    words(
        "view list status diff checks checkout download clone watch search get show verify develop"
        " help repos issues prs commits code"
    )
)
_GH_LOCAL = frozenset(words("help status search browse completion version alias config"))
SENDERS = frozenset((*_SENDS, "gh", "glab"))
_READS = frozenset(words("get list ls --get --list -l"))
_GLOBAL = re.compile(r"-g|--global|--location=global|--location|-[a-zA-Z]*g")
_CONDA_PLACES = ("-p", "--prefix")


def sending_reason(call: Call) -> str:
    """Return why the program must not publish or change anything beyond this machine, or ""."""
    if call.name not in SENDERS or call.site.is_destructive:
        return ""
    texts = [word.value if word.value is not None else word.text for word in call.args]
    if any(text.startswith(("--dry-run", "--help", "--snapshot")) for text in texts):
        return ""
    if not _READS.isdisjoint(texts[1:2]):
        return ""
    verbs = [text for text in texts if not text.startswith("-")]
    if call.name in ("gh", "glab"):
        told = _github(verbs, texts)
    else:
        # The first word may be the value of an option before the subcommand.
        found = [*verbs[:1], " ".join(verbs[:2]), *(verbs[1:2] if texts[:1] != verbs[:1] else ())]
        told = next((verb for verb in found if verb in _SENDS[call.name]), "")
        if call.name in ("docker", "podman") and "--push" in texts:
            told = "--push"
    if not told:
        return ""
    return (
        f"{call.name} {told} is not allowed: it reaches beyond this machine, which a person"
        " decides; allowDestructive allows it"
    )


def _github(verbs: list[str], texts: list[str]) -> str:
    if verbs[:1] == ["api"]:
        writes = re.compile(r"-[XfF].*|--(method|field|raw-field|input)(=.*)?")
        given = [text for text in texts if writes.fullmatch(text)]
        is_query = "graphql" in verbs and not any("mutation" in text for text in texts)
        return "api" if given and not is_query and not {"GET", "-XGET"} & set(texts) else ""
    if len(verbs) < 2 or verbs[0] in _GH_LOCAL or verbs[1] in _GH_READS:
        return ""
    return " ".join(verbs[:2])


def habits_reason(call: Call) -> str:
    """Return why level `full` denies a use of a package manager, or ""."""
    words = [word.value if word.value is not None else word.prefix for word in call.args]
    operands = [word for word in words if not word.startswith("-")]
    verb = operands[0] if operands else ""
    # Words after `--` are arguments of the script.
    own = words[: words.index("--")] if "--" in words else words
    if verb in _PUBLISHES.get(call.name, ()):
        reads = any(word in _READS for word in words) and verb in ("config", "c", "dist-tag")
        if not reads and not (verb == "release" and "--snapshot" in words):
            return _no(call, verb, "it reaches beyond the project")
    if call.name == "yarn" and operands[:2] in (["npm", "publish"], ["npm", "login"]):
        return _no(call, "npm publish", "it reaches beyond the project")
    if call.name == "uv" and operands[:1] == ["tool"] and operands[1:2] not in (["run"], ["list"]):
        return _no(call, "tool install", "it installs for all projects: add it to this one")
    if (
        call.name in ("npm", "pnpm", "bun", "deno")
        and verb in _INSTALLS
        and any(_GLOBAL.fullmatch(word) for word in own)
    ):
        return _no(call, "-g", "it installs for all projects: add it to this one")
    if call.name in ("npm", "npx", "pnpm", "yarn"):
        for word in own:
            if re.match(r"--(script-shell|node-options|globalconfig|userconfig|init-module)", word):
                return _no(call, word, "it decides which programs are started")
    return _pip(call, own, operands) or _compilers(call, own, operands)


_INSTALLS = frozenset(
    words("install i add ci update up upgrade uninstall remove rm un link ln in r")
)


def _pip(call: Call, own: list[str], operands: list[str]) -> str:
    is_pip = call.name in ("pip", "pip3") or (call.name == "uv" and operands[:1] == ["pip"])
    if call.name.startswith("python") and "-m" in own and own.index("-m") + 1 < len(own):
        is_pip = own[own.index("-m") + 1] == "pip"
        own = own[own.index("-m") + 2 :]
        if is_pip and "config" in own[:1]:
            return _no(call, "config", "it changes settings of the user")
    if is_pip:
        for index, word in enumerate(own):
            name, equals, value = word.partition("=")
            if name in ("--user", "--root", "--python") and call.name != "uv":
                return _no(call, name, "it installs outside the project's environment")
            if name in ("--target", "-t", "--prefix", "--src", "-d", "--dest"):
                place = value if equals else own[index + 1] if index + 1 < len(own) else ""
                if reason := call.site.write(Word(place, place or None)):
                    return reason
    if call.name == "conda":
        own = [part for word in own for part in word.split("=", 1)]
        pairs = itertools.pairwise(own)
        places = (place for option, place in pairs if option in _CONDA_PLACES)
        return first(call.site.write(Word(place, place or None)) for place in places)
    return ""


def _compilers(call: Call, own: list[str], operands: list[str]) -> str:
    if call.name == "go":
        if operands[:1] == ["env"] and ("-w" in own or "-u" in own):
            return _no(call, "env -w", "it changes settings of the user")
        for word in own:
            if re.match(r"--?(toolexec|exec|vettool|overlay)(=|$)", word):
                return _no(call, word, "it starts another program")
    if call.name == "cargo":
        for word in own:
            if word.startswith("--config"):
                return _no(call, "--config", "it decides which programs are started")
    watches = call.name == "cargo-watch" or (call.name == "cargo" and "watch" in own)
    if watches and any(re.fullmatch(r"-s|--shell(=.*)?", word) for word in own):
        return _no(call, "-s", "it runs a text: use -x with a command of cargo")
    if call.name == "deno":
        for word in own:
            if word.startswith("--allow-run"):
                return _no(call, word, "it lets the script start other programs")
    if call.name == "rustup" and operands[:1] == ["run"]:
        return _no(call, "run", "call the program directly")
    return ""


def _no(call: Call, what: str, why: str) -> str:
    return f"{call.name} {what} is not allowed: {why}"
