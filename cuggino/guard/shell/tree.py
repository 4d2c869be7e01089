"""The tree of a shell script, as far as judging needs it.

Everything that bash would run is a `Command` in it, at any depth: in lists, pipelines, groups,
loops, function bodies, substitutions in words, here-documents and assignments. Nothing is guessed:
an uncertain text is refused before a tree is built, or is a `Word` without a value.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias


class Refused(Exception):
    """A text that cannot be judged, with the `reason` and the `part` that caused it."""

    def __init__(self, reason: str, part: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.part = part


class Word(NamedTuple):
    """One word after brace expansion: `a{b,c}` gives two."""

    text: str
    """The word as written."""
    value: str | None
    """The argument without quotes; None when it is known only at run time."""
    prefix: str = ""
    """The certain beginning of a word without a value."""
    has_glob: bool = False
    """True if it has an unquoted `*`, `?` or `[`; the value is then the pattern."""
    has_tilde: bool = False
    """True if it begins with an unquoted `~`, also after `=` or `:` of an assignment."""
    is_quoted: bool = False
    """True if any of it is quoted or escaped."""
    scripts: tuple[Script, ...] = ()
    """Command and process substitutions in the word, at any depth."""


class Assignment(NamedTuple):
    """`NAME=value` before a command or alone, or an argument of `export` and similar builtins."""

    name: str
    text: str
    values: tuple[Word, ...] = ()
    """One for a plain value, none for `NAME=`, any number for an array; an index's words too."""
    appends: bool = False


class Redirect(NamedTuple):
    """`> file`, `2>&1`, `<<EOF`, ..."""

    operator: str
    """The operator in bash's spelling: one of `> >> >| < <> >& <& &> &>> << <<- <<<`."""
    text: str
    target: Word
    """The file, the descriptor, the here-string, or the delimiter of a here-document."""
    descriptor: str = ""
    """The text before the operator: a number, `{name}`, or nothing."""
    body: Word | None = None
    """The text of a here-document; it has scripts when its delimiter is not quoted."""


class Command(NamedTuple):
    """A simple command, or a built-in form that is not a program."""

    kind: Literal["call", "declare", "test", "arithmetic", "let"]
    """`declare` is export, local, readonly, typeset, ...; its first word is that name."""
    text: str
    words: tuple[Word, ...] = ()
    """The program and its arguments; for `[[ ]]` and `(( ))` every word inside."""
    assignments: tuple[Assignment, ...] = ()


class Binary(NamedTuple):
    """Two joined statements."""

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
    """The items of a `for`, or the words of its three expressions."""
    condition: Script
    body: Script
    name: str = ""
    """The variable of a `for`."""


class Case(NamedTuple):
    """`case WORD in pattern) ... ;; esac`."""

    word: Word
    patterns: tuple[Word, ...]
    """The patterns of all branches."""
    branches: tuple[Script, ...]


class Function(NamedTuple):
    """The definition of a function; its body is judged in place."""

    name: str
    body: Statement


class Timed(NamedTuple):
    """`time ...`."""

    body: Statement | None


Node: TypeAlias = Command | Binary | Group | If | Loop | Case | Function | Timed


class Statement(NamedTuple):
    """A node with its redirections and modifiers."""

    node: Node | None
    """None when there are only redirections: `> file`."""
    text: str
    redirects: tuple[Redirect, ...] = ()
    is_negated: bool = False
    is_background: bool = False


Script: TypeAlias = tuple[Statement, ...]
"""A sequence of statements."""
