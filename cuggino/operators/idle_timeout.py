"""`idle_timeout`: an agent that has fallen silent is nudged, then replaced, then given up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from reactivex import Observable, abc

from cuggino.events import PolicyEvent
from cuggino.operators.remedies import Answer, Instead, Ladder, Remedies, check_limit, spoken
from cuggino.operators.scheduler import serial

T = TypeVar("T")


def idle_timeout(
    *,
    idle: float | None,
    tool: float | None = None,
    nudge: Instead | None = None,
    replace: Instead | None = None,
    remedies: Remedies | None = None,
) -> Callable[[Observable[T]], Observable[T | PolicyEvent]]:
    """Answer silence of an agent, one step at a time; each step is an event.

    ::

        source:             a----                        idle = 5 s
        nudge(error):            b----
        replace(error):               c----
        idle_timeout:       a----(Nb)----(Rc)----#       they are ended at 5, 10 and 15 s

    Silence is the time since the last event of the agent, whichever (a `PingEvent` is a sign of
    life as well), or since it was subscribed. While no tool is running `idle` seconds of it are
    allowed, while one is `tool` seconds (None: any length): a test run of twenty minutes that
    prints nothing is healthy. A tool runs from its `ToolCall` to the `ToolResult` with its id.
    An event of the very instant of the timeout still counts.

    1. With `nudge`: the agent is ended, `AgentNudged` emitted, `nudge(error)` subscribed: the
       caller's stream, which goes on with the same session. Without it this step is left out.
    2. Silent again: ended, `AgentReplaced` emitted, `replace(error)` subscribed, by default the
       source again: a fresh agent.
    3. Silent again: ended, and the stream fails with `AgentStalled`, which says how long it was
       silent and what was running.

    The agent is gone before each event, and before the error. Each remedy is taken once per
    subscription, whatever the agent says after it, so that the stream always ends; operators with
    the same `remedies` (`stage_timeout`) share them. What `nudge` and `replace` raise is the
    stream's error. An agent that completes or fails is passed on as it is.

    Put it next to the agent, below the policies that wait (`retry_session`, `wait_for_quota`):
    their pauses are silence to it. With `idle=None` the source itself is returned. Raises
    ValueError for a limit that is not more than 0.
    """
    check_limit("idle", idle)
    check_limit("tool", tool)
    answer = Answer(nudge, replace, remedies)

    def operator(source: Observable[T]) -> Observable[T | PolicyEvent]:
        if idle is None:
            return source
        silence = timedelta(seconds=idle)
        in_tool = None if tool is None else timedelta(seconds=tool)

        def subscribe(
            observer: abc.ObserverBase[T | PolicyEvent],
            scheduler: abc.SchedulerBase | None = None,
        ) -> abc.DisposableBase:
            lane = serial(scheduler)
            return _Silence(source, observer, lane, answer, silence, in_tool).begin()

        return Observable(subscribe)

    return operator


class _Silence(Ladder[T]):
    def __init__(
        self,
        source: Observable[T],
        observer: abc.ObserverBase[T | PolicyEvent],
        lane: abc.SchedulerBase,
        answer: Answer,
        idle: timedelta,
        tool: timedelta | None,
    ) -> None:
        super().__init__(source, observer, lane, answer)
        self._idle = idle
        self._tool = tool

    def _deadline(self) -> datetime | None:
        limit = self._tool if self._tools else self._idle
        return None if limit is None else self._heard + limit

    def _describe(self, now: datetime) -> tuple[str, str, float]:
        silent = (now - self._heard).total_seconds()
        setting = "toolTimeout" if self._tools else "idleTimeout"
        return f"the agent was silent for {spoken(silent)}", setting, silent
