"""The tokens and the cost of a session, as its program reports them."""

from __future__ import annotations

from typing import Literal, NamedTuple

from acp import schema

from cuggino.agents.base.wire import Json, is_number, tokens_of, without
from cuggino.domain import added_usage
from cuggino.events import Usage


class Spending(NamedTuple):
    """How a program reports what it spends, and what it had spent before it was resumed."""

    scope: Literal["none", "requests", "turns", "session"]
    tokens_before: Usage | None = None
    cost_before: float = 0.0

    def begun(self, reported: schema.UsageUpdate) -> Spending:
        """Return what was spent before the first prompt, by the totals of a session until then."""
        given, before = reported.field_meta or {}, self.tokens_before
        if self.scope == "session":
            before = tokens_of(
                given,
                sent="promptTokens",
                written="completionTokens",
                read="cachedTokens",
                created="",
            )
        return Spending(self.scope, before, _dollars(reported) or self.cost_before)

    def used(
        self, scope: Literal["requests", "turns"], reported: Json, before: Usage | None
    ) -> Usage | None:
        """Return the tokens used after a request, or the response to a prompt, if they count."""
        scopes = ("requests",) if scope == "requests" else ("turns", "session")
        if self.scope not in scopes or not reported:
            return None
        tokens = tokens_of(
            reported,
            sent="inputTokens",
            written="outputTokens",
            read="cachedReadTokens",
            created="cachedWriteTokens",
        )
        is_total = self.scope == "session"
        return without(tokens, self.tokens_before) if is_total else added_usage(before, tokens)

    def cost(self, reported: schema.UsageUpdate) -> float | None:
        """Return the cost in dollars by the totals of the session; None if it is not reported."""
        total = _dollars(reported)
        return None if total is None else max(0.0, total - self.cost_before)


def _dollars(reported: schema.UsageUpdate) -> float | None:
    cost = reported.cost
    is_known = cost is not None and cost.currency == "USD" and is_number(cost.amount)
    return cost.amount if cost is not None and is_known else None
