"""Code in text that bash evaluates as an expression (R10).

`x='a[$(cmd)]'; echo $((x))` runs `cmd`: the value of a variable is an expression again, and a
subscript in it is expanded. The same holds for builtins that take the name of a variable.
"""

from __future__ import annotations

import re

from cuggino.guard.shell.quotes import Pieces
from cuggino.guard.shell.tree import Command

SUBSCRIPT = (
    "A quoted subscript contains a substitution, which runs as part of an expression; run it first"
    " and store its result in a variable."
)
_EVALUATORS = frozenset(
    ("test", "[", "printf", "read", "unset", "wait", "getopts", "mapfile", "readarray", "let")
)
"""Builtins that expand the subscript of a name in their arguments."""
_MARK = re.compile(r"\w\[|\]|\$\(|\$\{|`")


def known_text(pieces: Pieces) -> str:
    """Return the word with a NUL for each unknown part."""
    return "".join("\0" if piece.kind == "open" else piece.text for piece in pieces)


def hides_code(text: str) -> bool:
    """Return whether a subscript contains a substitution."""
    is_open = False
    for mark in _MARK.findall(text):
        if mark in ("$(", "${", "`"):
            if is_open:
                return True
        else:
            is_open = mark != "]"
    return False


def may_become_code(text: str) -> bool:
    """Return whether a value could become part of such a subscript."""
    return "`" in text or "$" in text


def runs_subscript(command: Command) -> bool:
    """Return whether the command expands an argument that has code in its subscript."""
    names = {word.value for word in command.words[:2]} - {"command", "builtin"}
    if command.kind == "call" and names.isdisjoint(_EVALUATORS):
        return False
    values = [*command.words]
    if command.kind == "declare":
        values += [value for assignment in command.assignments for value in assignment.values]
    return any(word.value is not None and hides_code(word.value) for word in values)
