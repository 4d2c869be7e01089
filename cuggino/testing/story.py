"""The record of a played stream: its events, their times, its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from cuggino.events import Event
from cuggino.testing.clock import time_text
from cuggino.testing.diagrams import Seen, shown

T = TypeVar("T")
E = TypeVar("E")


class Story(Generic[T]):
    """Everything that a subscriber received, in virtual time.

    Printed, it is a list of times and events; add it to an assertion to see it on failure:
    `assert story.tags()[-1] == "LoopApproved", story`.
    """

    def __init__(self, seen: Sequence[Seen]) -> None:
        self.seen = list(seen)

    @property
    def timeline(self) -> list[tuple[float, T]]:
        """Return each event with its virtual second, counted from the start of the clock."""
        return [(when, value) for when, kind, value in self.seen if kind == "next"]

    @property
    def events(self) -> list[T]:
        """Return the events in order."""
        return [event for _, event in self.timeline]

    @property
    def last(self) -> T:
        """Return the last event; raise AssertionError if there is none."""
        __tracebackhide__ = True  # pytest shows the line of the test instead
        if not self.events:
            raise AssertionError(f"there is no event\n{self}")
        return self.events[-1]

    @property
    def error(self) -> Exception | None:
        """Return the error of the stream, or None."""
        _, kind, value = self.seen[-1] if self.seen else (0.0, "", None)
        return value if kind == "error" else None

    @property
    def completed(self) -> bool:
        """Return whether the stream completed: it neither failed nor was disposed."""
        return bool(self.seen) and self.seen[-1][1] == "completed"

    @property
    def ended_at(self) -> float | None:
        """Return the virtual second at which the stream ended; None when it was disposed."""
        if not self.seen or self.seen[-1][1] == "next":
            return None
        return self.seen[-1][0]

    def check(self) -> Story[T]:
        """Raise the error of the stream, if any, with the story attached; else return the story."""
        __tracebackhide__ = True
        if self.error is not None:
            self.error.add_note(f"the story was\n{self}")
            raise self.error
        return self

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of a class, which may be a category such as `SupervisionEvent`."""
        return [event for event in self.events if isinstance(event, kind)]

    def one(self, kind: type[E]) -> E:
        """Return the only event of this class; raise AssertionError if there is not exactly one."""
        __tracebackhide__ = True
        found = self.of(kind)
        if len(found) != 1:
            raise AssertionError(f"there are {len(found)} of {kind.__name__}\n{self}")
        return found[0]

    def times(self, kind: type[Any]) -> list[float]:
        """Return the virtual seconds of the events of this class."""
        return [when for when, event in self.timeline if isinstance(event, kind)]

    def tags(self, *kinds: type[Any]) -> list[str]:
        """Return the names of the events, of these classes only if any are given."""
        return [
            event.tag if isinstance(event, Event) else type(event).__name__
            for event in self.events
            if not kinds or isinstance(event, kinds)
        ]

    def __str__(self) -> str:
        lines = [f"{time_text(when):>14}  {_line(kind, value)}" for when, kind, value in self.seen]
        return "\n".join(lines) or "nothing was seen"

    def __repr__(self) -> str:
        return f"<Story of {len(self.events)} events>\n{self}"


def _line(kind: str, value: Any) -> str:
    match kind:
        case "completed":
            return "completed"
        case "error":
            return f"failed with {value!r}"
        case _:
            return shown(value)
