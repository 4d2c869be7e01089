"""The contents of a report as frozen values, without HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from pydantic import JsonValue

from cuggino.events import DeliverExit, RunResumed, RunState, Usage
from cuggino.storage.journal import Delivery, Entry

ReportState = RunState | Literal["running", "killed"]
"""The state of the run; `running` while in progress, `killed` without an end."""

Ending = Literal["finished", "repeated", "unfinished", "running"]
"""The end of an attempt at a stage: finished, cut off and repeated later, cut off, or running."""

StageKind = Literal[
    "planning",
    "implementing",
    "reviewing",
    "audit",
    "setup",
    "check",
    "commit",
    "push",
    "initializer",
    "coding",
    "sync",
    "verify",
    "other",
]
"""The kind of a stage by its name; `other` are small acts of the loop itself."""

Tone = Literal["good", "bad", "warning", "neutral"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process that worked on the run, from its first entry to its last."""

    start: datetime
    end: datetime
    state: ReportState
    reason: DeliverExit | None = None
    """The reason for the end of the deliverables loop, if it ended."""
    message: str = ""
    command: str = ""

    @property
    def seconds(self) -> float:
        """Return its duration."""
        return (self.end - self.start).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTry:
    """One attempt at a stage: a bar of the timeline."""

    stage: str
    """Name and ordinal, such as `planning#2`."""
    name: str
    kind: StageKind
    start: datetime
    end: datetime
    ending: Ending
    attempt: int = 1
    """The attempt at this stage, from 1; later ones are in other processes."""
    outcome: JsonValue = None
    cost_usd: float | None = None
    usage: Usage | None = None
    session: int | None = None
    """The number of its session, in the deliverables loop."""
    snapshot: str = ""
    """The files before it, as `<run>/<stage>` for `cuggino undo`."""

    @property
    def title(self) -> str:
        return self.stage if self.session is None else f"session {self.session}: {self.name}"

    @property
    def seconds(self) -> float:
        """Return its duration."""
        return (self.end - self.start).total_seconds()


class Spent(NamedTuple):
    """The cost of the run up to a moment."""

    at: datetime
    cost_usd: float | None
    """US dollars; None until an agent reports any."""
    usage: Usage


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


class FileChange(NamedTuple):
    """A file of a commit; the lines of a binary file are None."""

    path: str
    added: int | None
    deleted: int | None


DiffStats = Mapping[str, tuple[FileChange, ...] | None]
"""The changed files of commits by hash; None for a commit that no longer exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCommit:
    """A commit of the run."""

    commit_hash: str
    message: str
    at: datetime
    stage: str | None
    pushed_to: str | None = None
    changes: tuple[FileChange, ...] | None = None
    """None if unknown."""
    gone: bool = False
    """True if the repository no longer has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCommand:
    """A setup or check command that has ended."""

    kind: Literal["setup", "check"]
    at: datetime
    round: int
    exit_code: int | None
    output: str
    truncated: bool


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
    kind: str
    tone: Tone
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """The whole contents of a report on one run."""

    run_id: str
    kind: Literal["run", "watch", "deliver", "loop"]
    focus: str = ""
    item: str | None = None
    agent: str = ""
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    state: ReportState
    message: str = ""
    start: datetime
    end: datetime
    """The time of the last entry, or now for a run in progress."""
    totals: RunResumed
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
    entries: Sequence[Entry] = ()
    """All entries, which those of a `JournalFile` read from the file."""

    @property
    def reason(self) -> DeliverExit | None:
        """The reason for the end of the deliverables loop; None in progress and for other loops."""
        return self.processes[-1].reason if self.processes else None

    @property
    def is_sync(self) -> bool:
        """Return whether deliverables were verified against the specification, not implemented."""
        return self.options.get("workflow") == "sync"

    @property
    def worked(self) -> float:
        """Return the seconds that processes worked on it, without the gaps between them."""
        return sum(process.seconds for process in self.processes)
