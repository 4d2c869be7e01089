"""The verdict of the guard."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Part(NamedTuple):
    """A judged part of a call: a command, a redirection, or a file of a tool."""

    text: str
    reason: str = ""
    """The reason for a denial, as a sentence that suggests an alternative; empty if allowed."""

    @property
    def is_allowed(self) -> bool:
        return not self.reason


class Verdict(NamedTuple):
    """The verdict on a tool call; one denied part denies the whole."""

    parts: tuple[Part, ...] = ()

    @property
    def is_allowed(self) -> bool:
        return all(part.is_allowed for part in self.parts)

    @property
    def decision(self) -> Literal["allow", "deny"]:
        """Return the verdict in a word."""
        return "allow" if self.is_allowed else "deny"

    @property
    def reason(self) -> str:
        """Return the reason of the first denied part; empty when allowed."""
        return next((part.reason for part in self.parts if part.reason), "")


def denied(text: str, reason: str) -> Verdict:
    """Return a verdict with one denied part."""
    return Verdict((Part(text, reason),))
