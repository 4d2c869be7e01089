"""`stage_timeout`: a stage that takes too long is nudged, then begun anew, then given up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from reactivex import Observable, abc

from cuggino.events import PolicyEvent
from cuggino.operators.remedies import Answer, Instead, Ladder, Remedies, check_limit, spoken
from cuggino.operators.scheduler import serial

T = TypeVar("T")


def stage_timeout(
    seconds: float | None,
    *,
    nudge: Instead | None = None,
    replace: Instead | None = None,
    remedies: Remedies | None = None,
) -> Callable[[Observable[T]], Observable[T | PolicyEvent]]:
    """Answer a stage whose time is up, busy or not, in the steps of `idle_timeout`.

    ::

        source:             a-a-a                        seconds = 5
        replace(error):          b-b-b
        stage_timeout:      a-a-a(Rb)-b-b#               they are ended at 5 and 10 s

    `AgentNudged` and `nudge(error)` if there is one; then `AgentReplaced` (`idle` is None) and
    `replace(error)`, by default the source again; then the stream fails with `AgentStalled`. Each
    remedy has the full time anew: the stream ends after three times `seconds` at the latest, after
    twice without `nudge`. What ends or completes in the very instant of the timeout is in time.

    A stage with both operators gives both the same `remedies`: it is then nudged once and
    replaced once in all, and a remedy that `idle_timeout` takes gives the stage its full time,
    too. `idle_timeout` comes first and so guards the source; what `nudge` and `replace` give here
    is guarded by this operator alone, unless the caller puts `idle_timeout` around it::

        def watched(agent):
            return agent.pipe(idle_timeout(idle=900, tool=7200, remedies=remedies))

        watched(agent).pipe(
            stage_timeout(3600, nudge=lambda error: watched(resume(error)), remedies=remedies)
        )

    With `seconds=None` the source itself is returned. Raises ValueError for a time that is not
    more than 0.
    """
    check_limit("seconds", seconds)
    answer = Answer(nudge, replace, remedies)

    def operator(source: Observable[T]) -> Observable[T | PolicyEvent]:
        if seconds is None:
            return source
        time = timedelta(seconds=seconds)

        def subscribe(
            observer: abc.ObserverBase[T | PolicyEvent],
            scheduler: abc.SchedulerBase | None = None,
        ) -> abc.DisposableBase:
            return _StageTime(source, observer, serial(scheduler), answer, time).begin()

        return Observable(subscribe)

    return operator


class _StageTime(Ladder[T]):
    def __init__(
        self,
        source: Observable[T],
        observer: abc.ObserverBase[T | PolicyEvent],
        lane: abc.SchedulerBase,
        answer: Answer,
        time: timedelta,
    ) -> None:
        super().__init__(source, observer, lane, answer)
        self._time = time

    def _deadline(self) -> datetime:
        return self._full_time_since() + self._time

    def _full_time_since(self) -> datetime:
        """When this agent began, or the other operator on the stage took a remedy."""
        since = self._remedies.since
        return self._began if since is None else max(self._began, since)

    def _describe(self, now: datetime) -> tuple[str, str, None]:
        took = (now - self._full_time_since()).total_seconds()
        return f"the agent was not done after {spoken(took)}", "stageTimeout", None
