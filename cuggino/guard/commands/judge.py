"""Level `full`: the rules for one simple command, also when another command starts it."""

from __future__ import annotations

import re

from cuggino.guard.commands.artefacts import is_artefact
from cuggino.guard.commands.base import Call, Site, first
from cuggino.guard.commands.names import program
from cuggino.guard.commands.outputs import QUIET, outputs_reason
from cuggino.guard.commands.publishing import habits_reason, sending_reason
from cuggino.guard.commands.table import is_tool, judges_of, programs_of
from cuggino.guard.profiles import DESTRUCTIVE
from cuggino.guard.shell.tree import Word

_HERE = re.compile(r"^\$(\(pwd\)|\{?PWD\}?)/")
_SCRATCH = re.compile(r"\$\{?\w*(tmp|temp)\w*\}?(/[^$]*)?", re.IGNORECASE)
_HINTS = {
    "sed": "use the Edit tool to change files, or grep and cut to print",
    "awk": "use cut, grep, sort and jq",
    "rg": "use grep -rn",
    "fd": "use find",
    "touch": "write the file with the Write tool, or with ': > FILE'",
    "tee": "redirect into a file of the project",
    "curl": "use the project's own client or tests",
    "wget": "use the project's own client or tests",
    "make": "run what the Makefile runs directly",
    "rm": "leave the file, or empty it; destructive commands have to be allowed by the user",
    "mv": "write the new file; destructive commands have to be allowed by the user",
    "kill": "use pkill with the name of a dev process, or add the profile extended",
    "killall": "use pkill with the name of a dev process",
    "stat": "use ls -l",
    "du": "use ls -l",
    "realpath": "use ls",
    "less": "use cat, head or tail",
    "vim": "use the Edit tool",
    "nano": "use the Edit tool",
}


def judge(words: tuple[Word, ...], site: Site) -> str:
    """Return why the command is denied, or "" (AUT-164 to AUT-219)."""
    if not words:
        return ""
    found = program(words[0], site)
    if found.reason:
        return found.reason
    name = found.name
    if not name:
        return "" if len(words) == 1 else "The name of the command is empty: leave the quotes out"
    if found.is_dev_script:
        return "" if len(words) == 1 else "bin/dev.sh does not accept arguments"
    if found.is_script:
        return outputs_reason(Call(name, words[1:], site))
    if name not in site.listed and not _removes_artefacts(name, words[1:], site):
        return _unlisted(name, words[0], site)
    if name in DESTRUCTIVE and not site.policy.project:
        return "Destructive commands require projectDir to be set"
    call = Call(name, words[1:], site)
    if reason := first(judge(call) for judge in judges_of(name)):
        return reason
    if not is_tool(name) or name in QUIET:
        return sending_reason(call)
    return sending_reason(call) or habits_reason(call) or outputs_reason(call)


def _removes_artefacts(name: str, args: tuple[Word, ...], site: Site) -> bool:
    """Return whether it only removes what builds and tests make, which `extended` allows."""
    if name != "rm" or not site.is_open or site.policy.mode == "sync":
        return False
    files = [word for word in args if not (word.value or word.prefix).startswith("-")]
    return bool(files) and all(map(_is_artefact, files))


def _is_artefact(word: Word) -> bool:
    text = word.value if word.value is not None else _HERE.sub("", word.text.strip('"'))
    is_scratch = text.startswith("/tmp/") or _SCRATCH.fullmatch(text) is not None
    return is_scratch or ("$" not in text and is_artefact(text))


def _unlisted(name: str, word: Word, site: Site) -> str:
    reason = f"Command '{name}' is not in the allowlist"
    if name in DESTRUCTIVE and site.policy.mode == "run":
        return f"{reason}: {_HINTS[name]}"
    if name in programs_of("shells") or name in ("alias", "enable", "coproc"):
        return f"{reason}: write the commands themselves"
    return f"{reason}: {_HINTS.get(name, 'use a listed program, or the tools for files')}"
