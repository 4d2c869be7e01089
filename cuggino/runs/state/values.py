"""What the state of a run is made of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from pydantic import JsonValue

from cuggino.events import DeliverExit, EndState, Usage

StateWord: TypeAlias = Literal[
    "idle", "working", "waiting", "pausing", "paused", "stopping", "ended"
]
"""`idle`: nothing to do. `waiting`: for a usage limit, a retry, a person, or something outside of
the run. `pausing` and `stopping`: the running stage is the last one."""

ItemPlace: TypeAlias = Literal["slot", "queue", "landing", "proposed", "sent-back", "retry"]
"""The place of an item in a watch with several slots: at work in a slot, waiting for its landing,
being landed, waiting for its pull request, sent back and waiting for a slot, or waiting for a retry
after a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTool:
    """A running tool call, setup command or check command."""

    name: str
    target: str
    """Its command, file or other main parameter; may be empty."""
    since: datetime
    id: str = ""
    is_command: bool = False
    """True for a setup or check command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A wait that ends automatically."""

    reason: str
    """`quota`, `hours`, the reason of a retry, such as `overloaded`, or the kind of what is
    awaited, such as `ci`."""
    until: datetime
    """The latest end."""
    attempt: int = 0
    """The retry that follows, from 1; 0 for a usage limit."""
    max_attempts: int = 0
    """0 means no limit."""
    limit: str | None = None
    """The agent's name of the usage limit, such as `five_hour`."""
    has_end: bool = True
    """False for a wait for something outside of the run without a deadline."""
    target: str = ""
    """What is awaited outside of the run, such as "the CI of pull request 12"."""


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


RunStatus = EndState | Literal["running", "killed"]
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
    "plan",
    "build",
    "judge",
    "other",
]
"""The kind of a stage by its name; `other` are small acts of the loop itself."""

AGENT_KINDS: frozenset[StageKind] = frozenset(
    {
        *("planning", "implementing", "reviewing", "audit"),
        *("initializer", "coding", "sync", "verify"),
        *("plan", "build", "judge"),
    }
)
"""Kinds of stages with a transcript."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """What took from one time to another."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Process(Period):
    """One process that worked on the run, from its first entry to its last."""

    state: RunStatus
    reason: DeliverExit | None = None
    """The reason for the end of the deliver loop, if it ended."""
    checked: bool | None = None
    """For an approval: whether the check command decided (`LoopApproved`)."""
    message: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTry(Period):
    """One attempt at a stage: a bar of the timeline."""

    stage: str
    """Name and ordinal, such as `planning#2`."""
    name: str
    kind: StageKind
    ending: Ending
    attempt: int = 1
    """The attempt at this stage, from 1; later ones are in other processes."""
    outcome: JsonValue = None
    cost_usd: float | None = None
    cost_estimated: bool = False
    usage: Usage | None = None
    session: int | None = None
    """The number of its session, in the deliver loop."""
    snapshot: str = ""
    """The files before it, as `<run>/<stage>` for `cuggino undo`."""

    @property
    def title(self) -> str:
        return self.stage if self.session is None else f"session {self.session}: {self.name}"


ItemState = Literal[
    "working",
    "approved",
    "unchecked",
    "max_iterations",
    "spec_issue",
    "stalled",
    "parked",
    "edited",
    "failed",
    "skipped",
    "interrupted",
    "held",
    "queued",
    "landing",
    "proposed",
    "sent_back",
    "landed",
    "lost",
]
"""The state of a backlog item; `unchecked` is approved without a check that decides, `failed` will
be retried, `edited` was changed meanwhile.

With slots, the candidate of a `queued` item waits to land, and that of a `sent_back` one did not
land; a `landed` item is about to be put away. Of several attempts at the same
work, those that do not land are `lost`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedItem:
    """A backlog item in the journal of a watch."""

    name: str
    """The name of its file."""
    title: str = ""
    """Its heading; empty in journals of older versions."""
    position: int = 0
    """Its place among all items, from 1; 0 if unknown."""
    state: ItemState = "working"
    reason: str = ""
    attempts: int = 0
    start: datetime
    end: datetime | None = None
    seconds: float = 0.0
    """The time that the watch worked on it."""
    cost_usd: float | None = None
    cost_estimated: bool = False
    usage: Usage | None = None
    slot: int = 0
    """The slot of its last attempt; 0 in the project itself."""
    worker: str = ""
    """The worker of a cluster where that was; "" on this machine."""
    returns: int = 0
    """The number of times it was sent back."""
    return_reason: str = ""
    """The latest reason for that: `conflict`, `check`, `setup`, `changed-files`, `ci`, `review`."""
    candidate: str = ""
    """The commit that waits to land."""
    landed: str = ""
    """The commit as which it landed."""
    branch: str = ""
    """Its own branch, if items land on branches."""
    nothing: bool = False
    """True if all of its work was already there when it landed."""
    issue: str = ""
    """The page of the issue that was reported on."""
    pull_request: str = ""
    """The page of the pull request that has its work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotUse(Period):
    """An attempt at an item in a slot."""

    slot: int
    item: str
    state: ItemState
    """The state of the item at its end; `working` in progress."""
    worker: str = ""
    """The worker of a cluster; "" on this machine."""
    is_lost: bool = False
    """True if the worker was lost and the attempt continued elsewhere."""


LandingEnd = Literal[
    "landed",
    "proposed",
    "nothing",
    "conflict",
    "check",
    "setup",
    "changed-files",
    "ci",
    "review",
    "running",
    "cut off",
]
"""The outcome of a landing: `nothing` was left to land, or a reason why the item was sent back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing(Period):
    """The merge of a candidate into the trunk, and its check."""

    item: str
    candidate: str
    trunk: str
    """The trunk before."""
    ending: LandingEnd
    commit: str = ""
    """The trunk afterwards, or the head of the item's branch."""
    branch: str = ""
    output: str = ""
    """The end of the output of git or the command, if it was sent back."""
    paths: tuple[str, ...] = ()
    returns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptWork:
    """Work left in a slot and kept under a ref."""

    at: datetime
    ref: str
    slot: int
    item: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job of the plan/build loop that was verified."""

    id: str
    description: str
    at: datetime
    state: Literal["verified", "reopened", "blocked"]
    issues: tuple[str, ...] = ()


def process_begun(at: datetime, command: str = "") -> Process:
    """Return a process that begins; one without an end was killed."""
    return Process(start=at, end=at, state="killed", command=command)


_LONGEST = 10 * 365 * 86400.0
"""Seconds of the longest wait that is shown; a journal may name any."""


def later(at: datetime, seconds: float) -> datetime:
    """Return the time so many seconds later, at most ten years."""
    return at + timedelta(seconds=min(max(0.0, seconds), _LONGEST))
