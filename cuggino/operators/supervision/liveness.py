"""`idle_timeout`, `stage_timeout`, `repetition_limit`: nudge an agent, replace it, then fail.

`liveness` is all three as one operator, and gives an agent that ends too early the same ladder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import SerialDisposable

from cuggino.domain import PollingWatch, RepetitionWatch, duration_text
from cuggino.errors import AgentStalled
from cuggino.events import (
    AgentFellBack,
    AgentNudged,
    AgentReplaced,
    AgentRetry,
    QuotaWaiting,
    SessionEnded,
    SupervisionEvent,
    ToolCall,
    ToolResult,
)
from cuggino.operators.managed import Held
from cuggino.operators.mistakes import require_number, require_result
from cuggino.operators.scheduler import serial

T = TypeVar("T")

Instead: TypeAlias = Callable[[AgentStalled], Observable[Any]]
"""Makes the replacement of an agent that hangs: a stream of events like the agent's.

`Any`, so that the operators accept a stream of any type within a `pipe`.
"""

Remind: TypeAlias = Callable[[], "Observable[Any] | None"]
"""Resumes the session of an agent that ended too early; None if that is impossible."""


_POLLS = 3
"""Calls with the same sleeping command after which an agent polls."""
_ADVICE = (
    "you were running the same command with a sleep again and again, which costs tokens each time; "
    "end your message with <WAITING> instead, which costs nothing"
)


@dataclass(slots=True)
class Remedies:
    """The remedies already used for an agent: at most one nudge, one reminder, one replacement.

    A used remedy is never restored, so a stage always ends. Operators that share one object share
    its remedies; create one for each run of a stage.
    """

    nudged: bool = False
    reminded: bool = False
    """True if a session was resumed that had ended too early."""
    replaced: bool = False
    advised: bool = False
    """True if an agent that polled was told how to wait."""
    since: datetime | None = None
    """When the last remedy was used, by the scheduler's clock."""

    def __str__(self) -> str:
        """Name what was tried, for a sentence; empty if nothing was."""
        tried = [
            *["a nudge"] * self.nudged,
            *["a reminder"] * self.reminded,
            *["a fresh agent"] * self.replaced,
        ]
        return " and ".join(tried)


def idle_timeout(
    *,
    idle: float | None,
    tool: float | None = None,
    nudge: Instead | None = None,
    replace: Instead | None = None,
    remedies: Remedies | None = None,
) -> Callable[[Observable[T]], Observable[T | SupervisionEvent]]:
    """Nudge a silent agent, then replace it, then fail; each step is an event.

    ::

        source:             a----                     idle=5
        nudge(error):            b----
        replace(error):               c----
        idle_timeout:       a----(Nb)----(Rc)----#    N: AgentNudged, R: AgentReplaced

    Silence is the time since the last event of the agent (a `PingEvent` counts), or since it was
    subscribed. It may last `idle` seconds, or `tool` seconds while a tool is running (None:
    indefinitely): a test run of twenty minutes that prints nothing is healthy. A tool runs from its
    `ToolCall` to the `ToolResult` with its id. An event at the very instant of the timeout counts.

    1. With `nudge`: the agent is released, `AgentNudged` emitted, and `nudge(error)` subscribed,
       which resumes the session. Without it this step is skipped.
    2. Silent again: the agent is released, `AgentReplaced` emitted, and `replace(error)`
       subscribed, by default the source again.
    3. Silent again: the agent is released, and the stream fails with `AgentStalled`.

    Each remedy is used once per subscription; operators with the same `remedies` (`stage_timeout`)
    share them. Exceptions of `nudge` and `replace` are the stream's error.

    Put it next to the agent, inside `retry_session` and `wait_for_quota`, whose pauses would count
    as silence. With `idle=None` the source itself is returned. Raises ValueError for a limit that
    is not positive. (RxPY's `timeout` has one limit and no remedy, and releases the source after
    its replacement has begun.)
    """
    _check_limit("idle", idle)
    _check_limit("tool", tool)
    return liveness(idle=idle, tool=tool, nudge=nudge, replace=replace, remedies=remedies)


