"""The tree of a shell script, as far as judging it needs.

Everything that bash would run stands in it as a `Command`, however deeply it is nested: in lists,
pipelines, groups, loops, function bodies, substitutions in words, here-documents and assignments.
What cannot be told for sure is never guessed: it is refused before a tree is made, or it is a
`Word` without a value.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias


class Refused(Exception):
    """The text cannot be judged; `reason` says why, `part` which piece of it."""

    def __init__(self, reason: str, part: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.part = part


class Word(NamedTuple):
    """One word, after brace expansion: `a{b,c}` is two of them."""

    text: str
    """As written."""
    value: str | None
    """What the program gets, quotes removed; None when only running it would tell."""
    prefix: str = ""
    """What it surely begins with, when it has no value."""
    has_glob: bool = False
    """Whether it has an unquoted `*`, `?` or `[`; the value is then the pattern."""
    has_tilde: bool = False
    """Whether it begins with an unquoted `~`, also behind `=` or `:` of an assignment."""
    is_quoted: bool = False
    """Whether any of it is quoted or escaped."""
    scripts: tuple[Script, ...] = ()
    """What is run to make it: command and process substitutions, at any depth."""


class Assignment(NamedTuple):
    """`NAME=value` in front of a command or alone, or an argument of `export` and its like."""

    name: str
    text: str
    values: tuple[Word, ...] = ()
    """One for a plain value, none for `NAME=`, any number for an array; an index's words too."""
    appends: bool = False


class Redirect(NamedTuple):
    """`> file`, `2>&1`, `<<EOF`, ..."""

    operator: str
    """As bash writes it: one of `> >> >| < <> >& <& &> &>> << <<- <<<`."""
    text: str
    target: Word
    """The file, the descriptor, the here-string; of a here-document the delimiter."""
    descriptor: str = ""
    """What stands before the operator: a number, `{name}`, or nothing."""
    body: Word | None = None
    """The text of a here-document; it has scripts when its delimiter is not quoted."""


class Command(NamedTuple):
    """A simple command, or one of the built-in forms that are no programs."""

    kind: Literal["call", "declare", "test", "arithmetic", "let"]
    """`declare` is export, local, readonly, typeset, ...; its first word is that name."""
    text: str
    words: tuple[Word, ...] = ()
    """The program and its arguments; of `[[ ]]` and `(( ))` every word in it."""
    assignments: tuple[Assignment, ...] = ()


class Binary(NamedTuple):
    """Two statements joined."""

    operator: Literal["&&", "||", "|", "|&"]
    left: Statement
    right: Statement


class Group(NamedTuple):
    """`{ ...; }` or `( ... )`."""

    is_subshell: bool
    body: Script


class If(NamedTuple):
    """`if`, with each `elif` in `otherwise`."""

    condition: Script
    then: Script
    otherwise: Script


class Loop(NamedTuple):
    """`while`, `until`, `for NAME in ...` and `for ((...))`."""

    kind: Literal["while", "until", "for", "arithmetic"]
    words: tuple[Word, ...]
    """What a `for` goes through, or the words of its three expressions."""
    condition: Script
    body: Script
    name: str = ""
    """The variable of a `for`."""


class Case(NamedTuple):
    """`case WORD in pattern) ... ;; esac`."""

    word: Word
    patterns: tuple[Word, ...]
    """Those of all branches."""
    branches: tuple[Script, ...]


class Function(NamedTuple):
    """The definition of a function; its body is judged where it stands."""

    name: str
    body: Statement


class Timed(NamedTuple):
    """`time ...`."""

    body: Statement | None


Node: TypeAlias = Command | Binary | Group | If | Loop | Case | Function | Timed


class Statement(NamedTuple):
    """A node with what is around it."""

    node: Node | None
    """None when there are only redirections: `> file`."""
    text: str
    redirects: tuple[Redirect, ...] = ()
    is_negated: bool = False
    is_background: bool = False


Script: TypeAlias = tuple[Statement, ...]
"""Statements one after the other."""
