"""Package managers and what they start: the inner command is judged (facts 6.12)."""

from __future__ import annotations

import re

from cuggino.guard.commands.base import Call, plain_word
from cuggino.guard.commands.files import PROGRAMS
from cuggino.guard.commands.options import Syntax, parse_options, row_of
from cuggino.guard.commands.table import programs_of
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word

_PACKAGE = re.compile(r"@?[\w.-]+(?:/[\w.-]+)?(?:@[\w.^~*<>=-]+|==[\w.*]+|\[[\w,-]+\])*", re.ASCII)
SYSTEM = (
    programs_of("shells", "text", "wrappers", "containers")
    | frozenset(PROGRAMS)
    | frozenset(
        words(
            "sudo su doas ssh scp sftp nc ncat netcat socat telnet ftp"
            " kill killall pkill chmod reboot shutdown halt poweroff mount umount mkfs fdisk"
            " systemctl service launchctl crontab at osascript open xdg-open docker podman kubectl"
            " perl lua tclsh vi vim nano emacs ed ex less more man gdb eval source passwd useradd"
            " usermod chpasswd iptables find git python python3 node ruby php deno bun make gcc cc"
            " security defaults diskutil dscl twine chattr chflags setfacl setfattr xattr compress"
        )
    )
)


def inner(call: Call, words: tuple[Word, ...]) -> str:
    """Judge what a runner starts: a program of a package may be unlisted, others not."""
    if not words:
        return ""
    head = words[0]
    if head.value is None or head.has_glob:
        return call.site.judge(words, call.site)
    name = head.value.rpartition(":")[2] if call.name == "hatch" else head.value
    bare = re.sub(r"(?<=.)@.*|==.*", "", name)
    if bare in call.site.listed or bare in SYSTEM:
        return call.site.judge((plain_word(bare), *words[1:]), call.site)
    if "/" in name and not name.startswith("@"):
        is_script = re.search(r"\.(py|js|ts|mjs|cjs|tsx|jsx|rb|php)$", name)
        return "" if is_script else call.site.judge(words, call.site)
    if _PACKAGE.fullmatch(name):
        return ""
    return f"{call.name} must start a package by its plain name, not '{name}'"


_TABLE = """
uv: run||pmwC
poetry: run||CP
pdm: run||p
hatch rye pipenv symfony: run
bundle bundler yarnpkg: exec
conda: run||np
composer: exec||d
yarn: exec|dlx
pnpm: exec|dlx|CF
npm: |exec x|Cpwc
bun: |x
pipx: |run
tox: exec e||ec
mise: exec x||CEjc
"""
"""By package manager: verbs that start a program of the project, verbs that start a package, and
letters that take a value behind the former."""
_RUN = Syntax(
    "",
    words(
        "with python package module extra group env-file env name prefix with-requirements"
        " with-editable directory project index index-url gemfile cwd no-group only-group filter"
        " upgrade-package refresh command cd jobs working-dir"
    ),
    words(
        "no-sync frozen locked isolated no-project all-extras quiet dev no-dev active exact script"
        " all-groups live-stream no-capture-output keep-file-descriptors no-install-project"
    ),
    permutes=False,
)
_NPX = Syntax(
    "pw",
    words(
        "package call from with python spec index-url node-options shell registry cache workspace"
        " prefix userconfig script-shell with-requirements with-editable index pip-args env-file"
    ),
    words("yes no no-install quiet bun isolated silent"),
    permutes=False,
)


def npx(call: Call) -> str:
    """Judge the program that `npx`, `bunx`, `uvx` or `pipx run` starts."""
    short = "pcn" if call.name in ("npx", "npm") else "pw"
    given = parse_options(call.args, _NPX._replace(short=short))
    if given.has("--shell", "--script-shell", "--node-options", "-n", "--userconfig"):
        return f"{call.name} must not be told how to start programs: leave that option out"
    return _code(call, given.values("-c", "--call")) or inner(call, given.operands)


def _run(call: Call, words: tuple[Word, ...], short: str) -> str:
    """Judge the command of `uv run`, `poetry run`, `bundle exec` and similar ones."""
    given = parse_options(words, _RUN._replace(short=short))
    if given.has("-m", "--module") and call.name == "uv":
        return ""
    codes = given.values("-c", "--command") if call.name == "mise" else []
    return _code(call, codes) or inner(call, given.operands)


def _code(call: Call, codes: list[Word]) -> str:
    for code in codes:
        if code.value is None:
            return f"Cannot tell what {call.name} -c runs: write the command literally"
        if reason := call.site.judge_text(code.value, call.site):
            return reason
    return ""


def _after(call: Call, verb: str) -> tuple[Word, ...] | None:
    """Return the words after a subcommand, or None if it is another one.

    The word after an option may be its value.
    """
    may_be_value = False
    for index, word in enumerate(call.args):
        start = word.value if word.value is not None else word.prefix
        if word.value == verb:
            return call.args[index + 1 :]
        if not start.startswith("-") and not may_be_value:
            return None
        may_be_value = start.startswith("-") and "=" not in start
    return None


_OWN_WORDS = frozenset(words("env exec install ln node patch rm unlink"))
"""Subcommands of package managers that are also names of system programs."""

_SCRIPT_NAMES = frozenset(words("watch open compress service patch time date sort split batch"))
"""Names of project scripts that harmless programs have, too."""


def manager(call: Call) -> str:
    """Judge what a package manager starts."""
    runs, starts, short, *_ = row_of(_TABLE, call.name) or [""] * 3
    for verb in words(runs):
        if (after := _after(call, verb)) is not None:
            return _run(call, after, short)
    for verb in words(starts):
        if (after := _after(call, verb)) is not None:
            return npx(call._replace(args=after))
    if call.name == "uv" and (after := _after(call, "tool")) and after[0].value == "run":
        return npx(call._replace(args=after[1:]))
    if call.name not in ("pnpm", "yarn", "bun"):
        return ""
    syntax = Syntax("CwF", ("dir", "cwd", "filter", "prefix"), permutes=False)
    operands = parse_options(call.args, syntax).operands
    if len(operands) > 2 and operands[0].value == "workspace":
        operands = operands[2:]
    is_run = len(operands) > 1 and operands[0].value in ("run", "exec")
    operands = operands[is_run:]
    system = SYSTEM - _SCRIPT_NAMES - (frozenset() if is_run else _OWN_WORDS)
    return inner(call, operands) if operands and operands[0].value in system else ""


def rustup(call: Call) -> str:
    """Judge the command of `rustup run TOOLCHAIN COMMAND`."""
    args = tuple(word for word in call.args if not (word.value or "").startswith("+"))
    words = _after(call._replace(args=args), "run")
    started = parse_options(words or (), Syntax(permutes=False)).operands[1:]
    return call.site.judge(started, call.site) if started else ""


def go(call: Call) -> str:
    """Judge the programs of `-exec` and `-toolexec`."""
    for word, after in zip(call.args, (*call.args[1:], plain_word("")), strict=True):
        name, equals, value = (word.value or "").partition("=")
        if name.lstrip("-") not in ("exec", "toolexec") or not name.startswith("-"):
            continue
        text = value if equals else after.value
        if text is None:
            return f"Cannot tell what go {name} starts: write it literally"
        started = tuple(map(plain_word, (*text.split(), "x")))
        if reason := call.site.judge(started, call.site):
            return reason
    return ""
