"""The current activity of a run, as a fold over its events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast

from cuggino.domain import (
    Spending,
    TokenCount,
    merged_windows,
    task_titles,
    title_of,
    unreset,
    with_window,
)
from cuggino.events import (
    AgentFellBack,
    AgentMessage,
    AgentRetry,
    CheckCommandStarted,
    ClusterWorker,
    DeliverablesListed,
    DeliverSessionStarted,
    Event,
    Forecast,
    IterationStart,
    JobsCounted,
    LoopSpecIssue,
    PlanBuildPhaseStarted,
    PlanWritten,
    Progress,
    QuotaUsed,
    QuotaWaiting,
    RateLimited,
    RunContinued,
    RunEnded,
    RunResult,
    RunResumed,
    RunStarted,
    SessionEnded,
    SetupCommandStarted,
    SteerAsked,
    Steered,
    ToolCall,
    ToolResult,
    WatchCandidate,
    WatchDiskFull,
    WatchFollowDelayed,
    WatchItemCompleted,
    WatchItemHeld,
    WatchItemImported,
    WatchItemParked,
    WatchItemRetained,
    WatchItemRetry,
    WatchLanded,
    WatchLanding,
    WatchPlaced,
    WatchPlaceGone,
    WatchProcessingItem,
    WatchProposal,
    WatchProposed,
    WatchSentBack,
    WatchSlotPrepared,
    WatchSlotsChanged,
    WatchWorkers,
)

ActivityState: TypeAlias = Literal[
    "idle", "working", "waiting", "pausing", "paused", "stopping", "ended"
]
"""`idle`: nothing to do. `waiting`: for a usage limit, a retry or a person. `pausing` and
`stopping`: the running stage is the last one."""

ItemPlace: TypeAlias = Literal["slot", "queue", "landing", "proposed", "sent-back", "retry"]
"""The place of an item in a watch with several slots: at work in a slot, waiting for its landing,
being landed, waiting for its pull request, sent back and waiting for a slot, or waiting for a retry
after a failure."""

_FREE = frozenset({"proposed", "sent-back"})
"""Places of items that neither work nor wait for something that is about to come."""

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
    """A wait that ends automatically."""

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
class Question:
    """A spec issue that a person has to resolve."""

    filename: str
    title: str
    """Its first line."""
    item: str = ""
    """The item that waits for it, if the others of the watch go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemEnd:
    """An item that was completed or set aside."""

    item: str
    """Its file name."""
    title: str
    note: str = ""
    """The reason why it was set aside, or `unchecked`."""


