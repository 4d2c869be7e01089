"""A command line as bash reads it: text to a tree of commands, or a refusal."""

from cuggino.guard.shell.parser import parse
from cuggino.guard.shell.tree import (
    Binary,
    Case,
    Command,
    Function,
    Group,
    If,
    Loop,
    Node,
    Refused,
    Script,
    Statement,
    Timed,
    Word,
)

__all__ = [
    "Binary",
    "Case",
    "Command",
    "Function",
    "Group",
    "If",
    "Loop",
    "Node",
    "Refused",
    "Script",
    "Statement",
    "Timed",
    "Word",
    "parse",
]
