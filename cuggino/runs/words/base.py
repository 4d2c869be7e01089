"""The sentence of an event, and the tones in which a view shows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Tone: TypeAlias = Literal[
    "plain",
    "quiet",
    "tool",
    "heading",
    "info",
    "progress",
    "discussion",
    "commit",
    "success",
    "caution",
    "warning",
    "failure",
    "problem",
    "error",
]
"""The meaning of a sentence, from which a view chooses its color."""

Least: TypeAlias = Literal["quiet", "normal", "verbose"]
"""The lowest verbosity that shows a sentence."""

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Words:
    """The sentence of an event.

    The text is what an agent, a person or a program wrote, too: a view makes it harmless.
    """

    title: str
    """The source, such as `Agent` or `Check`; "" if the text is complete without it."""
    text: str
    tone: Tone = "quiet"
    verbosity: Least = "quiet"
    more: tuple[Words, ...] = ()
    """Further sentences of the event."""

    @property
    def lines(self) -> tuple[Words, ...]:
        """Return the sentence and the further ones."""
        return (self, *self.more)


def first_line(text: str) -> str:
    """Return the first line that is not blank."""
    return text.strip().partition("\n")[0]


def flat(text: str) -> str:
    """Return the text in one line."""
    return " ".join(text.split())


def clip(text: str, limit: int) -> str:
    """Return the text in one line, cut after `limit` characters."""
    line = flat(text)
    return f"{line[:limit]}..." if len(line) > limit else line


def listed(names: Iterable[str], *, most: int = _SHOWN) -> str:
    """Return the names, at most `most` of them, each in one line."""
    known = tuple(names)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(clip(name, 300) for name in known[:most]) + more


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return `1 file`, `2,000 files`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def often(count: int) -> str:
    """Return `once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(count) or counted(count, "time")