@dataclass(frozen=True, kw_only=True)
class Activity:
    """The activity of a run or watch after the events added so far.

    In a watch with several slots, `items` holds an `Activity` of the same kind for each item, while
    `item`, `role`, `tools` and the like are empty, except for the audit. `wait` and `paused_since`
    are set while all items at work wait or are paused.

    `add` returns a new value for an event that changes something, and the same value for any other.
    Events of a journal can be added too, including `RunStarted` and `RunEnded`. The journal of a
    watch has little about the runs of its items: join the activity of an item's own journal with
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
    max_tokens: int | None = None
    """The limit of the tokens."""
    count_tokens: TokenCount = "plain"
    """How `tokens` are counted."""

    began: datetime | None = None
    """The time of the first event of the current process."""
    earlier: float = 0.0
    """Seconds that earlier processes worked on it."""
    forecast: Forecast | None = None
    """The usual duration and cost; of a watch, those of an item."""
    changed: datetime | None = None
    """The time of the last event that changed anything here."""

    item: str = ""
    """The file name of the backlog item at work; "" between items and outside of a watch."""
    item_began: datetime | None = None
    """The time when this process began with the item; None between items."""
    title: str = ""
    """The item's title, or else its file name."""
    position: int = 0
    """The number of the item, from 1; 0 if unknown."""
    total: int = 0
    """The number of items that were worked on or wait; 0 if unknown."""
    slot: int = 0
    """The slot of an item, from 1; 0 outside of `items`."""
    folder: str = ""
    """The folder of that slot, once it is prepared."""
    worker: str = ""
    """The worker of a cluster where an item is at work; "" on this machine."""
    lost: tuple[str, ...] = ()
    """The workers that were lost with an item, which went on elsewhere."""
    place: ItemPlace | None = None
    """The place of an item; None outside of `items`."""
    returns: int = 0
    """The number of times the item's landing sent it back."""
    return_reason: str = ""
    """The latest reason for that: `conflict`, `check`, `setup`, `changed-files`, `ci`, `review`."""
    commit: str = ""
    """The candidate of an item that waits for its landing, or is being landed; the head of the
    branch of one that is proposed."""
    pull_request: int = 0
    """The number of its pull request, if it has one."""
    pull_url: str = ""
    pull_state: str = ""
    """The state of the pull request, as in `WatchProposal`; "" before it is known."""
    pull_note: str = ""
    """The reason for that state."""
    items: tuple[Activity, ...] = ()
    """The items of a watch with several slots that were begun and are not put away."""
    slots: int = 0
    """The slots of a watch; 0 if it works in the project itself."""
    active_slots: int = 0
    """The slots that may be at work at once."""
    workers: tuple[ClusterWorker, ...] | None = None
    """The workers of the cluster that a watch uses, as seen last; None without one."""
    dashboard: str = ""
    """The address of Dask's own dashboard; "" without one."""
    held: tuple[tuple[str, str], ...] = ()
    """Items that wait for another one or for a person, each with the reason."""
    branch: str = ""
    """The user's branch, if it does not follow the trunk yet."""
    return_reasons: tuple[tuple[str, str], ...] = ()
    """Items that were sent back, each with the latest reason, also once they are put away."""
    follow_delayed: str = ""
    """The reason why the user's branch does not follow the trunk yet; "" if it does."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Titles of the items so far, by file name."""
    completed: tuple[ItemEnd, ...] = ()
    set_aside: tuple[ItemEnd, ...] = ()
    """Items parked."""

    iteration: int = 0
    """The iteration or session, from 1; 0 before the first."""
    max_iterations: int = 0
    """0 if unknown or without a limit."""
    role: str = ""
    """The stage: `planning`, `implementing`, `reviewing`, `audit`; `preparing` or `resumed` before
    the first one of an item in a slot; `initializer`, `coding`, `sync` or `verify` in the
    deliver loop; `plan`, `build` or `verify` in the plan/build loop."""
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
    questions: tuple[Question, ...] = ()
    """The spec issues that a person has to resolve."""
    login: str = ""
    """Instructions for logging in the agent, while the run waits for that."""
    is_blocked: bool = False
    """True if nothing runs until a person acts."""
    outcome: str = ""
    """The state of the run once it has ended, such as `approved`."""
    message: str = ""
    """The reason for the end, if any."""
    limit: str | None = None
    """The usage limit that the agent reported last."""
    windows: tuple[QuotaUsed, ...] = ()
    """The usage windows of the agents' accounts, as reported last."""

    @property
    def state(self) -> ActivityState:
        """The state of the run, in one word."""
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
        """The latest tool call that is still running."""
        return self.tools[-1] if self.tools else None

    @property
    def task_title(self) -> str:
        """The title of the task at work; "" if unknown."""
        return self.tasks[self.task - 1] if 0 < self.task <= len(self.tasks) else ""

    @property
    def done(self) -> int:
        """Items completed."""
        return len(self.completed)

    @property
    def parked(self) -> int:
        """Items parked."""
        return len(self.set_aside)

    def title_of(self, item: str) -> str:
        """Return the title of an item, or its file name."""
        return self.titles.get(item) or item.removesuffix(".md")

    @property
    def queued(self) -> int:
        """Items that wait for their turn, as far as known."""
        return max(self.total - self.position, 0)

    @property
    def cost_usd(self) -> float | None:
        """US dollars so far; None if no cost is known."""
        return self.spent.cost_usd

    @property
    def cost_estimated(self) -> bool:
        """True if a part of the cost is an estimate."""
        return self.spent.cost_estimated

    @property
    def tokens(self) -> int:
        """Tokens so far, as their limit counts them; without one, without cache reads."""
        return self.spent.tokens(self.count_tokens)

    @property
    def token_words(self) -> str:
        """`tokens`, or `weighted tokens` if their limit counts them so."""
        return "weighted tokens" if self.count_tokens == "weighted" else "tokens"

    @property
    def calls(self) -> tuple[str, ...]:
        """The requests to a person, one line each."""
        issues = (f"Answer: {question.title}" for question in self.questions)
        login = (f"Log in: {self.login}",) if self.login else ()
        return (*issues, *login)

    @property
    def at_work(self) -> tuple[Activity, ...]:
        """The items in slots, in the order of the slots."""
        working = (one for one in self.items if one.place == "slot")
        return tuple(sorted(working, key=_slot_of))

    @property
    def queue(self) -> tuple[Activity, ...]:
        """The items that wait for their landing, the one being landed first."""
        queued = (one for one in self.items if one.place in ("queue", "landing"))
        return tuple(sorted(queued, key=_is_not_landing))

    @property
    def landing(self) -> Activity | None:
        """The item that is being landed."""
        return next((one for one in self.items if one.place == "landing"), None)

    @property
    def proposed(self) -> tuple[Activity, ...]:
        """The items that wait for their pull requests."""
        return tuple(one for one in self.items if one.place == "proposed")

    @property
    def sent_back(self) -> tuple[Activity, ...]:
        """The items that were sent back and wait for a slot."""
        return tuple(one for one in self.items if one.place == "sent-back")

    @property
    def retrying(self) -> tuple[Activity, ...]:
        """The items that wait for a retry after a failure."""
        return tuple(one for one in self.items if one.place == "retry")

    @property
    def pull_words(self) -> str:
        """The number and the state of its pull request, such as "#7 pending"."""
        return f"#{self.pull_request} {self.pull_state.replace('-', ' ')}".rstrip()

    def windows_at(self, now: datetime) -> tuple[QuotaUsed, ...]:
        """The usage windows that are not reset yet."""
        return unreset(self.windows, now)

    def of_item(self, item: str) -> Activity | None:
        """Return the activity of an item in `items`."""
        return next((one for one in self.items if one.item == item), None)

    @property
    def usual_end(self) -> datetime | None:
        """The time when the run, or the item at work, usually ends; None if unknown."""
        forecast = self.forecast
        if forecast is None or self.outcome:
            return None
        is_item = forecast.loop == "item"
        began, earlier = (self.item_began, 0.0) if is_item else (self.began, self.earlier)
        if began is None:
            return None
        return began + timedelta(seconds=max(forecast.duration - earlier, 0.0))

    def elapsed(self, now: datetime) -> float:
        """Return the seconds that all processes of the run have worked on it."""
        end = self.changed if self.outcome and self.changed else now
        running = (end - self.began).total_seconds() if self.began else 0.0
        return self.earlier + max(running, 0.0)

    def add(self, event: Event, *, at: datetime) -> Activity:
        """Return the activity after one more event at this time."""
        tag = type(event).__name__
        fold = _FOLDS.get(tag)
        if fold is None or (self.item and isinstance(event, RunResumed)):
            return self  # a resumed run of an item counts from here
        if not self.slots or tag in _OF_WATCH:
            activity = fold(self, event, at)
        elif (part := self._part_of(event)) is not None:
            activity = self._with_part(part, event, at)
        else:  # late events count only for the cost
            activity = self if event.item and tag != "SteerAsked" else fold(self, event, at)
        spent = activity.spent.add(event)
        if activity is self and spent is self.spent:
            return self
        return _changed(activity, spent=spent, began=activity.began or at, changed=at)

    def with_item(self, run: Activity, item: str | None = None) -> Activity:
        """Return this watch with the stage, task, tool and words of its item's own run.

        With several slots, `item` is the file name of the item of that run.
        """
        told = {name: getattr(run, name) for name in _OF_ITEM}
        whole = self.with_windows(run.windows)
        if not self.items:
            return _changed(whole, **told)
        part = self.of_item(item or "")
        if part is None or part.place != "slot":
            return whole
        return whole._joined(_changed(part, **told))

    def with_windows(self, windows: Iterable[QuotaUsed]) -> Activity:
        """Return the activity with the usage windows that another run has reported."""
        known = merged_windows(self.windows, windows)
        return self if known == self.windows else _changed(self, windows=known)

    def _part_of(self, event: Event) -> Activity | None:
        """Return the item that an event is about: its own, or the one being landed."""
        if event.item is not None:
            return self.of_item(event.item)
        return self.landing if type(event).__name__ in _COMMANDS else None

    def _with_part(self, part: Activity, event: Event, at: datetime) -> Activity:
        """Return the watch after an event of one of its items."""
        if isinstance(event, RunResumed):  # which does not repeat the start of its stage
            return self._joined(_changed(part, role="resumed", stage_began=at))
        if isinstance(event, RunEnded):
            return self
        after = part.add(event, at=at)
        whole = self._joined(after)
        match type(event).__name__:
            case "LoopSpecIssue":
                asked = (replace(question, item=part.item) for question in after.questions)
                return _changed(whole._without(part.item), questions=(*self.questions, *asked))
            case "SessionEnded" if not after.login and self.login:
                return _changed(whole, login="" if _completed_well(event) else self.login)
            case "Steered" if after is part:
                return _steered(whole, cast("Steered", event), at)
            case "RunPaused" | "PauseEnded":
                return _changed(whole, is_pausing=self.is_pausing and whole.paused_since is None)
            case _:
                return whole

    def _joined(self, part: Activity) -> Activity:
        """Return the watch with this new activity of one of its items."""
        before = self.of_item(part.item)
        if part is before:
            return self
        return self._of_parts(tuple(part if one is before else one for one in self.items))

    def _of_parts(self, items: tuple[Activity, ...], **changes: Any) -> Activity:
        """Return the watch with these items; it waits and pauses when all at work do."""
        working = [one for one in items if one.place == "slot"]
        waiting = working or [one for one in items if one.place not in _FREE]
        waits = [one.wait for one in waiting if one.wait is not None]
        pauses = [one.paused_since for one in working if one.paused_since is not None]
        all_wait = waits and len(waits) == len(waiting)
        was_paused = any(one.paused_since is not None for one in self.items)
        paused = max(pauses) if pauses and len(pauses) == len(working) else None
        return _changed(
            self,
            **{
                "items": items,
                "wait": min(waits, key=_end_of) if all_wait else None,
                "paused_since": paused if pauses or was_paused else self.paused_since,
                "is_idle": self.is_idle and all(one.place == "proposed" for one in items),
                "is_blocked": self.is_blocked and not working,
                **changes,
            },
        )

    def _without(self, item: str, **changes: Any) -> Activity:
        """Return the watch without this item in a slot or queue."""
        left = tuple(one for one in self.items if one.item != item)
        return self._of_parts(left, **changes)

    def _moved(self, item: str, **changes: Any) -> Activity:
        """Return the watch with this item moved to another place, as the last item."""
        part = self.of_item(item) or Activity(kind="watch", item=item, title=item)
        left = tuple(one for one in self.items if one.item != item)
        moved = {**_NO_RUN, "is_idle": False, "worker": "", **changes}
        return self._of_parts((*left, _changed(part, **moved)))

    def _at_work(self, **changes: Any) -> Activity:
        """Return the activity of a running agent, without a wait."""
        return _changed(self, is_idle=False, is_blocked=False, wait=None, **changes)

    def _staged(self, role: str, at: datetime, **changes: Any) -> Activity:
        """Return the activity at the start of a stage."""
        return self._at_work(
            role=role, stage_began=at, tools=(), words="", **{"task": 0, **changes}
        )

    def _between(self, **changes: Any) -> Activity:
        """Return the activity of a watch without an item at work."""
        none = {"item": "", "item_began": None, "title": ""}
        return _changed(self, **{**_NO_RUN, **none, **changes})

    def _called(self, tool: RunningTool) -> Activity:
        return self._at_work(tools=(*self.tools, tool)[-_TOOLS:])


