"""The table of agents: what is installed, and what each can do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cuggino.agents import Capabilities
from cuggino_cli.agent_look import Look
from cuggino_cli.output.cells import cut, flat, padded
from cuggino_cli.output.theme import Fragment, Label
from cuggino_cli.output.widths import width

_GAP = "  "
_LEAST_NOTE = 20
"""Columns for the note; with fewer the table becomes a list."""
_HEADS = ("AGENT", "VERSION", "GUARD", "MCP", "RESUME", "COST", "SANDBOX", "DELTAS")
_LABELS: dict[str, Label] = {
    "ready": "success",
    "missing": "caution",
    "old": "caution",
    "broken": "failure",
}
_WORDS = {"missing": "not installed", "old": "too old", "broken": "broken"}
_LONGEST_NAME = 30


def agents_fragments(looks: Sequence[Look], *, columns: int | None) -> list[Fragment]:
    """A line for each agent, below a line of headings; on a narrow terminal some lines for each.

    Pure. Nothing is wider than `columns`; with None, for a file or a pipe, nothing is cut. A star
    marks the agents of the project.
    """
    cells = [_cells(look) for look in looks]
    widths = [max(width(line[at]) for line in (_HEADS, *cells)) for at in range(len(_HEADS))]
    taken = sum(widths) + len(_GAP) * len(widths)
    if columns is not None and columns - taken < _LEAST_NOTE:
        return _joined(line for look in looks for line in _block(look, columns))
    room = None if columns is None else columns - taken
    lines = [[Fragment("prose", _GAP.join((*map(padded, _HEADS, widths), "NOTE")))]]
    for look, line in zip(looks, cells, strict=True):
        name, version, *rest = map(padded, line, widths)
        lines.append(
            [
                Fragment("plain", name + _GAP),
                Fragment(_LABELS[look.state], version),
                Fragment("plain", _GAP + _GAP.join((*rest, cut(_note(look), room))).rstrip()),
            ]
        )
    return _joined(lines)


def _cells(look: Look) -> tuple[str, ...]:
    star = "*" if look.configured else ""
    name = cut(flat(look.name), _LONGEST_NAME) + star
    version = flat(look.version or "") or _WORDS.get(look.state, "")
    if look.capabilities is None:
        return (name, version, *["?"] * (len(_HEADS) - 2))
    return (name, version, *(word for _, word in _claims(look.capabilities, look)))


def _claims(claimed: Capabilities, look: Look) -> Iterator[tuple[str, str]]:
    """What the agent can do, each with the word for it."""

    def yes(so: bool) -> str:
        return "yes" if so else "no"

    def told(word: str) -> str:
        return "no" if word == "none" else word

    yield "guard", told(claimed.guard)
    yield "MCP", yes(claimed.mcp)
    yield "resume", yes(claimed.resume)
    yield "cost", told(claimed.cost)
    here = "not here" if look.sandbox_unavailable else "yes"
    yield "sandbox", here if claimed.sandbox else "no"
    yield "deltas", yes(claimed.deltas)


def _note(look: Look) -> str:
    """What is wrong and what to do, then what else is to be known; of which package it is."""
    said: list[str] = []
    if look.state in ("missing", "old"):
        said.append(look.hint or look.problem or "")
    elif look.state == "broken":
        said += [look.problem or "", look.hint or ""]
    elif look.capabilities is not None:
        said.append(look.capabilities.note)
    if look.origin not in ("", "cuggino"):
        said.append(f"from {look.origin}")
    return "; ".join(flat(text) for text in said if text.strip())


def _block(look: Look, columns: int) -> Iterator[list[Fragment]]:
    """The same for a narrow terminal."""
    name, version, *_ = _cells(look)
    room = columns - width(name + _GAP)
    first = [Fragment("plain", cut(name, columns))]
    if room > 1:
        first += [Fragment("plain", _GAP), Fragment(_LABELS[look.state], cut(version, room))]
    yield first
    claimed = look.capabilities
    words = [] if claimed is None else [f"{what} {word}" for what, word in _claims(claimed, look)]
    yield from _wrapped([f"{word}," for word in words[:-1]] + words[-1:], columns)
    yield from _wrapped(_note(look).split(" "), columns)


def _wrapped(words: Sequence[str], columns: int) -> Iterator[list[Fragment]]:
    """The words in indented lines; a word that is longer than a line is cut."""
    line = ""
    for word in filter(None, words):
        if line and width(f"{_GAP}{line} {word}") >= columns:
            yield [Fragment("prose", cut(_GAP + line, columns))]
            line = ""
        line += f" {word}" if line else word
    if line:
        yield [Fragment("prose", cut(_GAP + line, columns))]


def _joined(lines: Iterable[list[Fragment]]) -> list[Fragment]:
    fragments: list[Fragment] = []
    for number, line in enumerate(lines):
        fragments += [Fragment("plain", "\n"), *line] if number else line
    return fragments
