"""What the guard answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple


class Part(NamedTuple):
    """One thing that was judged: a command, a redirection, a file of a tool."""

    text: str
    reason: str = ""
    """Why it is denied, as a sentence that helps to choose another way; empty when allowed."""

    @property
    def is_allowed(self) -> bool:
        """Whether this part alone may pass."""
        return not self.reason


class Verdict(NamedTuple):
    """Whether a tool may be used so; denied as a whole when any part is."""

    parts: tuple[Part, ...] = ()

    @property
    def is_allowed(self) -> bool:
        """Whether every part may pass."""
        return all(part.is_allowed for part in self.parts)

    @property
    def decision(self) -> Literal["allow", "deny"]:
        """The answer in a word."""
        return "allow" if self.is_allowed else "deny"

    @property
    def reason(self) -> str:
        """The reason of the first denied part; empty when allowed."""
        return next((part.reason for part in self.parts if part.reason), "")


def denied(text: str, reason: str) -> Verdict:
    """A verdict on one thing that may not pass."""
    return Verdict((Part(text, reason),))


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on all of them."""
    return Verdict(tuple(part for verdict in verdicts for part in verdict.parts))
