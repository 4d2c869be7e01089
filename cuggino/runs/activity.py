"""The current activity of a run, as a fold over its events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from cuggino.domain import Spending
from cuggino.events import (
    AgentMessage,
    AgentRetry,
    Event,
    IterationStart,
    Progress,
    QuotaWaiting,
    RateLimited,
    RunEnded,
    RunResumed,
    RunStarted,
    SessionEnded,
    ToolCall,
    ToolResult,
)

if TYPE_CHECKING:
    from cuggino.events import (
        AgentFellBack,
        CheckCommandStarted,
        DeliverablesListed,
        DeliverSessionStarted,
        JobsCounted,
        LoopSpecIssue,
        PlanBuildPhaseStarted,
        PlanWritten,
        RunResult,
        SetupCommandStarted,
        SteerAsked,
        Steered,
        WatchItemParked,
        WatchItemRetry,
        WatchProcessingItem,
    )

ActivityState: TypeAlias = Literal[
    "idle", "working", "waiting", "pausing", "paused", "stopping", "ended"
]
"""`idle`: nothing to do. `waiting`: for a usage limit, a retry or a person. `pausing` and
`stopping`: the running stage is the last one."""

_WORDS = 500
"""Characters kept of the agent's last message."""
_TARGET = 500
"""Characters kept of a tool's main parameter."""
_TOOLS = 32
"""Running tool calls that are kept; some agents report no results."""

_PARAMETERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Bash": ("command",),
        "Read": ("file_path",),
        "Write": ("file_path",),
        "Edit": ("file_path",),
        "Glob": ("pattern",),
        "Grep": ("pattern",),
        "WebFetch": ("url",),
        "Task": ("description", "prompt"),
    }
)
"""The most informative inputs by tool."""


