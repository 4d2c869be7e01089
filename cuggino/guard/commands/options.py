"""Parsing of arguments, as the programs themselves do it."""

from __future__ import annotations

import re
from typing import NamedTuple

from cuggino.guard.shell.tree import Word

_ABSOLUTE = re.compile(r"\"\$(\(pwd\)|\{?(PWD|HOME|TMPDIR)\}?)/")
"""Text that certainly begins with a slash, although its value is unknown."""
_DOCUMENT = re.compile(r'[\w-]*=?"\$\(cat <<-? ?\\?([\x27"]?)(\w+)\1\n[\s\S]*\n\s*\2\s*\)"')
"""A text in a here-document, as agents write the messages of commits."""
_LIST = re.compile(r"\$(@|\*|\{[@*]|\{!?\w+(\[[@*]\]|[@*]\}))")


class Syntax(NamedTuple):
    """The options of a program that take a value."""

    short: str = ""
    """Letters of short options with a value."""
    long: tuple[str, ...] = ()
    """Long options with a value, without the dashes."""
    flags: tuple[str, ...] = ()
    """Long options without a value, as far as they may be confused with others."""
    permutes: bool = True
    """True if options may follow operands."""
    attached: str = ""
    """Letters of options whose value, if any, is part of the same word: `-i.bak`."""


class Option(NamedTuple):
    """An option that is given."""

    name: str
    """`-x` or `--name`, abbreviations of long names written out."""
    value: Word | None = None
    text: str = ""
    """The word it is in."""


def row_of(table: str, name: str) -> list[str] | None:
    """Return the columns of the row of a name in a table like `NAME NAME: COLUMN|COLUMN`, or None.

    Rows go on in lines that begin with blanks; missing columns are empty.
    """
    row = rf"^(?:[\w. -]* )?{re.escape(name)}(?: [\w. -]*)?:(.*(?:\n  .*)*)"
    found = re.search(row, table, re.MULTILINE)
    if found is None:
        return None
    return [*(column.strip() for column in found[1].replace("\n", "").split("|")), *[""] * 7]


class Parsed(NamedTuple):
    """The parsed arguments of a command."""

    options: tuple[Option, ...]
    operands: tuple[Word, ...]
    unclear: tuple[Word, ...]
    """Words that might be an option or several words, which only bash decides at run time."""

    def has(self, *names: str) -> bool:
        return any(option.name in names for option in self.options)

    def values(self, *names: str) -> list[Word]:
        return [
            option.value
            for option in self.options
            if option.name in names and option.value is not None
        ]


def parse_options(args: tuple[Word, ...], syntax: Syntax) -> Parsed:
    """Parse options, their values and operands, by the rules of getopt_long."""
    options: list[Option] = []
    operands: list[Word] = []
    doubtful: list[Word] = []
    rest = list(args)
    only_operands = False
    while rest:
        word = rest.pop(0)
        if only_operands:
            if may_split(word):
                doubtful.append(word)
            operands.append(word)
            continue
        start = word.prefix if word.value is None else word.value
        if not start.startswith("-") or word.value == "-":
            if is_doubtful(word):
                doubtful.append(word)
            operands.append(word)
            only_operands = not syntax.permutes
        elif word.value == "--":
            only_operands = True
        elif start.startswith("--"):
            options.append(_long(word, start, syntax, rest))
            doubtful += _splitting(options[-1:])
        elif word.value is None and len(start) == 1:
            doubtful.append(word)
            operands.append(word)
        else:
            made = _cluster(word, start, syntax, rest)
            options += made
            doubtful += _splitting(made) or ([word] if may_split(word) else [])
    return Parsed(tuple(options), tuple(operands), tuple(doubtful))


def _splitting(options: list[Option]) -> list[Word]:
    """Return values that may become several words, the others being options."""
    return [option.value for option in options if option.value and may_split(option.value)]


def is_doubtful(word: Word) -> bool:
    """Return whether an unknown word could be an option."""
    if word.value is not None:
        return False
    return may_split(word) or not (word.prefix or _ABSOLUTE.match(word.text))


def may_split(word: Word) -> bool:
    """Return whether the word may become several: it expands something outside double quotes."""
    if word.value is not None or word.text == "{}":
        return False
    text = word.text
    return not _DOCUMENT.fullmatch(text) and _has_open_expansion(text)


def _has_open_expansion(text: str) -> bool:
    """Return whether an expansion is outside double quotes, or is a list even within them."""
    at, in_quotes = 0, False
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
            continue
        if char == "'" and not in_quotes:
            end = text.find("'", at + 1)
            if end < 0:
                return True
            at = end
        elif char == '"':
            in_quotes = not in_quotes
        elif char == "`" or (char == "$" and text[at + 1 : at + 2] not in ("", '"', "'")):
            if not in_quotes or _LIST.match(text, at):
                return True
            if char == "$" and text[at + 1] in "({":
                at = _closing(text, at + 1)
                if at < 0:
                    return True
            elif char == "`":
                at = text.find("`", at + 1)
                if at < 0:
                    return True
        at += 1
    return in_quotes or text == "xargs{}"


def _closing(text: str, at: int) -> int:
    """Return the position of the closing bracket, or -1 if it is unclear."""
    depth = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char in "({":
            depth += 1
        elif char in ")}":
            depth -= 1
            if not depth:
                return at
        elif char in "'\"":
            at = _quote_end(text, at)
            if at < 0:
                return -1
        elif text.startswith("<<", at) or (char == "#" and text[at - 1] in " \n;"):
            return -1
        at += 1
    return -1


def _quote_end(text: str, at: int) -> int:
    mark = text[at]
    at += 1
    while at < len(text) and text[at] != mark:
        if mark == '"' and text[at] == "\\":
            at += 1
        elif mark == '"' and text[at] == "$" and text[at + 1 : at + 2] in ("(", "{"):
            at = _closing(text, at + 1)
            if at < 0:
                return -1
        at += 1
    return at if at < len(text) else -1


def _long(word: Word, start: str, syntax: Syntax, rest: list[Word]) -> Option:
    name, equals, value = start[2:].partition("=")
    known = (*syntax.long, *syntax.flags)
    if name not in known:
        similar = [long for long in known if long.startswith(name)] if name else []
        if len(similar) == 1 or (similar and similar[0] in syntax.long):
            name = similar[0]
    if equals:
        known_value = None if word.value is None else value
        given = Word(word.text, known_value, value, word.has_glob, False, word.is_quoted)
        return Option(f"--{name}", given, word.text)
    if word.value is None:
        return Option(f"--{name}", Word(word.text, None), word.text)
    if name in syntax.long and rest:
        return Option(f"--{name}", rest.pop(0), word.text)
    return Option(f"--{name}", None, word.text)


def _cluster(word: Word, start: str, syntax: Syntax, rest: list[Word]) -> list[Option]:
    options = []
    for index, letter in enumerate(start[1:], 1):
        tail = start[index + 1 :]
        if letter in syntax.short or letter in syntax.attached:
            open_end = word.value is None
            if tail or open_end:
                value = Word(word.text, None if open_end else tail, tail, word.has_glob)
                options.append(Option(f"-{letter}", value, word.text))
            elif letter in syntax.short and rest:
                options.append(Option(f"-{letter}", rest.pop(0), word.text))
            else:
                options.append(Option(f"-{letter}", None, word.text))
            return options
        options.append(Option(f"-{letter}", None, word.text))
    return options
