"""What is tried with an agent that hangs, before its stage fails."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeAlias, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SerialDisposable

from cuggino.errors import AgentStalled
from cuggino.events import AgentNudged, AgentReplaced, PolicyEvent
from cuggino.operators.running_tools import RunningTools

T = TypeVar("T")

Instead: TypeAlias = Callable[[AgentStalled], Observable[Any]]
"""Gives what comes instead of an agent that hangs: a stream of events as the agent's.

`Any`, so that the operators work on a stream of whatever type within a `pipe`.
"""


@dataclass(slots=True)
class Remedies:
    """What has been tried: an agent is nudged once and replaced once, then its stage fails.

    Nothing gives a remedy back, events of the agent that came of it do not either, so that a
    stage always ends. Operators that share one object share the remedies; make one for each run
    of a stage.
    """

    nudged: bool = False
    replaced: bool = False
    since: datetime | None = None
    """When the last remedy was taken, by the scheduler's clock."""

    def __str__(self) -> str:
        """What was tried, for a sentence; empty if nothing was."""
        tried = ["a nudge"] * self.nudged + ["a fresh agent"] * self.replaced
        return " and ".join(tried)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the caller of such an operator wants done."""

    nudge: Instead | None
    replace: Instead | None
    remedies: Remedies | None


class Ladder(ABC, Generic[T]):
    """One subscription of an operator that watches an agent: nudge, replace, give up.

    One timer at most is pending. An event only notes its time; the timer, when it is due, looks
    whether the deadline has moved meanwhile and waits for the rest. Before it acts it lets the
    scheduler do what it already holds: an event of the same instant counts.
    """

    def __init__(
        self,
        source: Observable[T],
        observer: abc.ObserverBase[T | PolicyEvent],
        lane: abc.SchedulerBase,
        answer: Answer,
    ) -> None:
        self._source = source
        self._observer = observer
        self._lane = lane
        self._nudge = answer.nudge
        self._replace = answer.replace
        self._remedies = Remedies() if answer.remedies is None else answer.remedies
        self._tools = RunningTools()
        self._began = self._heard = lane.now
        self._agent = SerialDisposable()
        self._timer = SerialDisposable()
        self._due: datetime | None = None
        self._closed = False

    @abstractmethod
    def _deadline(self) -> datetime | None:
        """When the agent is given up if nothing changes; None for never."""

    @abstractmethod
    def _describe(self, now: datetime) -> tuple[str, str, float | None]:
        """What is wrong, the setting behind it, and what `AgentReplaced` says in `idle`."""

    def begin(self) -> abc.DisposableBase:
        """Subscribe the source and watch it until the returned disposable is disposed."""
        self._run(self._source)
        return Disposable(self.dispose)

    def dispose(self) -> None:
        """Leave no timer and no agent, in that order; returns when both are gone."""
        self._closed = True
        self._timer.dispose()
        self._agent.dispose()

    def _run(self, agent: Observable[T]) -> None:
        self._tools.clear()
        self._began = self._heard = self._lane.now
        self._arm()
        # One that ends within `subscribe` has closed the slot, which then disposes what it gets.
        self._agent.disposable = agent.subscribe(
            self._on_next, self._on_error, self._on_completed, scheduler=self._lane
        )

    def _on_next(self, event: T) -> None:
        self._heard = self._lane.now
        if self._tools.see(event):
            self._arm()
        self._observer.on_next(event)

    def _on_error(self, error: Exception) -> None:
        self.dispose()
        self._observer.on_error(error)

    def _on_completed(self) -> None:
        self.dispose()
        self._observer.on_completed()

    def _arm(self) -> None:
        """See to it that a timer is pending that is not later than the deadline."""
        deadline = self._deadline()
        if deadline is None or (self._due is not None and self._due <= deadline):
            return
        self._due = deadline
        self._timer.disposable = self._lane.schedule_absolute(deadline, self._look)

    def _is_over(self, now: datetime) -> bool:
        deadline = self._deadline()
        return deadline is not None and deadline <= now

    def _look(self, _scheduler: abc.SchedulerBase, _state: object = None) -> None:
        if self._is_over(self._lane.now):
            # One more hop: events that wait on the lane are older than this verdict.
            self._timer.disposable = self._lane.schedule(self._judge)
        else:
            self._judge(_scheduler)

    def _judge(self, _scheduler: abc.SchedulerBase, _state: object = None) -> None:
        self._due = None
        now = self._lane.now
        if self._is_over(now):
            self._climb(now)
        else:
            self._arm()

    def _climb(self, now: datetime) -> None:
        what, setting, idle = self._describe(now)
        names = self._tools.names
        tried = str(self._remedies)
        error = AgentStalled(
            f"{what} ({_running(names)})" + (f", again after {tried}" if tried else ""),
            hint=(
                f"raise {setting} in .cuggino.json if the work needs longer (the limits, in "
                "seconds: idleTimeout, toolTimeout while a tool runs, stageTimeout)"
            ),
        )
        tool = names[0] if names else None
        if self._nudge is not None and not self._remedies.nudged:
            self._remedies.nudged = True
            self._instead(AgentNudged(idle=idle, tool=tool), self._nudge, error)
        elif not self._remedies.replaced:
            self._remedies.replaced = True
            again = self._replace or (lambda _error: self._source)
            self._instead(AgentReplaced(idle=idle, tool=tool), again, error)
        else:
            self._on_error(error)

    def _instead(self, step: PolicyEvent, instead: Instead, error: AgentStalled) -> None:
        """End the agent, say so, run what comes instead of it."""
        # The slot is emptied, not disposed: the agent is gone when this returns.
        self._agent.disposable = None
        self._observer.on_next(step)
        if self._closed:
            return
        try:
            agent = instead(error)
        except Exception as failure:
            self._on_error(failure)
            return
        self._remedies.since = self._lane.now
        self._run(agent)


def _running(names: tuple[str, ...]) -> str:
    match len(names):
        case 0:
            return "no tool was running"
        case 1:
            return f"{names[0]} was running"
        case 2:
            return f"{names[0]} and {names[1]} were running"
        case many:
            return f"{names[0]} and {many - 1} other tools were running"


def spoken(seconds: float) -> str:
    """A span of time for a sentence: `90 s`, `15 min`, `2 h`."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    if seconds < 7200:
        return f"{seconds / 60:.3g} min"
    return f"{seconds / 3600:.3g} h"


def check_limit(name: str, seconds: float | None) -> None:
    """Raise ValueError unless the limit is None or more than nothing."""
    if seconds is not None and not seconds > 0:
        raise ValueError(f"{name} must be more than 0 seconds, not {seconds:g}")
