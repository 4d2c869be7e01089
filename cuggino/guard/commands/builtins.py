"""Bash's own commands, as far as they change variables, options or what names mean."""

from __future__ import annotations

import re
from typing import NamedTuple

from cuggino.guard.commands.base import Call
from cuggino.guard.commands.options import Syntax, parse_options
from cuggino.guard.commands.variables import HIDES_COMMAND, assignment_reason
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word

_PLACE = re.compile(r"([A-Za-z_]\w*)(\[[\w@*\"' +-]*\])?", re.ASCII)
_SET_NAMES = frozenset(
    words(
        "allexport errexit errtrace functrace noclobber noglob nounset pipefail verbose xtrace"
        " monitor notify nolog noexec hashall"
    )
)


class _Builtin(NamedTuple):
    """The arguments of a builtin."""

    short: str = ""
    """Letters of options with a value."""
    names: bool = True
    """True if its operands are names of variables."""
    never: str = ""
    """Letters that are denied, wherever they are in an option."""
    only: str = ""
    """A pattern of all words that are allowed."""
    why: str = ""


_READING = "it changes how commands are read"
_BUILTINS: dict[str, _Builtin] = {
    "read": _Builtin("adinNptu"),
    **dict.fromkeys(
        ("mapfile", "readarray"), _Builtin("dnOsuc", never="C", why="it runs a text: leave -C out")
    ),
    "unset": _Builtin(),
    "wait": _Builtin(names=False, never="p", why="it sets a variable: leave -p out"),
    "jobs": _Builtin(names=False, never="x", why="start the command directly, without jobs -x"),
    "hash": _Builtin(names=False, only="-r", why="call programs directly"),
    "shopt": _Builtin(
        names=False,
        only="globstar|nullglob|failglob|nocasematch|inherit_errexit|checkwinsize|-[suqp]",
        why=_READING,
    ),
}


def builtin(call: Call) -> str:
    """Judge a builtin by its row."""
    row = _BUILTINS[call.name]
    for word in call.args:
        start = word.value if word.value is not None else word.prefix
        is_never = start.startswith("-") and row.never and row.never in word.text
        is_odd = row.only and not re.fullmatch(row.only, word.value or "?")
        if is_never or is_odd or (call.name == "jobs" and not start):
            return f"{call.name} must not be given '{word.text}': {row.why}"
    if not row.names:
        return ""
    given = parse_options(call.args, Syntax(row.short, permutes=False))
    return _variables(call, (*given.operands, *given.values("-a")))


def _variables(call: Call, names: tuple[Word, ...]) -> str:
    """Return why a word may not be the name of an assigned variable."""
    for word in names:
        place = _PLACE.fullmatch(word.value or "")
        if place is None:
            return f"{call.name} must be given the plain name of a variable, not '{word.text}'"
        if reason := assignment_reason(place[1], None, call.site.policy):
            return reason if place[1] != "IFS" else "IFS must not be read or changed this way"
    return ""


def getopts(call: Call) -> str:
    """Judge the variable of `getopts`."""
    return _variables(call, call.args[1:2])


def printf(call: Call) -> str:
    """Judge the variable of `printf -v`."""
    head = call.args[0] if call.args else Word("", "")
    start = head.value if head.value is not None else head.prefix
    if head.value == "-v":
        return _variables(call, call.args[1:2])
    if start.startswith("-v"):
        return _variables(call, (Word(head.text, start[2:] if head.value else None),))
    if head.value is None and not start and not head.is_quoted:
        return "Cannot tell what printf does: write its format literally"
    return ""


def set_(call: Call) -> str:
    """Allow the usual options of `set` and positional parameters."""
    args = list(call.args)
    while args:
        word = args.pop(0)
        if word.value is None:
            return "Cannot tell which options set changes: put '--' before the words"
        if word.value in ("--", "-") or not word.value.startswith(("-", "+")):
            return ""
        if re.fullmatch(r"[-+][euxvfCETambhn]*o", word.value):
            option = args.pop(0) if args else None
            if option is not None and option.value not in _SET_NAMES:
                return f"set must not change '{option.text}': {_READING}"
        elif not re.fullmatch(r"[-+][euxvfCETambhn]+", word.value):
            return f"set must not be given '{word.value}': {_READING}"
    return ""


def test(call: Call) -> str:
    """Deny an index that runs a command, and an unknown name."""
    for index, word in enumerate(call.args):
        if word.value is not None and HIDES_COMMAND.search(word.value):
            return f"'{word.text}' would run a command when it is tested: write it differently"
        after = call.args[index + 1 : index + 2]
        if word.value in ("-v", "-R") and after and after[0].value is None:
            return f"Cannot tell which variable '{after[0].text}' is: write its name literally"
    return ""


def declare(call: Call) -> str:
    """Options of `declare`, `local`, `export`; the assignments are judged as such."""
    given = parse_options(call.args, Syntax())
    if call.name in ("declare", "typeset", "local") and given.has("-n"):
        return f"{call.name} -n gives a second name to a variable: use the variable itself"
    if any(re.fullmatch(r"[-+][a-zA-Z]*i[a-zA-Z]*", word.text) for word in call.args):
        return f"{call.name} -i calculates whatever is assigned later: use $((...)) instead"
    if given.unclear and call.name not in ("local", "readonly") and not call.site.is_open:
        return (
            f"Cannot tell which variables '{given.unclear[0].text}' sets: write the names"
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
    if call.name == "alias" and not call.args:
        return ""
    return (
        f"Command '{call.name}' is not in the allowlist: it changes what later names mean, or runs"
        " text; write the commands directly"
    )
