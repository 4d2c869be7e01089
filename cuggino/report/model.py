"""The contents of a report as frozen values, without HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from pydantic import JsonValue

from cuggino import events as ev
from cuggino.domain import item_name, title_of
from cuggino.report.cutting import NOTHING, Cut
from cuggino.runs.state import (
    Delivery,
    Job,
    KeptWork,
    Landing,
    Process,
    RunStatus,
    SlotUse,
    StageKind,
    StageTry,
    WatchedItem,
)

Tone = Literal["good", "bad", "warning", "neutral"]


class Spent(NamedTuple):
    """The cost of the run up to a moment."""

    at: datetime
    cost_usd: float | None
    """US dollars; None until any are known."""
    usage: ev.Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """All calls of one tool."""

    name: str
    calls: int = 0
    errors: int = 0
    unanswered: int = 0
    """Calls without a result: the agent was terminated, or still waits."""
    seconds: Sequence[float] = ()
    """The duration of each answered call, ascending."""

    @property
    def median(self) -> float:
        """Return the median duration of the answered calls."""
        middle = len(self.seconds) // 2
        if len(self.seconds) % 2:
            return self.seconds[middle]
        return (self.seconds[middle - 1] + self.seconds[middle]) / 2


class FileChange(NamedTuple):
    """A file of a commit; the lines of a binary file are None."""

    path: str
    added: int | None
    deleted: int | None


class CommitDiff(NamedTuple):
    """The changes of a commit."""

    changes: tuple[FileChange, ...]
    patch: Cut = NOTHING

    @property
    def added(self) -> int:
        return sum(change.added or 0 for change in self.changes)

    @property
    def deleted(self) -> int:
        return sum(change.deleted or 0 for change in self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCommit:
    """A commit of the run."""

    commit_hash: str
    message: str
    at: datetime
    stage: str | None
    pushed_to: str | None = None
    diff: CommitDiff | None = None
    """None if unknown."""
    gone: bool = False
    """True if the repository no longer has it."""


def changed_lines(commits: Iterable[ReportCommit]) -> tuple[int, int] | None:
    """Return the lines that commits added and deleted, as far as known; None if unknown."""
    known = [commit.diff for commit in commits if commit.diff is not None]
    return (sum(d.added for d in known), sum(d.deleted for d in known)) if known else None


Diffs = Mapping[str, CommitDiff | None]
"""The changes of commits by hash; None for a commit that no longer exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCommand:
    """A setup or check command that has ended."""

    kind: Literal["setup", "check"]
    at: datetime
    iteration: int
    command: str = ""
    """Empty if the journal does not name it."""
    stage: str | None = None
    item: str = ""
    """The backlog item whose landing it checked, in a watch with several slots."""
    exit_code: int | None
    output: str
    truncated: bool
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFinding:
    """A finding of a reviewer or the audit, or a problem in the specification."""

    at: datetime
    stage: str | None
    kind: str
    tone: Tone
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """An unusual event: a wait, a retry, a budget, a stall, a failure."""

    at: datetime
    until: datetime | None = None
    """The end of a wait or another event with a duration."""
    stage: str | None = None
    item: str = ""
    """The backlog item, in a watch with several slots."""
    kind: str
    tone: Tone
    text: str


