"""The state of a run, folded from its events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, cast

from cuggino import events as ev
from cuggino.domain import (
    RunCommit,
    Spending,
    Tally,
    TokenCount,
    merged_windows,
    unreset,
)
from cuggino.runs.state.delivery import Delivery
from cuggino.runs.state.stages import Stages
from cuggino.runs.state.values import (
    ItemEnd,
    ItemPlace,
    Job,
    Process,
    Question,
    RunningTool,
    StateWord,
    Wait,
    process_begun,
)
from cuggino.runs.state.watched import Watched, delay_text

_FREE = frozenset({"proposed", "sent-back"})
"""Places of items that neither work nor wait for something that is about to come."""
_TOOLS = 32
"""Running tool calls that are kept; some agents report no results."""
PASSING = (
    ev.AgentMessage,
    ev.MessageDelta,
    ev.SystemMessage,
    ev.Thinking,
    ev.ToolCall,
    ev.ToolResult,
    ev.UserMessage,
)
"""Events that count for nothing and end with their session: most of a journal."""
_OF_WATCH = (
    ev.TaskLeft,
    ev.HandsEnded,
    ev.WatchLoopEvent,
    ev.RunStarted,
    ev.RunContinued,
    ev.PauseAsked,
    ev.ContinueAsked,
    ev.StopAsked,
    ev.QuotaUsed,
)
"""Events that change the whole watch, regardless of the item they name."""
_COMMANDS = (
    ev.SetupCommandStarted,
    ev.SetupCommandOutput,
    ev.CheckCommandStarted,
    ev.CheckCommandOutput,
)


class RecordedEvent(Protocol):
    """An event with its time and its stage, such as an entry of a journal."""

    @property
    def event(self) -> ev.Event: ...
    @property
    def at(self) -> datetime: ...
    @property
    def stage(self) -> str | None: ...


@dataclass(frozen=True, kw_only=True)
class RunState:
    """The state of a run or watch after the events added so far; every view is a function of it.

    In a watch with several slots, `items` holds a `RunState` of the same kind for each item, while
    `item`, `role`, `tools` and the like are empty, except for the audit. `wait` and `paused_since`
    are set while all items at work wait or are paused.

    The events are those of a stream, or the entries of a journal, which has `RunStarted` and
    `RunEnded`, too. The journal of a watch has little about the runs of its items: join the state
    of an item's own journal with `with_item`.
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

    processes: tuple[Process, ...] = ()
    """The processes that worked on it; `worked_until` has the end of the last one."""
    last: datetime | None = None
    """The time of the last event."""
    tally: Tally = field(default_factory=Tally)
    """Iterations, tasks, agents, commits and spending."""
    stages: Stages = field(default_factory=Stages)
    watched: Watched = field(default_factory=Watched)
    """Every item of a watch, with what came of it."""
    delivery: Delivery = field(default_factory=Delivery)
    """Sessions and deliverables of the deliver loop."""
    jobs: tuple[Job, ...] = ()
    """The jobs that a plan/build loop verified."""
    counted: ev.JobsCounted | None = None
    """Their latest counts."""
    failed_commits: tuple[str, ...] = ()
    """The error of each failed commit."""
    failed_push: str = ""
    """The error of the last push, "" if it succeeded: it had all commits before it."""
    gate_changed: tuple[str, ...] = ()
    """Files of the check, removed tests and specifications that changed during the run."""
    lost_base: str | None = None
    """The commit that the run began with, if it was removed from the history."""
    result: ev.RunResult | None = None
    """The result of the loop; in a watch, that of the last item's run until another one begins."""

    forecast: ev.Forecast | None = None
    """The usual duration and cost; of a watch, those of an item."""

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
    hands: int = 0
    """The tasks of the latest plan with hands that were at work at once, at most; 0 without.
    `position` of its `total` tasks have landed."""
    undone: tuple[tuple[str, str], ...] = ()
    """The tasks of that plan that are left undone, with the reasons."""
    items: tuple[RunState, ...] = ()
    """The items of a watch with several slots, or the tasks of a run with hands, that were begun
    and are not put away."""
    slots: int = 0
    """The slots of a watch; 0 if it works in the project itself."""
    active_slots: int = 0
    """The slots that may be at work at once."""
    held: tuple[tuple[str, str], ...] = ()
    """Items that wait for another one or for a person, each with the reason."""
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
    stage_outcome: str = ""
    """The outcome of the stage, such as `Done`, until the next one begins; "" while it runs."""
    task: int = 0
    """The number of the task at work, or of the last one, from 1; 0 before the first."""
    tasks: tuple[str, ...] = ()
    """Titles of the plan's tasks."""
    tools: tuple[RunningTool, ...] = ()
    """Running tool calls, in the order of their start."""
    words: str = ""
    """The beginning of the agent's last message."""

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
    windows: tuple[ev.QuotaUsed, ...] = ()
    """The usage windows of the agents' accounts, as reported last."""

    @classmethod
    def of(cls, entries: Iterable[RecordedEvent]) -> RunState:
        """Return the state after the entries of a journal."""
        state = cls()
        for entry in entries:
            state = state.add(entry.event, at=entry.at, stage=entry.stage)
        return state

    @property
    def state(self) -> StateWord:
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
    def command(self) -> RunningTool | None:
        """The setup or check command that is running."""
        return next((tool for tool in self.tools if tool.is_command), None)

    @property
    def task_title(self) -> str:
        """The title of the task at work; "" if unknown."""
        return self.tasks[self.task - 1] if 0 < self.task <= len(self.tasks) else ""

    @property
    def done(self) -> int:
        return len(self.completed)

    @property
    def parked(self) -> int:
        return len(self.set_aside)

    def title_of(self, item: str) -> str:
        """Return the title of an item, or its file name."""
        known = self.watched.items.get(item)
        return (known.title if known else "") or item.removesuffix(".md")

    @property
    def queued(self) -> int:
        """Items that wait for their turn, as far as known."""
        return max(self.total - self.position, 0)

    @property
    def began(self) -> datetime | None:
        """The time of the first event of the current process."""
        return self.processes[-1].start if self.processes else None

    @property
    def earlier(self) -> float:
        """Seconds that earlier processes worked on it."""
        before = self.tally.before.duration if self.tally.before else 0.0
        return before + sum(max(process.seconds, 0.0) for process in self.processes[:-1])

    def worked_until(self, running_at: datetime | None = None) -> tuple[Process, ...]:
        """Return the processes; `running_at` is the current time if the last one still works."""
        if not self.processes or self.last is None:
            return ()
        last = replace(self.processes[-1], end=self.last)
        if running_at is not None and last.state == "killed":
            last = replace(last, state="running", end=max(last.end, running_at))
        return (*self.processes[:-1], last)

    @property
    def totals(self) -> ev.RunResumed:
        """The totals from which a resumed run continues; the time between processes is left out."""
        return ev.RunResumed(
            run_id=self.run_id,
            stages=self.stages.finished,
            rounds=self.tally.rounds,
            tasks=self.tally.tasks,
            agents=self.tally.agents,
            commits=self.tally.commits,
            cost_usd=self.spent.cost_usd,
            cost_estimated=self.spent.cost_estimated,
            usage=self.spent.usage,
            duration=self.elapsed(self.last) if self.last else 0.0,
        )

    @property
    def ending(self) -> ev.RunOutcome | None:
        """How the run ended; None while it works.

        A watch that was not cut off ends as its last item.
        """
        if self.result is not None and self.kind != "watch":
            return self.result.outcome
        if self.outcome in ("interrupted", "failed", "quota", "budget"):
            return cast("ev.RunOutcome", self.outcome)
        return None if self.result is None else self.result.outcome

    @property
    def checked(self) -> bool | None:
        """For an approval: whether the check command decided (`LoopApproved`)."""
        return ev.checked_of(self.result)

    @property
    def reason(self) -> ev.DeliverExit | None:
        """The reason that the deliver loop ended; None in progress and for other loops."""
        return self.processes[-1].reason if self.processes else None

    @property
    def tbd_files(self) -> tuple[str, ...]:
        """Names of the files in `.cuggino/tbd/` that a stalled loop wrote."""
        return self.result.filenames if isinstance(self.result, ev.LoopStalled) else ()

    @property
    def spec_issue_file(self) -> str | None:
        """The name of the file in `.cuggino/spec-issues/` if the run ended with one."""
        return self.result.filename if isinstance(self.result, ev.LoopSpecIssue) else None

    @property
    def landings(self) -> tuple[RunCommit, ...]:
        """What has landed in a watch with several slots: the commit, and the item's name."""
        landed = (one for one in self.watched.landings if one.ending in ("landed", "nothing"))
        return tuple(RunCommit(one.commit[:7], one.item.removesuffix(".md")) for one in landed)

    @property
    def sent_back_count(self) -> int:
        """The number of times a candidate was sent back instead."""
        return sum(one.returns > 0 for one in self.watched.landings)

    @property
    def commits(self) -> tuple[RunCommit, ...]:
        """The commits of the run, each once."""
        return self.tally.commits

    @property
    def deliverables(self) -> ev.DeliverablesListed | None:
        """The latest deliverables; None while unknown."""
        return self.delivery.listed

    @property
    def goals_met(self) -> int:
        """Deliverables passed, or jobs done."""
        if self.counted is not None:
            return self.counted.done
        return self.delivery.listed.passed if self.delivery.listed else 0

    @property
    def goals(self) -> int:
        """Deliverables or jobs in total."""
        if self.counted is not None:
            return self.counted.total
        return len(self.delivery.listed.deliverables) if self.delivery.listed else 0

    @property
    def workers(self) -> tuple[ev.ClusterWorker, ...] | None:
        """The workers of the cluster that a watch uses, as seen last; None without one."""
        seen = None if self.outcome else self.watched.workers
        return seen.workers if seen is not None else None

    @property
    def dashboard(self) -> str:
        """The address of Dask's own dashboard; "" without one."""
        return self.watched.workers.dashboard if self.watched.workers is not None else ""

    @property
    def branch(self) -> str:
        """The user's branch, if it does not follow the trunk yet."""
        return self.watched.delayed.branch if self.watched.delayed else ""

    @property
    def follow_delayed(self) -> str:
        """The reason why the user's branch does not follow the trunk yet; "" if it does."""
        return delay_text(self.watched.delayed) if self.watched.delayed else ""

    @property
    def spent(self) -> Spending:
        """The spending of all sessions, as far as reported."""
        return self.tally.spent

    @property
    def usage(self) -> ev.Usage | None:
        """Tokens of all sessions that reported them; None if none did."""
        return self.spent.usage

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
    def placed(self) -> tuple[RunState, ...]:
        """All `items`, by what is done about them: at work, to land, and those that wait."""
        return (
            *self.at_work,
            *self.queue,
            *self.proposed,
            *self.sent_back,
            *self.retrying,
        )

    @property
    def at_work(self) -> tuple[RunState, ...]:
        """The items in slots, in the order of the slots."""
        working = (one for one in self.items if one.place == "slot")
        return tuple(sorted(working, key=_slot_of))

    @property
    def queue(self) -> tuple[RunState, ...]:
        """The items that wait for their landing, the one being landed first."""
        queued = (one for one in self.items if one.place in ("queue", "landing"))
        return tuple(sorted(queued, key=_is_not_landing))

    @property
    def landing(self) -> RunState | None:
        return next((one for one in self.items if one.place == "landing"), None)

    @property
    def proposed(self) -> tuple[RunState, ...]:
        """The items that wait for their pull requests."""
        return tuple(one for one in self.items if one.place == "proposed")

    @property
    def sent_back(self) -> tuple[RunState, ...]:
        """The items that were sent back and wait for a slot."""
        return tuple(one for one in self.items if one.place == "sent-back")

    @property
    def retrying(self) -> tuple[RunState, ...]:
        """The items that wait for a retry after a failure."""
        return tuple(one for one in self.items if one.place == "retry")

    @property
    def pull_words(self) -> str:
        """The number and the state of its pull request, such as "#7 pending"."""
        return f"#{self.pull_request} {self.pull_state.replace('-', ' ')}".rstrip()

    def windows_at(self, now: datetime) -> tuple[ev.QuotaUsed, ...]:
        """The usage windows that are not reset yet."""
        return unreset(self.windows, now)

    def of_item(self, item: str) -> RunState | None:
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
        end = self.last if self.outcome and self.last else now
        running = (end - self.began).total_seconds() if self.began else 0.0
        return self.earlier + max(running, 0.0)

    def add(self, event: ev.Event, *, at: datetime, stage: str | None = None) -> RunState:
        """Return the state after one more event at this time.

        `stage` is that of a recorded event. Without it, nothing is known to be repeated.
        """
        if isinstance(event, ev.PingEvent):
            return self
        state = self._doing(event, at)
        last = max(self.last or at, at)
        processes = state.processes or (process_begun(at),)
        if isinstance(event, PASSING):
            return changed(state, last=last, processes=processes)
        before = self.last or at
        return changed(
            state,
            last=last,
            processes=processes,
            tally=state.tally if self._ignores(event) else state.tally.add(event, stage),
            stages=self.stages.add(event, at, stage, last=before),
            watched=self.watched.add(event, at, stage, last=before),
            delivery=self.delivery.add(event, at, stage),
            result=event if isinstance(event, ev.RunResult) else state.result,
        )

    def beginning(self, at: datetime) -> RunState:
        """Return the state of a process that begins at this time, whatever was added so far."""
        return changed(self, last=max(self.last or at, at), processes=(process_begun(at),))

    def until(self, at: datetime) -> RunState:
        """Return the state after an event at this time that changes nothing else."""
        return changed(self, last=max(self.last or at, at))

    def _ignores(self, event: ev.Event) -> bool:
        """Return whether the event has totals of what was added before.

        In a journal, the entries of the earlier processes are there, too; and the run that a watch
        resumes is counted in the watch.
        """
        if not isinstance(event, ev.RunResumed):
            return False
        tally = self.tally
        return bool(event.item or tally.agents or tally.rounds or self.done or self.processes[1:])

    def _doing(self, event: ev.Event, at: datetime) -> RunState:
        """Return the state with what the run does after the event."""
        if self.item and isinstance(event, ev.RunResumed):
            return self  # a resumed run of an item counts from here
        if self.slots and not isinstance(event, _OF_WATCH):
            if (part := self._part_of(event)) is not None:
                return self._with_part(part, event, at)
            if event.item and not isinstance(event, ev.SteerAsked):
                return self  # late, of an item that is put away
        step = STEPS.get(type(event))
        return self if step is None else step(self, event, at)

    def ended(self, outcome: str) -> RunState:
        """Return the state of a run that was ended from outside, without a result."""
        return changed(self, outcome=outcome)

    def with_item(self, run: RunState, item: str | None = None) -> RunState:
        """Return this watch with the stage, task, tool and words of its item's own run.

        With several slots, `item` is the file name of the item of that run.
        """
        told = {name: getattr(run, name) for name in _OF_ITEM}
        whole = self.with_windows(run.windows)
        if not self.items:
            return changed(whole, **told)
        part = self.of_item(item or "")
        if part is None or part.place != "slot":
            return whole
        return whole.joined(changed(part, **told))

    def with_windows(self, windows: Iterable[ev.QuotaUsed]) -> RunState:
        """Return the activity with the usage windows that another run has reported."""
        known = merged_windows(self.windows, windows)
        return self if known == self.windows else changed(self, windows=known)

    def _part_of(self, event: ev.Event) -> RunState | None:
        """Return the item that an event is about: its own, or the one being landed."""
        if event.item is not None:
            return self.of_item(event.item)
        return self.landing if isinstance(event, _COMMANDS) else None

    def _with_part(self, part: RunState, event: ev.Event, at: datetime) -> RunState:
        """Return the watch after an event of one of its items."""
        if isinstance(event, ev.RunResumed):  # which does not repeat the start of its stage
            return self.joined(changed(part, role="resumed", stage_began=at))
        if isinstance(event, ev.RunEnded):
            return self
        after = part.add(event, at=at)
        whole = self.joined(after)
        match event:
            case ev.LoopSpecIssue():
                asked = (replace(question, item=part.item) for question in after.questions)
                return changed(whole.without(part.item), questions=(*self.questions, *asked))
            case ev.SessionEnded() if not after.login and self.login:
                return changed(whole, login="" if _completed_well(event) else self.login)
            case ev.Steered() if after.steering is part.steering:
                return STEPS[ev.Steered](whole, event, at)
            case ev.RunPaused() | ev.PauseEnded():
                return changed(whole, is_pausing=self.is_pausing and whole.paused_since is None)
            case _:
                return whole

    def joined(self, part: RunState) -> RunState:
        """Return the watch with this new activity of one of its items."""
        before = self.of_item(part.item)
        if part is before:
            return self
        return self.with_items(tuple(part if one is before else one for one in self.items))

    def with_items(self, items: tuple[RunState, ...], **changes: Any) -> RunState:
        """Return the watch with these items; it waits and pauses when all at work do."""
        working = [one for one in items if one.place == "slot"]
        waiting = working or [one for one in items if one.place not in _FREE]
        waits = [one.wait for one in waiting if one.wait is not None]
        pauses = [one.paused_since for one in working if one.paused_since is not None]
        all_wait = waits and len(waits) == len(waiting)
        was_paused = any(one.paused_since is not None for one in self.items)
        paused = max(pauses) if pauses and len(pauses) == len(working) else None
        return changed(
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

    def without(self, item: str, **changes: Any) -> RunState:
        """Return the watch without this item in a slot or queue."""
        left = tuple(one for one in self.items if one.item != item)
        return self.with_items(left, **changes)

    def moved(self, item: str, **changes: Any) -> RunState:
        """Return the watch with this item moved to another place, as the last item."""
        part = self.of_item(item) or RunState(kind="watch", item=item, title=item)
        left = tuple(one for one in self.items if one.item != item)
        moved = {**NO_RUN, "is_idle": False, "worker": "", **changes}
        return self.with_items((*left, changed(part, **moved)))

    def working(self, **changes: Any) -> RunState:
        """Return the activity of a running agent, without a wait."""
        return changed(self, is_idle=False, is_blocked=False, wait=None, **changes)

    def staged(self, role: str, at: datetime, **changes: Any) -> RunState:
        """Return the activity at the start of a stage."""
        begun = {"role": role, "stage_began": at, "stage_outcome": "", "tools": (), "words": ""}
        return self.working(**{**begun, "task": 0, **changes})

    def between(self, **changes: Any) -> RunState:
        """Return the activity of a watch without an item at work."""
        none = {"item": "", "item_began": None, "title": ""}
        return changed(self, **{**NO_RUN, **none, **changes})

    def called(self, tool: RunningTool) -> RunState:
        """Return the activity with one more tool; a command has ended by then."""
        tools = (one for one in self.tools if not one.is_command)
        return self.working(tools=(*tools, tool)[-_TOOLS:])


def changed(activity: RunState, **changes: Any) -> RunState:
    """Return the activity with some fields changed.

    Does the same as `replace` at a tenth of its cost: it runs for each event, with many fields.
    """
    changed = object.__new__(RunState)
    changed.__dict__.update(activity.__dict__, **changes)
    return changed


def _slot_of(activity: RunState) -> int:
    return activity.slot


def _is_not_landing(activity: RunState) -> bool:
    return activity.place != "landing"


def _end_of(wait: Wait) -> datetime:
    return wait.until


def _completed_well(event: ev.Event) -> bool:
    return isinstance(event, ev.SessionEnded) and event.outcome == "completed"


Step: TypeAlias = "Callable[[RunState, Any, datetime], RunState]"

NO_RUN: Mapping[str, Any] = MappingProxyType(
    {
        "iteration": 0,
        "role": "",
        "stage_began": None,
        "stage_outcome": "",
        "task": 0,
        "tasks": (),
        "tools": (),
        "words": "",
        "wait": None,
    }
)
_OF_ITEM = (*NO_RUN, "max_iterations", "agent", "model", "focus", "is_idle")

STEPS: dict[type[ev.Event], Step] = {}
"""What events change of that which a run does; `on` adds to it."""


def on(*kinds: type[ev.Event]) -> Callable[[Step], Step]:
    """Let a function change the state on events of these kinds."""

    def register(step: Step) -> Step:
        STEPS.update(dict.fromkeys(kinds, step))
        return step

    return register
