"""Publishing, deploying, and uses of package managers beyond the project, as a table."""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

from cuggino.guard.commands.base import Call, first
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word


class _Verbs(NamedTuple):
    """Subcommands of a program."""

    sends: tuple[str, ...] = ()
    """Those that publish, deploy, or change remote resources: denied at each level."""
    reaches: tuple[str, ...] = ()
    """Those that change something else beyond the project: denied at level `full`."""


def _verbs(sends: str, reaches: str = "") -> _Verbs:
    """Return a row; `_` stands for a blank."""
    return _Verbs(*(tuple(verb.replace("_", " ") for verb in words(t)) for t in (sends, reaches)))


_PUBLISH = _verbs("publish")
_REMOTE = "apply delete create replace patch scale edit drain cordon taint set annotate label"
_TABLE: dict[str, _Verbs] = {
    "npm": _verbs(
        "publish unpublish deprecate owner access dist-tag dist-tags",
        "login logout adduser add-user token team org profile hook star unstar set edit explore"
        " config c",
    ),
    "pnpm": _verbs("publish", "login logout config self-update env setup"),
    "yarn": _verbs("publish npm_publish", "login logout owner team tag config global npm_login"),
    **dict.fromkeys(("bun", "deno"), _verbs("publish", "upgrade")),
    "uv": _verbs("publish", "self auth"),
    "poetry": _verbs("publish", "config self"),
    "pdm": _verbs("publish", "self config plugin"),
    "hatch": _verbs("publish", "self"),
    **dict.fromkeys(("flit", "vsce", "ovsx", "gradle", "gradlew"), _PUBLISH),
    "gem": _verbs("push yank owner", "signin signout"),
    "cargo": _verbs("publish yank owner", "login logout install uninstall"),
    "composer": _verbs("", "global self-update selfupdate"),
    "goreleaser": _verbs("release publish announce"),
    "pipx": _verbs("", "install inject upgrade-all reinstall-all uninstall ensurepath"),
    "rustup": _verbs("", "self run"),
    "conda": _verbs("", "config init"),
    **dict.fromkeys(("pip", "pip3"), _verbs("", "config")),
    "twine": _verbs("upload"),
    **dict.fromkeys(
        ("docker", "podman"), _verbs("push image_push compose_push manifest_push buildx_push")
    ),
    "helm": _verbs("push install upgrade uninstall rollback delete"),
    **dict.fromkeys(("mvn", "mvnw"), _verbs("deploy")),
    "dotnet": _verbs("nuget_push"),
    **dict.fromkeys(("kubectl", "oc"), _verbs(f"{_REMOTE} rollout expose run")),
    **dict.fromkeys(words("terraform tofu pulumi cdk"), _verbs("apply destroy import up deploy")),
    **dict.fromkeys(
        words("vercel netlify fly flyctl firebase wrangler serverless sls heroku"),
        _verbs("deploy publish remove destroy delete"),
    ),
}
_GH_READS = frozenset(
    words(
        "view list status diff checks checkout download clone watch search get show verify develop"
        " help repos issues prs commits code"
    )
)
_GH_LOCAL = frozenset(words("help status search browse completion version alias config"))
SENDERS = frozenset((*(name for name, verbs in _TABLE.items() if verbs.sends), "gh", "glab"))
_MANAGERS = frozenset(words("npm pnpm yarn bun deno uv poetry pdm hatch flit gem cargo goreleaser"))
"""Programs that publish at level `full` in no case."""
_READS = frozenset(words("get list ls --get --list -l"))
_GLOBAL = r"-g|--global|--location=global|--location|-[a-zA-Z]*g"
_PIP = words("--target -t --prefix --src -d --dest")
_CONDA = ("-p", "--prefix")
_INSTALLS = frozenset(
    words("install i add ci update up upgrade uninstall remove rm un link ln in r")
)
_STARTS = {
    **dict.fromkeys(
        words("npm npx pnpm yarn"),
        r"--(script-shell|node-options|globalconfig|userconfig|init-module)",
    ),
    "go": r"--?(toolexec|exec|vettool|overlay)(=|$)",
    "cargo": "--config",
    "deno": "--allow-run",
}
"""Options that decide which programs are started."""


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
        sent = _github(verbs, texts)
    else:
        # The first word may be the value of an option before the subcommand.
        found = [*verbs[:1], " ".join(verbs[:2]), *(verbs[1:2] if texts[:1] != verbs[:1] else ())]
        sent = next((verb for verb in found if verb in _TABLE[call.name].sends), "")
        if call.name in ("docker", "podman") and "--push" in texts:
            sent = "--push"
    if not sent:
        return ""
    return (
        f"{call.name} {sent} is not allowed: it reaches beyond this machine, which the user"
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
    texts = [word.value if word.value is not None else word.prefix for word in call.args]
    operands = [text for text in texts if not text.startswith("-")]
    verb = operands[0] if operands else ""
    # Words after `--` are arguments of the script.
    own = texts[: texts.index("--")] if "--" in texts else texts
    row = _TABLE.get(call.name, _Verbs())
    denied = {*row.reaches, *(row.sends if call.name in _MANAGERS else ())}
    if not denied.isdisjoint((verb, " ".join(operands[:2]))):
        reads = any(text in _READS for text in texts) and verb in ("config", "c", "dist-tag")
        if not reads and not (verb == "release" and "--snapshot" in texts):
            return _no(call, verb, "it reaches beyond the project")
    if call.name == "uv" and operands[:1] == ["tool"] and operands[1:2] not in (["run"], ["list"]):
        return _no(call, "tool install", "it installs for all projects: add it to this one")
    is_global = any(re.fullmatch(_GLOBAL, text) for text in own)
    if is_global and verb in _INSTALLS and call.name in ("npm", "pnpm", "bun", "deno"):
        return _no(call, "-g", "it installs for all projects: add it to this one")
    if pattern := _STARTS.get(call.name):
        for text in own:
            if re.match(pattern, text):
                return _no(call, text, "it decides which programs are started")
    if call.name == "go" and verb == "env" and not {"-w", "-u"}.isdisjoint(own):
        return _no(call, "env -w", "it changes settings of the user")
    watches = call.name == "cargo-watch" or (call.name == "cargo" and "watch" in own)
    if watches and any(re.fullmatch(r"-s|--shell(=.*)?", text) for text in own):
        return _no(call, "-s", "it runs a text: use -x with a command of cargo")
    return _pip(call, own, operands)


def _pip(call: Call, own: list[str], operands: list[str]) -> str:
    """Judge where `pip` and `conda` install."""
    is_pip = call.name in ("pip", "pip3") or (call.name == "uv" and operands[:1] == ["pip"])
    if call.name.startswith("python") and "-m" in own:
        own = own[own.index("-m") + 1 :]
        is_pip = own[:1] == ["pip"]
        if is_pip and own[1:2] == ["config"]:
            return _no(call, "config", "it changes settings of the user")
    if call.name == "uv" and operands[:1] == ["venv"]:
        return first(call.site.write(Word(place, place or None)) for place in operands[1:])
    names = {text.partition("=")[0] for text in own}
    outside = sorted(names & {"--user", "--root", "--python"})
    if is_pip and outside and call.name != "uv":
        return _no(call, outside[0], "it installs outside the project's environment")
    options = _PIP if is_pip else _CONDA if call.name == "conda" else ()
    pairs = itertools.pairwise(part for text in own for part in text.split("=", 1))
    places = (place for option, place in pairs if option in options)
    return first(call.site.write(Word(place, place or None)) for place in places)


def _no(call: Call, what: str, why: str) -> str:
    return f"{call.name} {what} is not allowed: {why}"