def _changed(activity: Activity, **changes: Any) -> Activity:
    """Return the activity with some fields changed.

    Does the same as `replace` at a tenth of its cost: it runs for each event, with many fields.
    """
    changed = object.__new__(Activity)
    changed.__dict__.update(activity.__dict__, **changes)
    return changed


def _slot_of(activity: Activity) -> int:
    return activity.slot


def _is_not_landing(activity: Activity) -> bool:
    return activity.place != "landing"


def _end_of(wait: Wait) -> datetime:
    return wait.until


def _completed_well(event: Event) -> bool:
    return isinstance(event, SessionEnded) and event.outcome == "completed"


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


def _token_count(options: Mapping[str, object]) -> TokenCount:
    """Return how the tokens of the run are counted; a run without a limit counts plain ones."""
    weighs = options.get("count_tokens") == "weighted" and options.get("max_tokens")
    return "weighted" if weighs else "plain"


def _limits(options: Mapping[str, object]) -> dict[str, Any]:
    """Return the limits of the run in money and tokens."""
    budget = options.get("budget")
    return {
        "budget": float(budget) if isinstance(budget, int | float) else None,
        "max_tokens": _whole(options.get("max_tokens")) or None,
        "count_tokens": _token_count(options),
    }


def _started(self: Activity, event: RunStarted, at: datetime) -> Activity:
    if self.kind == "watch" and event.kind == "run":
        return self  # the run of an item
    options = event.options
    model = options.get("model")
    return _changed(
        self,
        kind=event.kind,
        run_id=event.run_id,
        focus=event.focus,
        agent=event.agent,
        model=model if isinstance(model, str) else None,
        **_limits(options),
        max_iterations=_whole(options.get("max_iterations")),
        slots=_slots(event),
        active_slots=_slots(event),
        began=at,
        is_idle=False,
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _slots(event: RunStarted) -> int:
    """Return the slots of a watch that has several."""
    slots = _whole(event.options.get("slots")) if event.kind == "watch" else 0
    return slots if slots > 1 else 0


_PLACES: Mapping[ItemPlace | None, ItemPlace] = MappingProxyType(
    {
        "queue": "queue",
        "landing": "queue",
        "proposed": "proposed",
        "sent-back": "sent-back",
        "retry": "retry",
    }
)
"""The places of items after their process was killed."""


def _continued(self: Activity, event: RunContinued, at: datetime) -> Activity:
    """Return the activity of a resumed run, without the running tools of the earlier process."""
    began, last = self.began or at, self.changed or at
    return _changed(
        self,
        **(_limits(event.options) if event.options else {}),
        began=at,
        earlier=self.earlier + max((last - began).total_seconds(), 0.0),
        tools=(),
        wait=None,
        items=tuple(
            _changed(one, **{**_NO_RUN, "wait": one.wait}, place=_PLACES[one.place])
            for one in self.items
            if one.place in _PLACES
        ),
        workers=None,
        is_idle=False,
        is_blocked=False,
        is_stopping=False,
        outcome="",
        message="",
    )


def _resumed(self: Activity, event: RunResumed, at: datetime) -> Activity:
    return _changed(self, run_id=event.run_id, earlier=event.duration, began=at, is_idle=False)


def _ended(self: Activity, event: RunEnded, _at: datetime) -> Activity:
    return _over(self, event.state, event.message)


def _over(self: Activity, outcome: str, message: str) -> Activity:
    return _changed(
        self,
        outcome=outcome,
        message=message,
        items=(),
        workers=None,
        tools=(),
        wait=None,
        is_idle=True,
        is_pausing=False,
        paused_since=None,
        is_stopping=False,
    )


def _result(self: Activity, event: RunResult, _at: datetime) -> Activity:
    """Return the activity after a result of the run, or of an item in a watch."""
    if self.item or self.kind == "watch":
        return _changed(self, tools=(), wait=None)
    return _over(self, event.state, event.message)


def _spec_issue(self: Activity, event: LoopSpecIssue, at: datetime) -> Activity:
    title = title_of(event.content) or event.filename
    asked = Question(filename=event.filename, title=title)
    return _changed(_result(self, event, at), questions=(asked,))


def _forecast(self: Activity, event: Forecast, _at: datetime) -> Activity:
    return _changed(self, forecast=event)


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
    return _changed(self, task=self.task + 1)


def _plan(self: Activity, event: PlanWritten, _at: datetime) -> Activity:
    return _changed(self, tasks=task_titles(event.text))


def _setup(self: Activity, event: SetupCommandStarted, at: datetime) -> Activity:
    return self._called(RunningTool(name="Setup", target=event.command[:_TARGET], since=at))


def _check(self: Activity, event: CheckCommandStarted, at: datetime) -> Activity:
    return self._called(RunningTool(name="Check", target=event.title[:_TARGET], since=at))


def _command_ended(self: Activity, _event: object, _at: datetime) -> Activity:
    return _changed(self, tools=())


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
    return self if len(left) == len(self.tools) else _changed(self, tools=left)


def _session_ended(self: Activity, event: SessionEnded, _at: datetime) -> Activity:
    return _changed(self, tools=(), login="" if event.outcome == "completed" else self.login)


def _began_again(self: Activity, _event: object, _at: datetime) -> Activity:
    return self._at_work(tools=())


def _running(self: Activity, _event: object, _at: datetime) -> Activity:
    return self if self.wait is None else _changed(self, wait=None)


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
    return _changed(self, wait=wait, tools=())


def _rate_limited(self: Activity, event: RateLimited, _at: datetime) -> Activity:
    return self if event.limit is None else _changed(self, limit=event.limit)


def _quota_used(self: Activity, event: QuotaUsed, at: datetime) -> Activity:
    return _changed(self, windows=with_window(unreset(self.windows, at), event))


def _quota(self: Activity, event: QuotaWaiting, at: datetime) -> Activity:
    until = at + timedelta(seconds=event.remaining)
    return _changed(self, tools=(), wait=Wait(reason="quota", until=until, limit=self.limit))


def _fell_back(self: Activity, event: AgentFellBack, _at: datetime) -> Activity:
    return self._at_work(tools=(), agent=event.to_agent, model=None)


# The watch


def _item(self: Activity, event: WatchProcessingItem, at: datetime) -> Activity:
    if event.slot:
        return _item_in_slot(self, event, at)
    return self._between(
        kind="watch",
        item=event.filename,
        item_began=at,
        title=event.title or event.filename,
        position=event.position,
        total=event.total,
        is_idle=False,
        is_blocked=False,
        questions=(),
        titles=_titled(self, event),
    )


def _titled(self: Activity, event: WatchProcessingItem) -> Mapping[str, str]:
    return {**self.titles, event.filename: event.title} if event.title else self.titles


def _item_in_slot(self: Activity, event: WatchProcessingItem, at: datetime) -> Activity:
    """Begin an item in a slot, in place of any earlier one."""
    name = event.filename
    before = self.of_item(name)
    part = Activity(
        kind="watch",
        agent=self.agent,
        model=self.model,
        max_iterations=self.max_iterations,
        forecast=self.forecast,
        began=at,
        item=name,
        item_began=at,
        title=event.title or name,
        position=event.position,
        slot=event.slot,
        place="slot",
        role="preparing",
        stage_began=at,
        returns=event.returns or (before.returns if before else 0),
        return_reason=_return_reason(self, name),
        is_idle=False,
    )
    others = tuple(
        one
        for one in self.items
        if one.item != name and not (one.place == "slot" and one.slot == event.slot)
    )
    return self._of_parts(
        (*others, part),
        kind="watch",
        position=max(self.position, event.position),
        total=event.total or self.total,
        slots=max(self.slots, event.slot),
        active_slots=self.active_slots or max(self.slots, event.slot),
        questions=_unasked(self, name),
        titles=_titled(self, event),
        held=_others(self.held, name),
        is_idle=False,
        is_blocked=False,
    )


def _unasked(self: Activity, item: str) -> tuple[Question, ...]:
    """Return the questions but those that have stopped the item, or the whole watch."""
    return tuple(question for question in self.questions if question.item not in ("", item))


def _others(pairs: tuple[tuple[str, str], ...], name: str) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in pairs if pair[0] != name)