RowKind = Literal["agent", "subagent", "thinking", "system", "user", "steered", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a transcript: a message, or a tool call with its result."""

    n: int
    """Counted from 1 within the stage; it never changes."""
    at: datetime
    kind: RowKind
    text: Cut = NOTHING
    """The message; for a tool call its input, unless `what` shows all of it."""
    name: str = ""
    """The tool."""
    what: str = ""
    """One line on what the tool does."""
    note: str = ""
    """The changed lines of an edit."""
    form: Literal["text", "diff"] = "text"
    output: Cut | None = None
    """The result; None while the tool works, or if it has none."""
    is_error: bool = False
    seconds: float | None = None
    """The duration of an answered call."""
    denied: str = ""
    """The guard's reason, if it denied the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """The rows of one attempt at a stage; the first and the last of a long one."""

    head: Sequence[Row] = ()
    left_out: int = 0
    """Rows between head and tail."""
    tail: Sequence[Row] = ()

    def __bool__(self) -> bool:
        return bool(self.head)

    @property
    def rows(self) -> list[Row]:
        return [*self.head, *self.tail]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTask:
    """A task of a plan."""

    title: str
    is_done: bool = False
    is_at_work: bool = False
    stage: str | None = None
    """The stage that worked on it."""
    commit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A plan as the planning agent wrote it."""

    iteration: int
    at: datetime
    text: Cut
    tasks: tuple[PlanTask, ...] = ()
    finished: int = 0
    """Agents that finished a task of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSpent:
    """The duration and spending of all stages of one kind."""

    kind: StageKind
    stages: int = 0
    seconds: float = 0.0
    cost_usd: float | None = None
    cost_estimated: bool = False
    usage: ev.Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerUse:
    """The use of a cluster's worker by a watch."""

    name: str
    uses: tuple[SlotUse, ...] = ()
    is_there: bool = False
    """True if it was in the cluster when the cluster was last checked."""
    was_lost: bool = False

    @property
    def seconds(self) -> float:
        """Return the total duration of attempts on the worker."""
        return sum(use.seconds for use in self.uses)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsReport:
    """The slots of a watch, and what landed from them."""

    count: int
    uses: tuple[SlotUse, ...] = ()
    """In order of their ends; those in progress are the last."""
    landings: tuple[Landing, ...] = ()
    queue: tuple[str, ...] = ()
    """Items whose candidates wait for their landing, in order."""
    kept: tuple[KeptWork, ...] = ()
    delayed: str = ""
    """The reason why the user's branch does not follow the trunk now."""
    workers: tuple[ev.ClusterWorker, ...] | None = None
    """The workers of the cluster as seen last; None without one."""
    lost: tuple[str, ...] = ()
    """The workers that left the cluster, or were lost with an attempt."""

    @property
    def on_workers(self) -> tuple[WorkerUse, ...]:
        """Return the use of each worker, by name; empty without a cluster."""
        there = {one.name for one in self.workers or ()}
        names = sorted({*there, *self.lost, *(use.worker for use in self.uses if use.worker)})
        return tuple(
            WorkerUse(
                name=name,
                uses=tuple(use for use in self.uses if use.worker == name),
                is_there=name in there,
                was_lost=name in self.lost,
            )
            for name in names
        )

    @property
    def landed(self) -> int:
        return sum(one.ending in ("landed", "nothing") for one in self.landings)

    @property
    def returns(self) -> int:
        """Return how often an item was sent back."""
        return sum(one.returns > 0 for one in self.landings)


DecisionKind = Literal["spec issue", "parked", "finding"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision that waits for a person."""

    kind: DecisionKind
    title: str
    text: Cut = NOTHING
    path: str = ""
    """Its file, relative to the project."""
    item: str = ""
    """The backlog item that it is about; "" if unknown."""
    command: str = ""
    """The command with which to continue."""
    is_new: bool = True
    """True if it came up in this watch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """The whole contents of a report on one run."""

    run_id: str
    kind: Literal["run", "watch", "deliver", "loop"]
    focus: str = ""
    item: str | None = None
    slot: int = 0
    """The slot where it works; 0 in the project itself."""
    worker: str = ""
    """The worker of a cluster where it works; "" on this machine."""
    agent: str = ""
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    state: RunStatus
    message: str = ""
    start: datetime
    end: datetime
    """The time of the last entry, or now for a run in progress."""
    totals: ev.RunResumed
    """The totals of all processes: iterations, tasks, cost, duration, ..."""
    items: int = 0
    """Backlog items completed, in a watch."""
    torn: bool = False
    """True if the journal ends in a partial line, which is left out."""
    processes: tuple[Process, ...] = ()
    stages: tuple[StageTry, ...] = ()
    spent: tuple[Spent, ...] = ()
    tools: tuple[ToolUse, ...] = ()
    """By number of calls, the most used first."""
    commits: tuple[ReportCommit, ...] = ()
    commands: tuple[ReportCommand, ...] = ()
    findings: tuple[ReportFinding, ...] = ()
    notices: tuple[Notice, ...] = ()
    delivery: Delivery | None = None
    """The deliverables; None for the other loops."""
    watched: tuple[WatchedItem, ...] = ()
    """The items of a watch."""
    slots: SlotsReport | None = None
    """The slots of a watch; None if it works in the project itself."""
    jobs: tuple[Job, ...] = ()
    """The jobs that the plan/build loop verified."""
    counted: ev.JobsCounted | None = None
    """The latest counts of jobs; None for the other loops."""
    plans: tuple[Plan, ...] = ()
    roles: tuple[RoleSpent, ...] = ()
    """By cost, the highest first."""
    windows: tuple[ev.QuotaUsed, ...] = ()
    """The usage windows of the agents' accounts at the end, as reported last."""
    forecast: ev.Forecast | None = None
    """The usual duration and cost; of a watch, those of an item."""
    decisions: tuple[Decision, ...] = ()
    """The decisions that wait for a person, the most urgent first."""
    again: str = ""
    """The command line that resumes it; "" if nothing is left to do."""
    transcripts: Sequence[Transcript] = ()
    """One per attempt at a stage, in the order of `stages`."""
    events: int = 0
    """The entries of the journal."""

    @property
    def title(self) -> str:
        """Return the subject of the run on one line, or "" if the journal does not name it."""
        return title_of(self.focus) or item_name(self.item).removesuffix(".md")

    def title_of_item(self, name: str) -> str:
        """Return the title of an item of the watch, or else the name of its file."""
        return next((one.title for one in self.watched if one.name == name), "") or name

    def with_titles(self, text: str) -> str:
        """Return the text with the titles of the watch's items instead of their file names.

        Attempts keep their names, which are no files.
        """
        for item in self.watched if self.kind == "watch" else ():
            text = text.replace(item.name, item.title or item.name)
        return text

    @property
    def reason(self) -> ev.DeliverExit | None:
        """The reason that the deliver loop ended; None in progress and for other loops."""
        return self.processes[-1].reason if self.processes else None

    @property
    def checked(self) -> bool | None:
        """For an approval: whether the check command decided (`LoopApproved`)."""
        return self.processes[-1].checked if self.processes else None

    @property
    def lines(self) -> tuple[int, int] | None:
        """Return the lines that all commits added and deleted, as far as known."""
        return changed_lines(self.commits)

    @property
    def is_sync(self) -> bool:
        """Return whether deliverables were verified against the specification, not implemented."""
        return self.options.get("workflow") == "sync"

    @property
    def worked(self) -> float:
        """Return the seconds that processes worked on it, without the gaps between them."""
        return sum(process.seconds for process in self.processes)
