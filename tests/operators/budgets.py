"""Events that spend, and how a budget's streams are compared with drawings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import reactivex as rx

from cuggino import events as ev
from cuggino.domain.spending import Budget
from cuggino.operators.supervision import within_budget as typed_within_budget
from cuggino.testing import Marbles

A = ev.AgentMessage(text="a")
TOKENS = Budget(tokens=100, count_tokens="plain")
MONEY = Budget(cost_usd=10.0)
UNBOUNDED = Budget()

Policy = Callable[[rx.Observable[Any]], rx.Observable[Any]]


def within_budget(budget: Budget, **options: Any) -> Policy:
    """The operator, for streams of anything."""
    return typed_within_budget(budget, **options)


def update(tokens: int, cost: float | None = None) -> ev.UsageUpdate:
    return ev.UsageUpdate(usage=ev.Usage(output_tokens=tokens), cost_usd=cost)


def ended(tokens: int = 0, cost: float | None = None) -> ev.SessionEnded:
    return ev.SessionEnded(outcome="completed", cost_usd=cost, usage=ev.Usage(output_tokens=tokens))


def warning(kind: ev.BudgetKind, spent: float, limit: float) -> ev.BudgetWarning:
    return ev.BudgetWarning(budget=kind, spent=spent, limit=limit)


def drawn(t: Marbles, stream: rx.Observable[Any], **options: Any) -> list[tuple[float, str, str]]:
    """Record the stream: each value as its letter in the drawing, each error as its message."""
    marks = {id(event): mark for mark, event in t.events.items()}
    return [
        (
            when,
            kind,
            marks.get(id(value), "W") if kind == "next" else str(value) if value else "",
        )
        for when, kind, value in t.record(stream, **options)
    ]


TOKENS_SPENT = "The token budget of the run is used up: {} of 100 tokens spent"
