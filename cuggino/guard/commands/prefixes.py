"""Assignments before a command, and texts that arithmetic would run."""

from __future__ import annotations

from cuggino.guard.commands.arithmetic import names_reason
from cuggino.guard.commands.assignments import assignment_reason
from cuggino.guard.commands.base import Trail
from cuggino.guard.commands.builtins import HIDES_COMMAND
from cuggino.guard.policy import Policy
from cuggino.guard.shell.tree import Assignment, Command, Word

_READERS = ("read", "mapfile", "readarray")
_KEEPERS = frozenset(("set", "read", "printf", "declare", "let"))


def prefix_reason(node: Command, policy: Policy, trail: Trail) -> str:
    """Return why a command with these assignments and words is denied."""
    name = node.words[0].value if node.words else None
    for assignment in node.assignments:
        if assignment.name == "IFS" and name in _READERS:
            continue
        loosen(assignment.name, assignment.values, trail)
        if reason := _assigned(assignment, policy):
            return reason
    if name == "let":
        told = " ".join(word.value or "" for word in node.words[1:])
        if reason := names_reason(told, policy):
            return reason
    if name in (*_READERS, "printf"):
        trail.loose.update(word.value or "" for word in node.words[1:])
    if name in _KEEPERS and (reason := hidden_reason(node.words[1:])):
        return reason
    return _blank(node)


def _assigned(assignment: Assignment, policy: Policy) -> str:
    value = _value(assignment)
    if reason := assignment_reason(assignment.name, value, policy, appends=assignment.appends):
        return reason
    return next(
        (
            f"The text of {assignment.name} would run a command in a calculation: write the"
            " command itself"
            for word in assignment.values
            if word.value is not None and HIDES_COMMAND.search(word.value)
        ),
        "",
    )


def _value(assignment: Assignment) -> str | None:
    """Return the assigned text, or None if it is unknown or a list."""
    if not assignment.values:
        return ""
    if len(assignment.values) > 1:
        return None
    return assignment.values[0].value


def loosen(name: str, values: tuple[Word, ...], trail: Trail) -> None:
    """Remember a variable whose value may look like an option."""
    for word in values:
        start = word.value if word.value is not None else word.prefix
        is_git = word.text.strip('"').startswith("$(git ")
        if start.startswith("-") or (word.value is None and not start and not is_git):
            trail.loose.add(name)


def hidden_reason(words: tuple[Word, ...]) -> str:
    """Return why later arithmetic could run a stored text."""
    for word in words:
        if word.value is not None and HIDES_COMMAND.search(word.value):
            return f"'{word.text}' would run a command in a calculation: write it otherwise"
    return ""


def _blank(node: Command) -> str:
    """Return why a word with a blank that bash does not split at is denied."""
    for word in node.words:
        odd = (char for char in word.text if char.isspace() and char not in " \t\n")
        if not word.is_quoted and any(odd):
            return f"'{word.text}' has a blank in it that bash takes for none: use plain ones"
    return ""
