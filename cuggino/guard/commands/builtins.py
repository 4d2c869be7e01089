"""Bash's own commands, as far as they change variables, options or what names mean."""

from __future__ import annotations

import re

from cuggino.guard.commands.assignments import assignment_reason
from cuggino.guard.commands.base import Call, Judge, first
from cuggino.guard.commands.options import Parsed, Syntax, parse_options
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word

HIDES_COMMAND = re.compile(r"\[[^\]]*(?:\$[({]|`)")
"""An index in which arithmetic would run a command: `a[$(x)]`."""

_PLACE = re.compile(r"([A-Za-z_]\w*)(\[[\w@*\"' +-]*\])?", re.ASCII)
_SET_LETTERS = re.compile(r"[-+][euxvfCETambhn]+")
_SET_NAMES = frozenset(
    words(
        "allexport errexit errtrace functrace noclobber noglob nounset pipefail verbose"
        " xtrace monitor notify nolog noexec hashall"
    )
)
_SHOPT = frozenset(words("globstar nullglob failglob nocasematch inherit_errexit checkwinsize"))


def variables(call: Call, words: tuple[Word, ...]) -> str:
    """Return why a word may not be the name of an assigned variable."""
    for word in words:
        place = _PLACE.fullmatch(word.value or "")
        if place is None:
            return f"{call.name} must be given the plain name of a variable, not '{word.text}'"
        if reason := assignment_reason(place[1], None, call.site.policy):
            is_ifs = place[1] == "IFS"
            return reason if not is_ifs else "IFS must not be read or changed so"
    return ""


def read(call: Call) -> str:
    """Judge the variables that `read` assigns."""
    given = parse_options(call.args, Syntax("adinNptu", permutes=False))
    return variables(call, (*given.operands, *given.values("-a")))


def mapfile(call: Call) -> str:
    """Judge the variable of `mapfile`; deny `-C`, which runs a text."""
    given = parse_options(call.args, Syntax("dnOsuCc", permutes=False))
    if given.has("-C"):
        return f"{call.name} must not run a text: leave -C out"
    return variables(call, given.operands)


def printf(call: Call) -> str:
    """Judge the variable of `printf -v`."""
    first_word = call.args[0] if call.args else None
    if first_word is None:
        return ""
    start = first_word.value if first_word.value is not None else first_word.prefix
    if not start.startswith("-v"):
        if first_word.value is None and not first_word.prefix and not first_word.is_quoted:
            return "It cannot be told what printf does: write its format out"
        return ""
    if first_word.value == "-v":
        return variables(call, call.args[1:2])
    return variables(call, (Word(first_word.text, start[2:] if first_word.value else None),))


def unset(call: Call) -> str:
    """Judge the variables that `unset` removes."""
    given = parse_options(call.args, Syntax(permutes=False))
    if given.has("-f"):
        return variables(call._replace(name="unset -f"), given.operands)
    return variables(call, given.operands)


def names(call: Call) -> str:
    """Judge the variable of `getopts`."""
    return variables(call, call.args[1:2])


def wait(call: Call) -> str:
    """Deny `wait -p`, which assigns a variable."""
    if any((word.value or word.prefix).startswith("-") and "p" in word.text for word in call.args):
        return "wait must not set a variable: leave -p out"
    return ""


def jobs(call: Call) -> str:
    """Deny `jobs -x`, which runs a command."""
    for word in call.args:
        start = word.value if word.value is not None else word.prefix
        if (start.startswith("-") and "x" in start) or (word.value is None and not start):
            return "jobs must only list: start the command directly, without jobs -x"
    return ""


