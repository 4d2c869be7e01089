"""The table of installed agents and their capabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cuggino.agents import Capabilities
from cuggino.doctor import AgentReport
from cuggino_cli.screen.columns import cut, width
from cuggino_cli.screen.fragments import Fragment, Label, joined
from cuggino_cli.screen.tables import GAP, Row, indented, table
from cuggino_cli.screen.text import flat

_LEAST_NOTE = 20
"""Columns for the note; with fewer, the table becomes a list."""
_HEADS = ("AGENT", "VERSION", "GUARD", "MCP", "RESUME", "COST", "SANDBOX", "DELTAS", "NOTE")
_LABELS: dict[str, Label] = {
    "ready": "success",
    "missing": "caution",
    "old": "caution",
    "broken": "failure",
    "unchecked": "caution",
}
_WORDS = {
    "missing": "not installed",
    "old": "too old",
    "broken": "broken",
    "unchecked": "not checked",
}
_LONGEST_NAME = 30


def agents_fragments(looks: Sequence[AgentReport], *, columns: int | None) -> list[Fragment]:
    """Return a table with a row for each agent, or a list on a narrow terminal.

    Nothing is wider than `columns`; None, for a file or a pipe, means no limit. A star marks the
    agents of the project.
    """
    rows = [Row(_cells(look), _LABELS[look.state], _note(look)) for look in looks]
    shown = table(_HEADS, rows, columns=columns, least=_LEAST_NOTE)
    if shown is None and columns is not None:
        return joined(line for look in looks for line in _block(look, columns))
    return shown or []


def _cells(look: AgentReport) -> tuple[str, ...]:
    star = "*" if look.configured else ""
    name = cut(flat(look.name), _LONGEST_NAME) + star
    version = flat(look.version or "") or _WORDS.get(look.state, "")
    if look.capabilities is None:
        return (name, version, *["?"] * (len(_HEADS) - 3))
    return (name, version, *(word for _, word in _claims(look.capabilities, look)))


def _claims(claimed: Capabilities, look: AgentReport) -> Iterator[tuple[str, str]]:
    """Yield each capability with its value."""

    def yes(so: bool) -> str:
        return "yes" if so else "no"

    def level(word: str) -> str:
        return "no" if word == "none" else word

    yield "guard", level(claimed.guard)
    yield "MCP", yes(claimed.mcp)
    yield "resume", yes(claimed.resume)
    yield "cost", level(claimed.cost)
    here = "not here" if look.sandbox_unavailable else "yes"
    yield "sandbox", here if claimed.sandbox else "no"
    yield "deltas", yes(claimed.deltas)


def _note(look: AgentReport) -> str:
    """Return the problem and the advice, or the note; then the package of a foreign agent."""
    notes: list[str] = []
    if look.state in ("missing", "old"):
        notes.append(look.hint or look.problem or "")
    elif look.state == "broken":
        notes += [look.problem or "", look.hint or ""]
    elif look.capabilities is not None:
        notes += ["takes messages"] if look.capabilities.messages else []
        notes.append(look.capabilities.note)
    if look.origin not in ("", "cuggino"):
        notes.append(f"from {look.origin}")
    return "; ".join(flat(text) for text in notes if text.strip())


def _block(look: AgentReport, columns: int) -> Iterator[list[Fragment]]:
    """Yield the lines of an agent for a narrow terminal."""
    name, version, *_ = _cells(look)
    room = columns - width(name + GAP)
    first = [Fragment("plain", cut(name, columns))]
    if room > 1:
        first += [Fragment("plain", GAP), Fragment(_LABELS[look.state], cut(version, room))]
    yield first
    claimed = look.capabilities
    words = [] if claimed is None else [f"{what} {word}" for what, word in _claims(claimed, look)]
    yield from indented([f"{word}," for word in words[:-1]] + words[-1:], columns, "prose")
    yield from indented(_note(look).split(" "), columns, "prose")
