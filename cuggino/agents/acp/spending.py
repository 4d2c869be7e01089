"""The tokens and the cost of a session, as its program reports them."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from acp import schema

from cuggino.agents.base.wire import Json, count_or_zero, is_number
from cuggino.agents.profiles import Profile
from cuggino.events import Usage, UsageUpdate


class Spending:
    """The tokens and the cost of one session, excluding those before it was resumed."""

    def __init__(self, profile: Profile) -> None:
        self.usage: Usage | None = None
        self.model: str | None = None
        """The model of the session, if known."""
        self._scope = profile.usage
        self._used: Counter[str] = Counter()
        self._before: Counter[str] = Counter()
        self._cost: float | None = None
        self._cost_before = 0.0

    @property
    def cost(self) -> float | None:
        """The cost in dollars; None if it was not reported."""
        return None if self._cost is None else max(0.0, self._cost - self._cost_before)

    def count(self, scope: Literal["requests", "turns"], reported: Json) -> list[UsageUpdate]:
        """Count the tokens of a request, or those in the response to a prompt."""
        scopes = ("requests",) if scope == "requests" else ("turns", "session")
        if self._scope not in scopes or not reported:
            return []
        names = ("inputTokens", "outputTokens", "cachedReadTokens", "cachedWriteTokens")
        tokens = _tokens(reported, *names)
        self._used = tokens if self._scope == "session" else self._used + tokens
        self.usage = Usage(**(self._used - self._before))
        return [UsageUpdate(usage=self.usage, model=self.model)]

    def total(self, reported: schema.UsageUpdate, *, is_before: bool) -> None:
        """Record the totals of the session so far; `is_before`: before its first prompt."""
        if is_before and self._scope == "session":
            given = reported.field_meta or {}
            self._before = _tokens(given, "promptTokens", "completionTokens", "cachedTokens", "")
        cost = reported.cost
        if cost is None or cost.currency != "USD" or not is_number(cost.amount):
            return
        if is_before:
            self._cost_before = cost.amount
        else:
            self._cost = cost.amount


def _tokens(reported: Json, sent: str, written: str, read: str, created: str) -> Counter[str]:
    """Return the counts under these names; the program counts cached tokens as input."""
    cached, new = count_or_zero(reported.get(read)), count_or_zero(reported.get(created))
    return Counter(
        input_tokens=max(0, count_or_zero(reported.get(sent)) - cached - new),
        output_tokens=count_or_zero(reported.get(written)),
        cache_read_tokens=cached,
        cache_creation_tokens=new,
    )
