"""What a report says of a run: frozen values, without a word of HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from pydantic import JsonValue

from cuggino.events import DeliverExit, RunResumed, RunState, Usage
from cuggino.storage.journal import Entry
from cuggino.storage.journal_delivery import Delivery

ReportState = RunState | Literal["running", "killed"]
"""How the run ended, or that it has not (`running`), or that it could not say so (`killed`)."""

Ending = Literal["finished", "repeated", "unfinished", "running"]
"""How a try of a stage ended: with its outcome; cut off and done again later; cut off; not yet."""

Role = Literal[
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
"""What a stage is for, by its name; `other` are small deeds of the loop itself."""

Tone = Literal["good", "bad", "warning", "neutral"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process that worked on the run, from its first entry to its last."""

    start: datetime
    end: datetime
    state: ReportState
    reason: DeliverExit | None = None
    """Why it ended the deliverables loop, if it did."""
    message: str = ""
    command: str = ""

    @property
    def seconds(self) -> float:
        """How long it worked."""
        return (self.end - self.start).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTry:
    """One time that a stage ran: the bar of the timeline."""

    stage: str
    """Its identity: name and ordinal, such as `planning#2`."""
    name: str
    role: Role
    start: datetime
    end: datetime
    ending: Ending
    attempt: int = 1
    """Counts the tries of this stage from 1; later ones are in other processes."""
    outcome: JsonValue = None
    cost_usd: float | None = None
    usage: Usage | None = None
    session: int | None = None
    """The number of the session that it is, in the deliverables loop."""

    @property
    def title(self) -> str:
        """What a person knows it by: its identity, or its session."""
        return self.stage if self.session is None else f"session {self.session}: {self.name}"

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end - self.start).total_seconds()


class Spent(NamedTuple):
    """What the run has cost up to a moment."""

    at: datetime
    cost_usd: float | None
    """US dollars, None as long as no agent told any."""
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """All calls of one tool."""

    name: str
    calls: int = 0
    errors: int = 0
    unanswered: int = 0
    """Calls without a result: the agent was ended, or is still waiting."""
    seconds: tuple[float, ...] = ()
    """How long each answered call took, in ascending order."""


class FileChange(NamedTuple):
    """A file of a commit; None for the lines of a binary file."""

    path: str
    added: int | None
    deleted: int | None


DiffStats = Mapping[str, tuple[FileChange, ...] | None]
"""The changed files of commits by hash; None for a commit that is not there any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMade:
    """A commit of the run."""

    commit_hash: str
    message: str
    at: datetime
    stage: str | None
    pushed_to: str | None = None
    changes: tuple[FileChange, ...] | None = None
    """None when nothing is known of it."""
    gone: bool = False
    """The repository does not have it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRun:
    """A setup or check command that ended."""

    kind: Literal["setup", "check"]
    at: datetime
    round: int
    exit_code: int | None
    output: str
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a reviewer or auditor said, or an agent found wrong with the specification."""

    at: datetime
    stage: str | None
    kind: str
    tone: Tone
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something out of the ordinary: a wait, a retry, a budget, a stall, a failure."""

    at: datetime
    until: datetime | None = None
    """The end of what took time, such as a wait."""
    stage: str | None = None
    kind: str
    tone: Tone
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """Everything that a report shows of one run."""

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
    """The last entry's time; now, for a run that goes on."""
    totals: RunResumed
    """What it came to, all processes together: rounds, tasks, cost, seconds of work, ..."""
    items: int = 0
    """Backlog items completed, in a watch."""
    torn: bool = False
    """The journal ended in mid-line, and that line is left out."""
    processes: tuple[Process, ...] = ()
    stages: tuple[StageTry, ...] = ()
    spent: tuple[Spent, ...] = ()
    tools: tuple[ToolUse, ...] = ()
    """By number of calls, the most used first."""
    commits: tuple[CommitMade, ...] = ()
    commands: tuple[CommandRun, ...] = ()
    findings: tuple[Finding, ...] = ()
    notices: tuple[Notice, ...] = ()
    delivery: Delivery | None = None
    """What became of the deliverables; None unless it is a run of their loop."""
    entries: tuple[Entry, ...] = ()

    @property
    def reason(self) -> DeliverExit | None:
        """Why the deliverables loop is over; None while it goes on, and for other runs."""
        return self.processes[-1].reason if self.processes else None

    @property
    def is_sync(self) -> bool:
        """Whether deliverables were compared with the specification and verified, not made."""
        return self.options.get("workflow") == "sync"

    @property
    def worked(self) -> float:
        """Seconds that processes worked on it; the gaps between them do not count."""
        return sum(process.seconds for process in self.processes)