def _prepared(self: Activity, event: WatchSlotPrepared, _at: datetime) -> Activity:
    part = self.of_item(event.filename)
    if part is None:
        return self
    worker = event.worker or part.worker
    return self._joined(_changed(part, folder=event.folder, worker=worker))


def _placed(self: Activity, event: WatchPlaced, _at: datetime) -> Activity:
    part = self.of_item(event.filename)
    return self if part is None else self._joined(_changed(part, worker=event.worker))


def _place_gone(self: Activity, event: WatchPlaceGone, at: datetime) -> Activity:
    """The attempt waits for another worker."""
    part = self.of_item(event.filename)
    if part is None:
        return self
    fresh = {**_NO_RUN, "role": "preparing", "stage_began": at, "folder": "", "worker": ""}
    return self._joined(_changed(part, **fresh, lost=(*part.lost, event.worker)))


def _workers(self: Activity, event: WatchWorkers, _at: datetime) -> Activity:
    slots, active = max(self.slots, 1), max(self.active_slots, 1)
    seen = {"workers": event.workers, "dashboard": event.dashboard}
    return _changed(self, slots=slots, active_slots=active, **seen)


def _candidate(self: Activity, event: WatchCandidate, at: datetime) -> Activity:
    if not event.approved:
        return self
    return self._moved(
        event.filename, place="queue", slot=event.slot, commit=event.commit, stage_began=at
    )