def set_(call: Call) -> str:
    """Allow the usual options of `set` and positional parameters."""
    args = list(call.args)
    while args:
        word = args.pop(0)
        if word.value in ("--", "-"):
            return ""
        if word.value is None:
            return "It cannot be told which options set changes: put '--' before the words"
        if not word.value.startswith(("-", "+")):
            return ""
        if word.value.endswith("o") and re.fullmatch(r"[-+][euxvfCETambhn]*o", word.value):
            option = args.pop(0) if args else None
            if option is not None and option.value not in _SET_NAMES:
                return f"set must not change '{option.text}': it changes how commands are read"
        elif not _SET_LETTERS.fullmatch(word.value):
            return f"set must not be given '{word.value}': it changes how commands are read"
    return ""


def shopt(call: Call) -> str:
    """Allow options of `shopt` that do not change parsing."""
    for word in call.args:
        if word.value not in _SHOPT and word.value not in ("-s", "-u", "-q", "-p"):
            return f"shopt must not change '{word.text}': it changes how commands are read"
    return ""


def hash_(call: Call) -> str:
    """Allow `hash -r` only."""
    if all(word.value == "-r" for word in call.args):
        return ""
    return "hash must not give names to programs: call them directly"


def test(call: Call) -> str:
    """Deny an index that runs a command, and an unknown name."""
    args = call.args
    for index, word in enumerate(args):
        if word.value is not None and HIDES_COMMAND.search(word.value):
            return f"'{word.text}' would run a command when it is tested: write it otherwise"
        if word.value in ("-v", "-R") and index + 1 < len(args):
            after = args[index + 1]
            if after.value is None:
                return f"It cannot be told which variable '{after.text}' is: write its name out"
    return ""


def declare(call: Call) -> str:
    """Options of `declare`, `local`, `export`; the assignments are judged as such."""
    given: Parsed = parse_options(call.args, Syntax())
    if call.name in ("declare", "typeset", "local") and given.has("-n"):
        return f"{call.name} -n gives a second name to a variable: use the variable itself"
    if any(re.fullmatch(r"[-+][a-zA-Z]*i[a-zA-Z]*", word.text) for word in call.args):
        return f"{call.name} -i calculates whatever is assigned later: use $((...)) instead"
    if given.unclear and call.name not in ("local", "readonly") and not call.site.is_open:
        return (
            f"It cannot be told which variables '{given.unclear[0].text}' sets: write the names"
            " and values out"
        )
    for word in given.operands:
        text = word.value if word.value is not None else word.prefix
        name, equals, value = text.partition("=")
        if equals:
            known = value if word.value is not None else None
            if reason := assignment_reason(name.rstrip("+"), known, call.site.policy):
                return reason
        elif word.value is not None and not _PLACE.fullmatch(word.value):
            return f"{call.name} must be given the plain name of a variable, not '{word.text}'"
    return ""


def never(call: Call) -> str:
    """Deny builtins that change the meaning of names, or load code into bash."""
    if call.name in ("alias",) and not call.args:
        return ""
    return (
        f"Command '{call.name}' is not in the allowlist: it changes what later names mean, or runs"
        " a text; write the commands themselves"
    )


def arithmetic_reason(words: tuple[Word, ...]) -> str:
    """Return why `(( ))` or `let` would run a command in quoted text."""
    return first(
        f"'{word.text}' would run a command when it is calculated: write it otherwise"
        for word in words
        if word.value is not None and re.search(r"\$\(|`", word.value)
    )


JUDGES: dict[str, Judge] = {
    "read": read,
    "mapfile": mapfile,
    "readarray": mapfile,
    "printf": printf,
    "unset": unset,
    "getopts": names,
    "wait": wait,
    "jobs": jobs,
    "set": set_,
    "shopt": shopt,
    "hash": hash_,
    "test": test,
    "[": test,
    **dict.fromkeys(("declare", "typeset", "local", "export", "readonly"), declare),
    **dict.fromkeys(
        ("alias", "enable", "compgen", "complete", "compopt", "bind", "fc", "coproc", "zmodload",
         "emulate", "zargs", "setopt", "autoload", "noglob", "nocorrect"), never),
}  # fmt: skip