def tool_target(name: str, tool_input: object) -> str:
    """Return the most informative input of a tool call that is text, or ""."""
    if not isinstance(tool_input, dict):
        return ""
    keys = _PARAMETERS.get(name, tuple(tool_input))
    values = (tool_input.get(key) for key in keys)
    return next((value for value in values if isinstance(value, str)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTool:
    """A running tool call, setup command or check command."""

    name: str
    target: str
    """Its command, file or other main parameter; may be empty."""
    since: datetime
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A wait that ends by itself."""

    reason: str
    """`quota`, or the reason of a retry, such as `overloaded`."""
    until: datetime
    attempt: int = 0
    """The retry that follows, from 1; 0 for a usage limit."""
    max_attempts: int = 0
    """0 means no limit."""
    limit: str | None = None
    """The agent's name of the usage limit, such as `five_hour`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What a run or watch is doing, after the events added so far.

    `add` gives a new value for an event that changes something and the same value for any other.
    Events of a journal may be added too, `RunStarted` and `RunEnded` included. The journal of a
    watch holds little of the runs of its items: join the activity of the item's own journal with
    `with_item`.
    """

    kind: str = ""
    """`run`, `watch`, `deliver` or `loop`; "" if unknown."""
    run_id: str = ""
    focus: str = ""
    agent: str = ""
    model: str | None = None
    budget: float | None = None
    """The limit of the cost, in US dollars."""

    began: datetime | None = None
    """The time of the first event of the current process."""
    earlier: float = 0.0
    """Seconds that earlier processes worked on it."""
    changed: datetime | None = None
    """The time of the last event that changed anything here."""

    item: str = ""
    """The file name of the backlog item at work; "" between items and outside of a watch."""
    title: str = ""
    """The item's title, or else its file name."""
    position: int = 0
    """The number of the item, from 1; 0 if unknown."""
    total: int = 0
    """The number of items that were worked on or wait; 0 if unknown."""
    done: int = 0
    """Items completed."""
    parked: int = 0
    """Items parked."""

    iteration: int = 0
    """The iteration or session, from 1; 0 before the first."""
    max_iterations: int = 0
    """0 if unknown or without a limit."""
    role: str = ""
    """The stage: `planning`, `implementing`, `reviewing`, `audit`; `initializer`, `coding`, `sync`
    or `verify` in the deliverables loop; `plan`, `build` or `verify` in the plan/build loop."""
    stage_began: datetime | None = None
    task: int = 0
    """The number of the task at work, or of the last one, from 1; 0 before the first."""
    tasks: tuple[str, ...] = ()
    """Titles of the plan's tasks."""
    goals_met: int = 0
    """Deliverables passed, or jobs done."""
    goals: int = 0
    """Deliverables or jobs in total."""
    tools: tuple[RunningTool, ...] = ()
    """Running tool calls, in the order of their start."""
    words: str = ""
    """The beginning of the agent's last message."""
    spent: Spending = field(default_factory=Spending)

    is_idle: bool = True
    wait: Wait | None = None
    """The current wait for a usage limit or a retry."""
    is_pausing: bool = False
    paused_since: datetime | None = None
    is_stopping: bool = False
    steering: tuple[str, ...] = ()
    """Messages of a person that the agent has not received yet."""
    spec_issue: str = ""
    """The name of the spec issue that a person has to resolve."""
    login: str = ""
    """How to log in the agent, while that is what the run waits for."""
    is_blocked: bool = False
    """Whether nothing runs until a person acts."""
    outcome: str = ""
    """The state of the run once it has ended, such as `approved`."""
    message: str = ""
    """The reason for the end, if any."""
    limit: str | None = None
    """The usage limit that the agent reported last."""

    @property
    def state(self) -> ActivityState:
        """What the run is doing, in one word."""
        if self.outcome:
            return "ended"
        if self.is_stopping:
            return "stopping"
        if self.paused_since is not None:
            return "paused"
        if self.is_pausing:
            return "pausing"
        if self.wait is not None or self.is_blocked:
            return "waiting"
        return "idle" if self.is_idle else "working"

    @property
    def tool(self) -> RunningTool | None:
        """The tool call that was started last and still runs."""
        return self.tools[-1] if self.tools else None

    @property
    def task_title(self) -> str:
        """The title of the task at work; "" if unknown."""
        return self.tasks[self.task - 1] if 0 < self.task <= len(self.tasks) else ""

    @property
    def queued(self) -> int:
        """Items that wait for their turn, as far as known."""
        return max(self.total - self.position, 0)

    @property
    def cost_usd(self) -> float | None:
        """US dollars so far; None if no agent reported a cost."""
        return self.spent.cost_usd

    @property
    def tokens(self) -> int:
        """Tokens so far, without cache reads."""
        return self.spent.total_tokens

    @property
    def calls(self) -> tuple[str, ...]:
        """What waits for a person, each in one line."""
        issue = (f"Resolve spec issue {self.spec_issue}",) if self.spec_issue else ()
        login = (f"Log in: {self.login}",) if self.login else ()
        return (*issue, *login)

    def elapsed(self, now: datetime) -> float:
        """Return the seconds that all processes of the run have worked on it."""
        end = self.changed if self.outcome and self.changed else now
        running = (end - self.began).total_seconds() if self.began else 0.0
        return self.earlier + max(running, 0.0)

    def add(self, event: Event, *, at: datetime) -> Activity:
        """Return the activity with one more event, which came at this time."""
        fold = _FOLDS.get(type(event).__name__)
        if fold is None or (self.item and isinstance(event, RunResumed)):
            return self  # the resumed run of an item counts from here
        activity = fold(self, event, at)
        spent = activity.spent.add(event)
        if activity is self and spent is self.spent:
            return self
        return replace(activity, spent=spent, began=activity.began or at, changed=at)

    def with_item(self, run: Activity) -> Activity:
        """Return this watch with the stage, task, tool and words of its item's own run."""
        return replace(self, **{name: getattr(run, name) for name in _OF_ITEM})

    def _at_work(self, **changes: Any) -> Activity:
        """Return the activity of a running agent: nothing is waited for."""
        return replace(self, is_idle=False, is_blocked=False, wait=None, **changes)

    def _staged(self, role: str, at: datetime, **changes: Any) -> Activity:
        """Return the activity at the start of a stage."""
        return self._at_work(
            role=role, stage_began=at, tools=(), words="", **{"task": 0, **changes}
        )

    def _between(self, **changes: Any) -> Activity:
        """Return the activity of a watch without an item at work."""
        return replace(self, **{**_NO_RUN, "item": "", "title": "", **changes})

    def _called(self, tool: RunningTool) -> Activity:
        return self._at_work(tools=(*self.tools, tool)[-_TOOLS:])


Fold: TypeAlias = Callable[[Activity, Any, datetime], Activity]

_NO_RUN: Mapping[str, Any] = MappingProxyType(
    {
        "iteration": 0,
        "role": "",
        "stage_began": None,
        "task": 0,
        "tasks": (),
        "tools": (),
        "words": "",
        "wait": None,
    }
)
_OF_ITEM = (*_NO_RUN, "max_iterations", "agent", "model", "focus", "is_idle")


# The run


def _started(self: Activity, event: RunStarted, at: datetime) -> Activity:
    if self.kind == "watch" and event.kind == "run":
        return self  # the run of an item
    options = event.options
    model, budget = options.get("model"), options.get("budget")
    return replace(
        self,
        kind=event.kind,
        run_id=event.run_id,
        focus=event.focus,
        agent=event.agent,
        model=model if isinstance(model, str) else None,
        budget=float(budget) if isinstance(budget, int | float) else None,
        max_iterations=_whole(options.get("max_iterations")),
        began=at,
        is_idle=False,
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _continued(self: Activity, _event: object, at: datetime) -> Activity:
    """Another process resumes the run; what the earlier one did last is not running."""
    began, last = self.began or at, self.changed or at
    return replace(
        self,
        began=at,
        earlier=self.earlier + max((last - began).total_seconds(), 0.0),
        tools=(),
        wait=None,
        is_idle=False,
        is_blocked=False,
        is_stopping=False,
        outcome="",
        message="",
    )


def _resumed(self: Activity, event: RunResumed, at: datetime) -> Activity:
    return replace(self, run_id=event.run_id, earlier=event.duration, began=at, is_idle=False)


def _ended(self: Activity, event: RunEnded, _at: datetime) -> Activity:
    return _over(self, event.state, event.message)


def _over(self: Activity, outcome: str, message: str) -> Activity:
    return replace(
        self,
        outcome=outcome,
        message=message,
        tools=(),
        wait=None,
        is_idle=True,
        is_pausing=False,
        paused_since=None,
        is_stopping=False,
    )


def _result(self: Activity, event: RunResult, _at: datetime) -> Activity:
    """The run has a result, or that of an item in a watch."""
    if self.item or self.kind == "watch":
        return replace(self, tools=(), wait=None)
    return _over(self, event.state, event.message)


def _spec_issue(self: Activity, event: LoopSpecIssue, at: datetime) -> Activity:
    return replace(_result(self, event, at), spec_issue=event.filename)


# The coding loop


def _iteration(self: Activity, event: IterationStart, _at: datetime) -> Activity:
    return self._at_work(
        iteration=event.iteration, max_iterations=event.max_iterations, task=0, tasks=()
    )


def _planning(self: Activity, _event: object, at: datetime) -> Activity:
    return self._staged("planning", at, tasks=())


def _implementing(self: Activity, _event: object, at: datetime) -> Activity:
    return self._staged("implementing", at, task=max(self.task, 1))


def _reviewing(self: Activity, _event: object, at: datetime) -> Activity:
    return self._staged("reviewing", at, task=self.task)


def _progress(self: Activity, _event: Progress, _at: datetime) -> Activity:
    return replace(self, task=self.task + 1)


def _plan(self: Activity, event: PlanWritten, _at: datetime) -> Activity:
    return replace(self, tasks=plan_titles(event.text))


def plan_titles(plan: str) -> tuple[str, ...]:
    """Return the titles of a plan's tasks: its headings `## Task N: title`."""
    titles = []
    for line in plan.splitlines():
        head, colon, title = line.partition(":")
        words = head.split()
        if words[:2] == ["##", "Task"] and len(words) == 3 and words[2].isdigit():
            titles.append(title.strip() if colon else "")
    return tuple(titles)


def _setup(self: Activity, event: SetupCommandStarted, at: datetime) -> Activity:
    return self._called(RunningTool(name="Setup", target=event.command[:_TARGET], since=at))


def _check(self: Activity, event: CheckCommandStarted, at: datetime) -> Activity:
    return self._called(RunningTool(name="Check", target=event.command[:_TARGET], since=at))


def _command_ended(self: Activity, _event: object, _at: datetime) -> Activity:
    return replace(self, tools=())


# The agent


def _message(self: Activity, event: AgentMessage, _at: datetime) -> Activity:
    words = event.text[: 4 * _WORDS].strip()[:_WORDS]
    if event.parent_tool_use_id is not None or not words:
        return self
    return self._at_work(words=words)


def _tool(self: Activity, event: ToolCall, at: datetime) -> Activity:
    target = tool_target(event.name, event.input)[:_TARGET]
    return self._called(RunningTool(name=event.name, target=target, since=at, id=event.id))


def _tool_result(self: Activity, event: ToolResult, _at: datetime) -> Activity:
    left = tuple(tool for tool in self.tools if tool.id != event.name)
    if len(left) == len(self.tools):
        left = self.tools[:-1] if event.name == "unknown" else self.tools
    return self if len(left) == len(self.tools) else replace(self, tools=left)


def _session_ended(self: Activity, event: SessionEnded, _at: datetime) -> Activity:
    return replace(self, tools=(), login="" if event.outcome == "completed" else self.login)


def _began_again(self: Activity, _event: object, _at: datetime) -> Activity:
    return self._at_work(tools=())


def _running(self: Activity, _event: object, _at: datetime) -> Activity:
    return self if self.wait is None else replace(self, wait=None)


def _spent(self: Activity, _event: object, _at: datetime) -> Activity:
    return self


# Supervision


def _retry(self: Activity, event: AgentRetry, at: datetime) -> Activity:
    wait = Wait(
        reason=event.reason,
        until=at + timedelta(seconds=event.retry_in),
        attempt=event.attempt,
        max_attempts=event.max_retries,
    )
    return replace(self, wait=wait, tools=())


def _rate_limited(self: Activity, event: RateLimited, _at: datetime) -> Activity:
    return self if event.limit is None else replace(self, limit=event.limit)


def _quota(self: Activity, event: QuotaWaiting, at: datetime) -> Activity:
    until = at + timedelta(seconds=event.remaining)
    return replace(self, tools=(), wait=Wait(reason="quota", until=until, limit=self.limit))


def _fell_back(self: Activity, event: AgentFellBack, _at: datetime) -> Activity:
    return self._at_work(tools=(), agent=event.to_agent, model=None)


# The watch


def _item(self: Activity, event: WatchProcessingItem, _at: datetime) -> Activity:
    return self._between(
        kind="watch",
        item=event.filename,
        title=event.title or event.filename,
        position=event.position,
        total=event.total,
        is_idle=False,
        is_blocked=False,
        spec_issue="",
    )


def _completed(self: Activity, _event: object, _at: datetime) -> Activity:
    return self._between(done=self.done + 1, login="")


def _parked(self: Activity, _event: WatchItemParked, _at: datetime) -> Activity:
    return self._between(parked=self.parked + 1)


def _put_back(self: Activity, _event: object, _at: datetime) -> Activity:
    return self._between()


def _item_retry(self: Activity, event: WatchItemRetry, at: datetime) -> Activity:
    wait = Wait(
        reason="login" if event.login else "retry",
        until=at + timedelta(seconds=event.retry_in),
        attempt=event.attempt + 1 if event.counted else 0,
        max_attempts=event.max_attempts if event.counted else 0,
    )
    login = event.message if event.login else self.login
    return self._between(wait=wait if event.retry_in else None, login=login)


def _backlog_empty(self: Activity, _event: object, _at: datetime) -> Activity:
    return self._between(kind="watch", is_idle=True, is_blocked=False, spec_issue="")


def _issue_waiting(self: Activity, _event: object, _at: datetime) -> Activity:
    return self._between(kind="watch", is_idle=True, is_blocked=True)


def _audit(self: Activity, _event: object, at: datetime) -> Activity:
    return self._between()._staged("audit", at)


def _audit_ended(self: Activity, _event: object, _at: datetime) -> Activity:
    return self._between(is_idle=True)


# The loops of sessions


def _delivery_session(self: Activity, event: DeliverSessionStarted, at: datetime) -> Activity:
    model = event.model or self.model
    return self._staged(event.instruction, at, iteration=event.session, model=model, kind="deliver")


def _deliverables(self: Activity, event: DeliverablesListed, _at: datetime) -> Activity:
    return replace(self, kind="deliver", goals_met=event.passed, goals=len(event.deliverables))


def _phase(self: Activity, event: PlanBuildPhaseStarted, at: datetime) -> Activity:
    return self._staged(event.phase, at, iteration=event.iteration, kind="loop")


def _jobs(self: Activity, event: JobsCounted, _at: datetime) -> Activity:
    return replace(self, kind="loop", goals_met=event.done, goals=event.total)


# Commands of a person


def _pause_asked(self: Activity, _event: object, _at: datetime) -> Activity:
    return self if self.paused_since else replace(self, is_pausing=True)


def _run_paused(self: Activity, _event: object, at: datetime) -> Activity:
    return replace(self, is_pausing=False, paused_since=self.paused_since or at, tools=())


def _pause_ended(self: Activity, _event: object, _at: datetime) -> Activity:
    return replace(self, is_pausing=False, paused_since=None)


def _stop_asked(self: Activity, _event: object, _at: datetime) -> Activity:
    return replace(self, is_stopping=True)


def _steer_asked(self: Activity, event: SteerAsked, _at: datetime) -> Activity:
    return replace(self, steering=(*self.steering, event.text))


def _steered(self: Activity, event: Steered, _at: datetime) -> Activity:
    if event.text not in self.steering:
        return replace(self, steering=()) if self.steering and event.to == "prompt" else self
    place = self.steering.index(event.text)
    return replace(self, steering=self.steering[:place] + self.steering[place + 1 :])


_FOLDS: Mapping[str, Fold] = MappingProxyType(
    {
        "RunStarted": _started,
        "RunContinued": _continued,
        "RunResumed": _resumed,
        "RunEnded": _ended,
        "LoopApproved": _result,
        "LoopMaxIterations": _result,
        "LoopStalled": _result,
        "LoopSpecIssue": _spec_issue,
        "DeliverEnded": _result,
        "PlanBuildEnded": _result,
        "IterationStart": _iteration,
        "PlanningStart": _planning,
        "ImplementingStart": _implementing,
        "ReviewingStart": _reviewing,
        "Progress": _progress,
        "PlanWritten": _plan,
        "SetupCommandStarted": _setup,
        "CheckCommandStarted": _check,
        "SetupCommandOutput": _command_ended,
        "CheckCommandOutput": _command_ended,
        "AgentMessage": _message,
        "ToolCall": _tool,
        "ToolResult": _tool_result,
        "SessionEnded": _session_ended,
        "SystemMessage": _running,
        "Thinking": _running,
        "UsageUpdate": _spent,
        "AgentNudged": _began_again,
        "AgentReplaced": _began_again,
        "AgentRetry": _retry,
        "AgentFellBack": _fell_back,
        "RoleViolated": _spent,
        "RateLimited": _rate_limited,
        "QuotaWaiting": _quota,
        "QuotaLifted": _running,
        "WatchProcessingItem": _item,
        "WatchItemCompleted": _completed,
        "WatchItemParked": _parked,
        "WatchItemRetained": _put_back,
        "WatchItemRetry": _item_retry,
        "WatchBacklogWaiting": _backlog_empty,
        "WatchSpecIssueWaiting": _issue_waiting,
        "WatchAuditStarted": _audit,
        "WatchAuditEnded": _audit_ended,
        "WatchAuditFailed": _audit_ended,
        "WatchAuditInterrupted": _audit_ended,
        "DeliverSessionStarted": _delivery_session,
        "DeliverablesListed": _deliverables,
        "PlanBuildPhaseStarted": _phase,
        "JobsCounted": _jobs,
        "PauseAsked": _pause_asked,
        "ContinueAsked": _pause_ended,
        "RunPaused": _run_paused,
        "PauseEnded": _pause_ended,
        "StopAsked": _stop_asked,
        "SteerAsked": _steer_asked,
        "Steered": _steered,
    }
)
"""How each event changes the activity, by its tag, so that no event is loaded for it."""

_PASSING = frozenset(
    {"AgentMessage", "SystemMessage", "Thinking", "ToolCall", "ToolResult", "UsageUpdate"}
)

LASTING = frozenset(_FOLDS) - _PASSING
"""Tags of the events whose effects last: of the others only the latest ones matter."""