def _landing(self: Activity, event: WatchLanding, at: datetime) -> Activity:
    known = self.of_item(event.filename)
    returns = event.returns or (known.returns if known else 0)
    changes = {"commit": event.commit, "returns": returns, "stage_began": at}
    reason = _return_reason(self, event.filename)
    return self._moved(event.filename, place="landing", return_reason=reason, **changes)


def _landed(self: Activity, event: WatchLanded, _at: datetime) -> Activity:
    return self._without(event.filename)


def _proposed(self: Activity, event: WatchProposed, at: datetime) -> Activity:
    pull = {"pull_request": event.number, "pull_url": event.url, "pull_state": "", "pull_note": ""}
    return self._moved(
        event.filename, place="proposed", slot=0, commit=event.commit, stage_began=at, **pull
    )


def _proposal(self: Activity, event: WatchProposal, _at: datetime) -> Activity:
    part = self.of_item(event.filename)
    if part is None or part.place != "proposed":
        return self
    return self._joined(_changed(part, pull_state=event.state, pull_note=event.message))


def _return_reason(self: Activity, item: str) -> str:
    """Return why an item was sent back last, also after an attempt that failed; "" if unknown."""
    known = self.of_item(item)
    return (known.return_reason if known else "") or dict(self.return_reasons).get(item, "")


