"""Retries of forge calls after limits, outages and missing logins."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from reactivex import Observable

from cuggino.domain import Schedule
from cuggino.errors import ForgeError, ForgeLimited, ForgeLoginMissing, ForgeRefused
from cuggino.events import WatchForgeWaiting
from cuggino.forge.model import Forge
from cuggino.operators import Flow, ask, emit, pause
from cuggino.stages import clock

LIMITED = Schedule.exponential("1m").capped("1h")
"""Delays after a rate limit with an unknown end."""
LOGGED_OUT = Schedule.constant("10m")
UNREACHABLE = Schedule.exponential("5s").capped("10m")

LONGEST = timedelta(hours=1)
"""Maximum wait before the next try after a rate limit, even if the forge names a later end."""
SHORTEST = timedelta(seconds=1)

T = TypeVar("T")


def patiently(doing: str, forge: Forge, call: Callable[[], Observable[T]]) -> Flow[T | None]:
    """Repeat a call until it succeeds; return its last value, or None without any.

    Emits `WatchForgeWaiting` before each wait; of consecutive waits for a login, only before the
    first. `doing` completes the sentence "cannot ...".

    Raises:
        ForgeRefused: the failure is permanent.
    """
    last: type[ForgeError] | None = None
    taken = 0
    while True:
        try:
            return (yield from ask(call(), name=doing))
        except ForgeRefused:
            raise
        except ForgeError as error:
            is_first = type(error) is not last
            last, taken = type(error), 0 if is_first else taken + 1
            seconds = yield from _delay(error, taken)
            if is_first or not isinstance(error, ForgeLoginMissing):
                yield from emit(
                    WatchForgeWaiting(
                        forge=f"{forge.host}/{forge.repo}",
                        doing=doing,
                        message=f"{error.message}; {error.hint}" if error.hint else error.message,
                        retry_in=seconds,
                    )
                )
            yield from pause(seconds)


def _delay(error: ForgeError, taken: int) -> Flow[float]:
    """Return the seconds before the next retry, after `taken` waits for the same reason."""
    schedule = UNREACHABLE
    if isinstance(error, ForgeLoginMissing):
        schedule = LOGGED_OUT
    elif isinstance(error, ForgeLimited):
        schedule = LIMITED
        if (until := error.until) is not None:
            now = yield from ask(clock(), name="now")
            assert now is not None
            return min(max(until - now, SHORTEST), LONGEST).total_seconds()
    delay = schedule.delay(taken)
    assert delay is not None  # none of the schedules ends
    return delay
