"""Usage limits for the tests of the policies that wait for them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import reactivex as rx
from reactivex import Observable

from cuggino.errors import QuotaExceeded
from cuggino.events import AgentMessage, QuotaLifted, QuotaWaiting, SessionEnded
from cuggino.testing import Marbles

HOUR = 3600.0
HI = AgentMessage(text="hi")
DONE = SessionEnded(outcome="completed")


def second(n: float) -> datetime:
    return datetime.fromtimestamp(n, UTC)


def limit(resets: float | None = None, message: str = "limit") -> QuotaExceeded:
    return QuotaExceeded(message, resets_at=None if resets is None else second(resets))


def waiting(remaining: float, resets: float | None = None, message: str = "limit") -> QuotaWaiting:
    resets_at = None if resets is None else second(resets)
    return QuotaWaiting(remaining=remaining, resets_at=resets_at, message=message)


def marbles(error: Exception, **events: Any) -> Marbles:
    return Marbles(error=error, a=HI, d=DONE, **events)


def one_after_the_other(*sources: Observable[Any]) -> Observable[Any]:
    """A cold source that is another one at each subscription."""
    left = iter(sources)
    return rx.defer(lambda _: next(left))


def is_end(event: Any) -> bool:
    return isinstance(event, QuotaLifted)