def _sent_back(self: Activity, event: WatchSentBack, at: datetime) -> Activity:
    moved = self._moved(
        event.filename,
        place="sent-back",
        slot=0,
        commit="",
        returns=event.returns,
        return_reason=event.reason,
        stage_began=at,
    )
    others = _others(self.return_reasons, event.filename)
    return _changed(moved, return_reasons=(*others, (event.filename, event.reason)))


def _held(self: Activity, event: WatchItemHeld, _at: datetime) -> Activity:
    held = (*_others(self.held, event.filename), (event.filename, event.reason))
    return self._without(event.filename, held=held)


def _imported(self: Activity, event: WatchItemImported, _at: datetime) -> Activity:
    if event.change not in ("held", "released", "removed"):
        return self
    others = _others(self.held, event.filename)
    mine = ((event.filename, event.reason),) if event.change == "held" else ()
    return _changed(self, held=(*others, *mine))


def _slots_changed(self: Activity, event: WatchSlotsChanged, _at: datetime) -> Activity:
    return _changed(self, slots=event.slots, active_slots=event.active)


def _disk_full(self: Activity, event: WatchDiskFull, at: datetime) -> Activity:
    stopped = tuple(
        _changed(one, **{**_NO_RUN, "wait": one.wait}, place=_PLACES[one.place])
        for one in self.items
    )
    until = at + timedelta(seconds=event.retry_in)
    return self._between(items=stopped, wait=Wait(reason="disk full", until=until))


