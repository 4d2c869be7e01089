"""The judgement of one simple command, whatever starts it."""

from __future__ import annotations

from cuggino.guard.commands.base import Call, Site, first
from cuggino.guard.commands.names import program
from cuggino.guard.commands.table import KNOWN, is_tool, judges_of, known_name
from cuggino.guard.commands.wordlist import words as names
from cuggino.guard.profiles import DESTRUCTIVE
from cuggino.guard.shell.tree import Word

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
    "kill": "use pkill with the name of a dev process",
    "killall": "use pkill with the name of a dev process",
    "stat": "use ls -l",
    "du": "use ls -l",
    "realpath": "use ls",
    "less": "use cat, head or tail",
    "vim": "use the Edit tool",
    "nano": "use the Edit tool",
}


def judge(words: tuple[Word, ...], site: Site) -> str:
    """Why the command must not be run; empty when it may (AUT-164 to AUT-219)."""
    if not words:
        return ""
    found = program(words[0], site)
    if found.reason:
        if site.is_lenient and words[0].value is None:
            from cuggino.guard.commands.leniency import dynamic_program

            return dynamic_program(words, site, found.reason)
        return found.reason
    name = found.name
    if not name:
        return "" if len(words) == 1 else "The name of the command is empty: leave the quotes out"
    if found.is_dev_script:
        return "" if len(words) == 1 else "bin/dev.sh does not accept arguments"
    if site.is_full and name not in site.listed:
        return _unlisted(name, words[0], site)
    if site.is_full and name in DESTRUCTIVE and not site.policy.project:
        return "Destructive commands require projectDir to be set"
    name = known_name(name)
    call = Call(name, words[1:], site)
    if reason := first(judge(call) for judge in judges_of(name)):
        return reason
    return _as_tool(call) if is_tool(name) and name not in _QUIET else ""


def _as_tool(call: Call) -> str:
    from cuggino.guard.commands.outputs import outputs_reason
    from cuggino.guard.commands.publishing import habits_reason

    return (habits_reason(call) if call.site.is_full else "") or outputs_reason(call)


_QUIET = frozenset(
    names(
        "ls pwd cat head tail wc grep diff cut tr tac which ps lsof echo sleep cd true false"
        " : exit return break continue shift type times jobs disown umask let dirs pushd popd"
        " egrep fgrep npx bunx uvx pnpx"
    )
)
"""They write nothing, whatever their options look like."""


def _unlisted(name: str, word: Word, site: Site) -> str:
    reason = f"Command '{name}' is not in the allowlist"
    if name in DESTRUCTIVE and site.policy.mode == "run":
        return f"{reason}: {_HINTS[name]}"
    if "shells" in KNOWN.get(name, ()) or name in ("alias", "enable", "coproc"):
        return f"{reason}: write the commands themselves"
    return f"{reason}: {_HINTS.get(name, 'use a listed program, or the tools for files')}"
