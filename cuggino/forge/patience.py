"""Retries of forge calls after limits, outages and missing logins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import ParamSpec, TypeVar

from reactivex import Observable

from cuggino.domain import Schedule
from cuggino.errors import ForgeError, ForgeLimited, ForgeLoginMissing, ForgeRefused
from cuggino.events import WatchForgeWaiting
from cuggino.forge.api import current_time
from cuggino.forge.model import Forge
from cuggino.operators import Flow, ask, emit, pause

LIMITED = Schedule.exponential("1m").capped("1h")
"""Delays after a rate limit with an unknown end."""
LOGGED_OUT = Schedule.constant("10m")
UNREACHABLE = Schedule.exponential("5s").capped("10m")

LONGEST = timedelta(hours=1)
"""Maximum wait before the next try after a rate limit, even if the forge names a later end."""
SHORTEST = timedelta(seconds=1)

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patient:
    """Repeats calls to a forge until they succeed.

    In a flow: `pull = yield from patient.get("look at the pull request", forge.pull_request, 7)`.

    Emits `WatchForgeWaiting` before each wait; of consecutive waits for a login, only before the
    first. A description completes the sentence "cannot ...".

    Raises:
        ForgeRefused: the failure is permanent.
    """

    forge: Forge

    def get(
        self,
        doing: str,
        call: Callable[P, Observable[T] | Flow[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Flow[T]:
        """Return the last value of a call, or the result of a flow.

        Raises:
            ForgeRefused: there is none.
        """
        value = yield from self.do(doing, call, *args, **kwargs)
        if value is None:
            raise ForgeRefused(f"cannot {doing}: the forge sent an empty response")
        return value

    def do(
        self,
        doing: str,
        call: Callable[P, Observable[T] | Flow[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Flow[T | None]:
        """Return the last value of a call, or the result of a flow; None if there is none."""
        last: type[ForgeError] | None = None
        taken = 0
        while True:
            try:
                called = call(*args, **kwargs)
                if isinstance(called, Observable):
                    return (yield from ask(called, name=doing))
                return (yield from called)
            except ForgeRefused:
                raise
            except ForgeError as error:
                is_first = type(error) is not last
                last, taken = type(error), 0 if is_first else taken + 1
                seconds = yield from _delay(error, taken)
                if is_first or not isinstance(error, ForgeLoginMissing):
                    hint = f"; {error.hint}" if error.hint else ""
                    yield from emit(
                        WatchForgeWaiting(
                            forge=f"{self.forge.host}/{self.forge.repo}",
                            doing=doing,
                            message=f"{error.message}{hint}",
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
        if error.until is not None:
            left = error.until - (yield from current_time())
            return min(max(left, SHORTEST), LONGEST).total_seconds()
    delay = schedule.delay(taken)
    assert delay is not None  # none of the schedules ends
    return delay