def _follow_delayed(self: Activity, event: WatchFollowDelayed, _at: datetime) -> Activity:
    paths = f": {', '.join(event.paths)}" if event.paths else ""
    return _changed(self, branch=event.branch, follow_delayed=f"{event.reason}{paths}")


def _followed(self: Activity, _event: object, _at: datetime) -> Activity:
    return _changed(self, branch="", follow_delayed="")


def _put_away(self: Activity, name: str, **changes: Any) -> Activity:
    """Return the watch after the end of work on an item."""
    if not self.slots:
        return self._between(**changes)
    others = tuple(question for question in self.questions if question.item != name)
    left = {"questions": others, "held": _others(self.held, name)}
    return self._without(name, **{**left, **changes})


def _completed(self: Activity, event: WatchItemCompleted, _at: datetime) -> Activity:
    note = "unchecked" if event.checked is False else ""
    return _put_away(self, event.filename, completed=_ended_with(self, event, note), login="")


def _ended_with(
    self: Activity, event: WatchItemCompleted | WatchItemParked, note: str
) -> tuple[ItemEnd, ...]:
    before = self.completed if isinstance(event, WatchItemCompleted) else self.set_aside
    title = self.title_of(event.filename)
    return (*before, ItemEnd(item=event.filename, title=title, note=note))


def _parked(self: Activity, event: WatchItemParked, _at: datetime) -> Activity:
    return _put_away(self, event.filename, set_aside=_ended_with(self, event, event.reason))


def _put_back(self: Activity, event: WatchItemRetained, _at: datetime) -> Activity:
    return _put_away(self, event.filename)