def stage_timeout(
    seconds: float | None,
    *,
    nudge: Instead | None = None,
    replace: Instead | None = None,
    remedies: Remedies | None = None,
) -> Callable[[Observable[T]], Observable[T | SupervisionEvent]]:
    """Limit the time of a stage, busy or not, with the steps of `idle_timeout`.

    ::

        source:             a-a-a               seconds=5
        replace(error):          b-b-b
        stage_timeout:      a-a-a(Rb)-b-b#      R: AgentReplaced

    First `AgentNudged` and `nudge(error)`, if given; then `AgentReplaced` (`idle` is None) and
    `replace(error)`, by default the source again; then the stream fails with `AgentStalled`. Each
    remedy has the full time again. A stage that completes at the very instant of the timeout is in
    time.

    A stage with both operators gives both the same `remedies`: it is nudged once and replaced
    once in all, and a remedy of `idle_timeout` restarts the time of the stage. `idle_timeout`
    comes first and supervises the source; what `nudge` and `replace` return here is supervised by
    this operator alone, unless the caller puts `idle_timeout` around it::

        def watched(agent: Observable[Event]) -> Observable[Event]:
            return agent.pipe(idle_timeout(idle=900, tool=7200, remedies=remedies))

        watched(session).pipe(
            stage_timeout(3600, nudge=lambda error: watched(resume(error)), remedies=remedies)
        )

    With `seconds=None` the source itself is returned. Raises ValueError for a time that is not
    positive. (RxPY's `timeout` limits the time between events.)
    """
    _check_limit("seconds", seconds)
    return liveness(stage=seconds, nudge=nudge, replace=replace, remedies=remedies)


def repetition_limit(
    times: int | None,
    *,
    nudge: Instead | None = None,
    replace: Instead | None = None,
    remedies: Remedies | None = None,
) -> Callable[[Observable[T]], Observable[T | SupervisionEvent]]:
    """Stop an agent that repeats itself, with the steps of `idle_timeout`.

    ::

        source:             CcCc-CcCc                  times=2; C: a call, c: its result
        nudge(error):       CcCc-Cc
        replace(error):     Cc-d|
        repetition_limit:   CcC(cNC)cC(cRC)c-d|        N: AgentNudged, R: AgentReplaced

    An agent repeats itself when it has called a tool `times` times in a row with the same input and
    the same result, or two or three such calls in turn. First `AgentNudged` and `nudge(error)`, if
    given; then `AgentReplaced` and `replace(error)`, by default the source again; then the stream
    fails with `AgentStalled`. Each remedy starts a new count. Operators with the same `remedies`
    share them.

    With `times=None` the source itself is returned. Raises ValueError for less than 2. (RxPY's
    `distinct_until_changed` only hides what repeats.)
    """
    if times is not None:
        require_number("times", times)
    if times is not None and times < 2:
        raise ValueError(f"times must be at least 2, not {times}")
    return liveness(times=times, nudge=nudge, replace=replace, remedies=remedies)