def _item_retry(self: Activity, event: WatchItemRetry, at: datetime) -> Activity:
    login = event.message if event.login else self.login
    wait = Wait(
        reason="login" if event.login else "retry",
        until=at + timedelta(seconds=event.retry_in),
        attempt=event.attempt + 1 if event.counted else 0,
        max_attempts=event.max_attempts if event.counted else 0,
    )
    if self.slots and event.retry_in:  # the others go on
        parted = self._moved(event.filename, place="retry", slot=0, stage_began=at, wait=wait)
        return _changed(parted, login=login)
    if self.slots:
        return _put_away(self, event.filename, login=login)
    return self._between(wait=wait if event.retry_in else None, login=login)


def _backlog_empty(self: Activity, _event: object, _at: datetime) -> Activity:
    none = {"is_blocked": False, "questions": ()}
    is_idle = all(one.place == "proposed" for one in self.items)
    return self._between(kind="watch", is_idle=is_idle, **none)


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
    return _changed(self, kind="deliver", goals_met=event.passed, goals=len(event.deliverables))


def _phase(self: Activity, event: PlanBuildPhaseStarted, at: datetime) -> Activity:
    return self._staged(event.phase, at, iteration=event.iteration, kind="loop")


def _jobs(self: Activity, event: JobsCounted, _at: datetime) -> Activity:
    return _changed(self, kind="loop", goals_met=event.done, goals=event.total)


# Commands of a person


def _pause_asked(self: Activity, _event: object, _at: datetime) -> Activity:
    return self if self.paused_since else _changed(self, is_pausing=True)


def _run_paused(self: Activity, _event: object, at: datetime) -> Activity:
    return _changed(self, is_pausing=False, paused_since=self.paused_since or at, tools=())


def _pause_ended(self: Activity, _event: object, _at: datetime) -> Activity:
    return _changed(self, is_pausing=False, paused_since=None)


def _stop_asked(self: Activity, _event: object, _at: datetime) -> Activity:
    return _changed(self, is_stopping=True)


def _steer_asked(self: Activity, event: SteerAsked, _at: datetime) -> Activity:
    return _changed(self, steering=(*self.steering, event.text))


def _steered(self: Activity, event: Steered, _at: datetime) -> Activity:
    if event.text not in self.steering:
        return _changed(self, steering=()) if self.steering and event.to == "prompt" else self
    place = self.steering.index(event.text)
    return _changed(self, steering=self.steering[:place] + self.steering[place + 1 :])


_FOLDS: Mapping[str, Fold] = MappingProxyType(
    {
        "RunStarted": _started,
        "RunContinued": _continued,
        "RunResumed": _resumed,
        "RunEnded": _ended,
        "Forecast": _forecast,
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
        "ApprovalQuestioned": _began_again,
        "AgentRetry": _retry,
        "AgentFellBack": _fell_back,
        "RoleViolated": _spent,
        "RateLimited": _rate_limited,
        "QuotaUsed": _quota_used,
        "QuotaWaiting": _quota,
        "QuotaLifted": _running,
        "WatchProcessingItem": _item,
        "WatchSlotPrepared": _prepared,
        "WatchPlaced": _placed,
        "WatchPlaceGone": _place_gone,
        "WatchWorkers": _workers,
        "WatchSlotsChanged": _slots_changed,
        "WatchCandidate": _candidate,
        "WatchLanding": _landing,
        "WatchLanded": _landed,
        "WatchProposed": _proposed,
        "WatchProposal": _proposal,
        "WatchSentBack": _sent_back,
        "WatchItemHeld": _held,
        "WatchItemImported": _imported,
        "WatchDiskFull": _disk_full,
        "WatchFollowDelayed": _follow_delayed,
        "WatchFollowed": _followed,
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
"""The functions that apply events to the activity, by tag, so that no event class is loaded."""

_OF_WATCH = frozenset(name for name in _FOLDS if name.startswith("Watch")) | {
    *("RunStarted", "RunContinued", "PauseAsked", "ContinueAsked", "StopAsked", "QuotaUsed")
}
"""Tags of the events that change the whole watch, regardless of the item they name."""

_COMMANDS = frozenset(
    {"SetupCommandStarted", "SetupCommandOutput", "CheckCommandStarted", "CheckCommandOutput"}
)

_PASSING = frozenset(
    {"AgentMessage", "SystemMessage", "Thinking", "ToolCall", "ToolResult", "UsageUpdate"}
)

LASTING = frozenset(_FOLDS) - _PASSING
"""Tags of the events with lasting effects; of the others, only the latest ones matter."""