def liveness(
    *,
    idle: float | None = None,
    tool: float | None = None,
    stage: float | None = None,
    times: int | None = None,
    nudge: Instead | None = None,
    replace: Instead | None = None,
    remedies: Remedies | None = None,
    ends: Callable[[Any], bool] | None = None,
    remind: Remind = lambda: None,
    polling: bool = False,
) -> Callable[[Observable[T]], Observable[T | SupervisionEvent]]:
    """Apply `idle_timeout`, `stage_timeout` and `repetition_limit` as one operator.

    ::

        source:             a---------                idle=5, stage=9
        nudge(error):            b-b-b-b-b
        replace(error):                   c|
        liveness:           a----(Nb)-b-b-b-b(Rc)|    N: AgentNudged, R: AgentReplaced

    Each remedy starts the agent's silence, time and count anew. The limits are those of
    `idle_timeout(idle=idle, tool=tool)`, `stage_timeout(stage)` and `repetition_limit(times)`,
    which validate them.

    With `ends`, an agent that completes without an event which that accepts gets the same ladder:
    `AgentNudged` and `remind()`, then `AgentReplaced` and `replace(error)`, each with `no_marker`;
    after that the stream completes::

        source:             a|                        ends: d
        remind():            b|
        replace(error):       d|
        liveness:           a(Nb)(Rd)|                N: AgentNudged, R: AgentReplaced

    With `polling`, an agent that calls a tool for the third time with the same command with a sleep
    in it (`sleep 600; gh pr checks`) is nudged once, whatever the results, to end with `<WAITING>`.
    (RxPY's `timeout` has one limit and no remedy.)
    """
    limits = _Limits(_delta(idle), _delta(tool), _delta(stage), times, polling)

    def operator(source: Observable[T]) -> Observable[T | SupervisionEvent]:
        if idle is None and stage is None and times is None and ends is None and not polling:
            return source

        def subscribe(
            observer: abc.ObserverBase[T | SupervisionEvent],
            scheduler: abc.SchedulerBase | None = None,
        ) -> abc.DisposableBase:
            lane, shared = serial(scheduler), Remedies() if remedies is None else remedies
            steps = _Steps(nudge, replace or (lambda _error: source), remind, ends)
            return _Ladder(observer, lane, limits, steps, shared).run(source)

        return Observable(subscribe)

    return operator


def _delta(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


class _Limits(NamedTuple):
    idle: timedelta | None
    tool: timedelta | None
    stage: timedelta | None
    times: int | None
    polling: bool


class _Problem(NamedTuple):
    """A problem with an agent: it is silent, takes too long, or repeats itself."""

    what: str
    hint: str
    idle: float | None = None
    tool: str | None = None
    repeated: int | None = None


class _Steps(NamedTuple):
    """What is done about an agent, and when it may end."""

    nudge: Instead | None
    replace: Instead
    remind: Remind
    ends: Callable[[Any], bool] | None


class _Watched:
    """One agent: when it was last heard, its running tools, its repetitions and its polls."""

    def __init__(self, limits: _Limits, remedies: Remedies, now: datetime) -> None:
        self.heard = now
        self.poller = ""
        """The tool of an agent that polls."""
        self._began = now
        self._limits = limits
        self._remedies = remedies
        self._tools = _RunningTools()
        self._calls = RepetitionWatch()
        self._repeated = 0
        self._polls = PollingWatch()

    def changes(self, event: Any) -> bool:
        """Record a call, a result or an end of a session; return True if the event is one."""
        counts = self._limits.times is not None
        match event:
            case ToolCall():
                self._tools.called(event)
                may_poll = not self._limits.polling or self._remedies.advised
                if not may_poll and self._polls.called(event.input) >= _POLLS:
                    self.poller = event.name
                if counts:
                    self._calls.called(event.name, event.input, id=event.id)
            case ToolResult():
                self._tools.answered(event)
                if counts and not self._repeated:
                    self._count(self._calls.answered(event.name, event.output))
            case SessionEnded() | AgentRetry() | QuotaWaiting() | AgentFellBack():
                self._tools.clear()
            case AgentNudged() | AgentReplaced():  # of another operator
                self._tools.clear()
            case _:
                return False
        return True

    def _count(self, times: int) -> None:
        limit = self._limits.times
        self._repeated = times if limit is not None and times >= limit else 0

    def deadline(self) -> datetime | None:
        """Return when the agent is given up if nothing changes; None for never."""
        if self._repeated or self.poller:
            return self.heard
        due = [x for x in (self._silent_at(), self._late_at()) if x is not None]
        return min(due, default=None)

    def _silent_at(self) -> datetime | None:
        limits = self._limits
        limit = limits.tool if self._tools else limits.idle
        return None if limits.idle is None or limit is None else self.heard + limit

    def _late_at(self) -> datetime | None:
        stage = self._limits.stage
        return None if stage is None else self._full_time_since() + stage

    def _full_time_since(self) -> datetime:
        """Return when this agent began, or another operator took a remedy."""
        since = self._remedies.since
        return self._began if since is None else max(self._began, since)

    def problem(self, now: datetime) -> _Problem:
        """Return why the agent is given up."""
        silent_at = self._silent_at()
        if silent_at is not None and silent_at <= now:
            silent = (now - self.heard).total_seconds()
            setting = "toolTimeout" if self._tools else "idleTimeout"
            return self._slow(f"the agent was silent for {duration_text(silent)}", setting, silent)
        if self._repeated:
            return _Problem(
                f"the agent called {self._calls.tool} {self._repeated} times in a row with the "
                "same input and the same result",
                "raise repetitionLimit in .cuggino.json if it has to",
                tool=self._calls.tool,
                repeated=self._repeated,
            )
        took = (now - self._full_time_since()).total_seconds()
        return self._slow(f"the agent was not done after {duration_text(took)}", "stageTimeout")

    def _slow(self, what: str, setting: str, idle: float | None = None) -> _Problem:
        names = self._tools.names
        return _Problem(
            f"{what} ({_running(names)})",
            f"raise {setting} in .cuggino.json if the work needs longer (the limits, in "
            "seconds: idleTimeout, toolTimeout while a tool runs, stageTimeout)",
            idle=idle,
            tool=names[0] if names else None,
        )


class _Ladder(abc.DisposableBase, Generic[T]):
    """One subscription of an operator that supervises an agent: nudge, replace, fail.

    At most one timer is pending. An event only records its time; the timer, when due, checks
    whether the deadline has moved and waits for the rest. Before it acts, it lets the scheduler run
    actions that are already queued: an event of the same instant counts.
    """

    def __init__(
        self,
        observer: abc.ObserverBase[T | SupervisionEvent],
        lane: abc.SchedulerBase,
        limits: _Limits,
        steps: _Steps,
        remedies: Remedies,
    ) -> None:
        self._observer = observer
        self._lane = lane
        self._limits = limits
        self._steps = steps
        self._remedies = remedies
        self._is_complete = steps.ends is None
        """True once the agent has done what it was asked for, so that it may end."""
        self._watched = _Watched(limits, remedies, lane.now)
        self._agent = Held()
        self._timer = SerialDisposable()
        self._due: datetime | None = None
        self._closed = False

    def run(self, agent: Observable[T]) -> abc.DisposableBase:
        """Subscribe to an agent, and supervise it from now on."""
        self._watched = _Watched(self._limits, self._remedies, self._lane.now)
        self._arm()
        self._agent.hold(
            lambda: agent.subscribe(
                self._on_next, self._on_error, self._on_completed, scheduler=self._lane
            )
        )
        return self

    def dispose(self) -> None:
        self._closed = True
        self._timer.dispose()
        self._agent.dispose()

    def _on_next(self, event: T) -> None:
        if self._closed:
            return
        self._watched.heard = self._lane.now
        if self._watched.changes(event):
            self._arm()
        ends = self._steps.ends
        if ends is not None and ends(event):
            self._is_complete = True
        self._send(event)

    def _send(self, event: T | SupervisionEvent) -> None:
        try:
            self._observer.on_next(event)
        except Exception as error:
            self._on_error(error)

    def _on_error(self, error: Exception) -> None:
        if not self._closed:
            self._end(error)

    def _end(self, error: Exception | None = None) -> None:
        self._closed = True
        self._timer.dispose()
        self._agent.end(self._observer, error)

    def _on_completed(self) -> None:
        if self._closed:
            return
        if self._is_complete:
            self._end()
        else:
            # On the lane, as an agent may end within its `subscribe`.
            self._due = None
            self._timer.disposable = self._lane.schedule(self._ended_early)

    def _ended_early(self, _scheduler: abc.SchedulerBase, _state: object = None) -> None:
        remedies = self._remedies
        error = AgentStalled("the agent ended without a marker that ends its stage")
        try:
            agent = None if remedies.reminded else self._steps.remind()
        except Exception as failure:
            self._on_error(failure)
            return
        if agent is not None:
            remedies.reminded = True
            self._instead(AgentNudged(no_marker=True), lambda _error: agent, error)
        elif not remedies.replaced:
            remedies.replaced = True
            self._instead(AgentReplaced(no_marker=True), self._steps.replace, error)
        else:
            self._is_complete = True
            self._on_completed()

    def _arm(self) -> None:
        """Ensure that a timer is pending that is not later than the deadline."""
        deadline = self._watched.deadline()
        if deadline is None or (self._due is not None and self._due <= deadline):
            return
        self._due = deadline
        self._timer.disposable = self._lane.schedule_absolute(deadline, self._look)

    def _is_over(self, now: datetime) -> bool:
        deadline = self._watched.deadline()
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
        nudge, remedies = self._steps.nudge, self._remedies
        poller, self._watched.poller = self._watched.poller, ""
        if poller and nudge is not None:
            remedies.advised = True
            nudged = AgentNudged(tool=poller, repeated=_POLLS, polling=True)
            self._instead(nudged, nudge, AgentStalled(_ADVICE))
            return
        problem = self._watched.problem(now)
        idle, tool, repeated = problem.idle, problem.tool, problem.repeated
        tried = str(remedies)
        error = AgentStalled(
            problem.what + (f", again after {tried}" if tried else ""), hint=problem.hint
        )
        if nudge is not None and not remedies.nudged:
            remedies.nudged = True
            nudged = AgentNudged(idle=idle, tool=tool, repeated=repeated)
            self._instead(nudged, nudge, error)
        elif not remedies.replaced:
            remedies.replaced = True
            replaced = AgentReplaced(idle=idle, tool=tool, repeated=repeated)
            self._instead(replaced, self._steps.replace, error)
        else:
            self._on_error(error)

    def _instead(self, step: SupervisionEvent, instead: Instead, error: AgentStalled) -> None:
        """Release the agent, report the step, run the replacement."""
        # The slot is emptied, not disposed: the agent is gone when this returns.
        unreleased = self._agent.release()
        if unreleased is not None:
            self._on_error(unreleased)
            return
        self._send(step)
        if self._closed:
            return
        try:
            agent = instead(error)
            require_result(agent, "`nudge` or `replace`")
        except Exception as failure:
            self._on_error(failure)
            return
        self._remedies.since = self._lane.now
        self.run(agent)


class _RunningTools:
    """The running tools of an agent; several may run at once.

    A call without an id runs until a result arrives that belongs to no known call. A result
    without a call changes nothing. The end of a session ends its tools.
    """

    __slots__ = ("_by_id", "_without_id")

    def __init__(self) -> None:
        self._by_id: dict[str, str] = {}
        self._without_id: list[str] = []

    def called(self, call: ToolCall) -> None:
        if call.id:
            self._by_id[call.id] = call.name
        else:
            self._without_id.append(call.name)

    def answered(self, result: ToolResult) -> None:
        if self._by_id.pop(result.name, None) is None and self._without_id:
            self._without_id.pop(0)

    def clear(self) -> None:
        self._by_id.clear()
        self._without_id.clear()

    def __bool__(self) -> bool:
        return bool(self._by_id or self._without_id)

    @property
    def names(self) -> tuple[str, ...]:
        """The running tools in the order of their calls, those without an id last."""
        return (*self._by_id.values(), *self._without_id)


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


def _check_limit(name: str, seconds: float | None) -> None:
    if seconds is None:
        return
    require_number(name, seconds)
    if not seconds > 0:
        raise ValueError(f"{name} must be more than 0 seconds, not {seconds:g}")
