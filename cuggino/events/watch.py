"""Events of the watch (CUG-022)."""

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from cuggino.events.base import Event, category_guard
from cuggino.events.loop_event import LoopEvent


class WatchLoopEvent(Event, category=True):
    """Category: progress of the watch."""


class WatchSpecIssueWaiting(WatchLoopEvent):
    """Spec issues are open; the watch waits until a person has resolved them."""


class WatchBacklogWaiting(WatchLoopEvent):
    """Nothing in the backlog can begin; the watch waits for an item."""

    proposals: int = 0
    """Items that wait for their pull requests; without any, the backlog is empty."""


class WatchProcessingItem(WatchLoopEvent):
    """The coding loop starts on a backlog item."""

    filename: str
    title: str = ""
    """The heading of the item; empty in journals of older versions."""
    position: int = 0
    """Its place among all items since the watch began, from 1; 0 if unknown."""
    total: int = 0
    """Items that are done, at work or waiting; 0 if unknown."""
    slot: int = 0
    """The slot where it is worked on, from 1; 0 in the project itself."""
    returns: int = 0
    """The number of times its landing has sent it back so far."""


class WatchItemCompleted(WatchLoopEvent):
    """A backlog item is finished and was archived."""

    filename: str
    checked: bool | None = None
    """Whether the check command decided on its approval (`LoopApproved`)."""


class WatchItemRetained(WatchLoopEvent):
    """A backlog item was changed while it was processed, and stays in the backlog."""

    filename: str


class WatchItemRetry(WatchLoopEvent):
    """Work on a backlog item failed; it is retried after a pause."""

    filename: str
    message: str
    attempt: int
    """The failed attempt, from 1."""
    max_attempts: int
    retry_in: float
    """Seconds until the next attempt."""
    counted: bool = True
    """False after a usage limit, which does not count as an attempt."""
    login: bool = False
    """True for the first event that asks a person to log in; nothing else is tried."""
    review: str = ""
    """The findings of a stalled run, which is repeated once, for the repetition."""


class WatchItemParked(WatchLoopEvent):
    """A backlog item was moved to `.cuggino/parked/`, with the reason."""

    filename: str
    reason: str


class WatchItemSkipped(WatchLoopEvent):
    """A file in the backlog is not a usable item; it is left there."""

    filename: str
    reason: str


class WatchDiskFull(WatchLoopEvent):
    """The disk is full; the watch has stopped working, and tries to continue after a pause.

    The journal does not contain this event; `RunContinued` follows there when there is room.
    """

    message: str
    retry_in: float
    """Seconds until the watch tries to continue."""


class WatchItemHeld(WatchLoopEvent):
    """A backlog item cannot begin, because of an item before it or a spec issue of its own."""

    filename: str
    reason: str


class WatchSlotPrepared(WatchLoopEvent):
    """The folder of a slot holds the base of an item, and work on it can begin."""

    filename: str
    slot: int
    """From 1."""
    folder: str
    base: str
    """The commit on which the work builds."""
    worker: str | None = None
    """The name of the worker where the folder is; None for this machine."""


class WatchPlaced(WatchLoopEvent):
    """An attempt has begun on a worker, or has continued there while the watch was not running."""

    filename: str
    slot: int
    worker: str


class WatchPlaceGone(WatchLoopEvent):
    """The worker of an attempt is gone; the attempt continues elsewhere, with the work so far."""

    filename: str
    slot: int
    worker: str
    reason: str


class ClusterWorker(BaseModel):
    """A worker of a cluster. A value, not an event."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="constants")

    name: str
    places: int
    """Maximum number of concurrent attempts."""
    busy: int = 0
    """Attempts running now, including those of other watches."""
    resources: dict[str, float] = {}
    """The resources that it offers, such as `{"claude": 2}`."""
    used: dict[str, float] = {}
    """The resources in use by running attempts."""

    @property
    def free(self) -> int:
        return max(self.places - self.busy, 0)


class WatchWorkers(WatchLoopEvent):
    """The workers of the cluster; emitted at the start of a watch, and after changes."""

    workers: tuple[ClusterWorker, ...] = ()
    joined: tuple[str, ...] = ()
    """The names of new workers."""
    left: tuple[str, ...] = ()
    """The names of workers that are gone."""
    dashboard: str = ""
    """The address of Dask's own dashboard; empty without one."""

    @property
    def places(self) -> int:
        return sum(worker.places for worker in self.workers)

    @property
    def free(self) -> int:
        return sum(worker.free for worker in self.workers)


class WatchWorkKept(WatchLoopEvent):
    """Work that was left in a slot is kept under a ref before the slot is used again."""

    ref: str
    slot: int
    filename: str = ""
    """The item of that work; empty if unknown."""
    reason: str


class WatchSlotsChanged(WatchLoopEvent):
    """The number of slots that may be at work has changed."""

    active: int
    slots: int
    """All slots of the watch."""
    reason: str


class WatchCandidate(WatchLoopEvent):
    """The work on an item is done in its slot, and waits for its landing if it is approved."""

    filename: str
    slot: int
    commit: str
    base: str
    """The commit on which the work was built."""
    attempt: int
    """Counted from 1; each earlier return or failure was one."""
    approved: bool = True
    """False if the iterations were used up without an approval. Such work never lands: its item is
    parked."""


class AttemptChosen(WatchLoopEvent):
    """Of several attempts at the same work, this one lands."""

    filename: str
    """The name of the attempt, such as `attempt-2`."""
    slot: int
    commit: str
    """Its candidate."""
    passed: int = 1
    """The number of attempts that check and review approved."""
    reason: str = ""
    """Why the judge prefers it; empty for the first one that passed."""


class AttemptLost(WatchLoopEvent):
    """An attempt has ended, and does not land."""

    filename: str
    slot: int
    why: Literal["failed", "not-approved", "overtaken", "not-chosen", "skipped"]
    """`overtaken`: another one passed before it; `not-chosen`: it passed, too."""
    reason: str
    ref: str = ""
    """The ref of its work, until the slots are cleaned; empty if it left none."""
    tried: tuple[str, ...] = ()
    """The subjects of its commits."""


class WatchLanding(WatchLoopEvent):
    """The landing of a candidate begins: it is merged into the trunk and checked."""

    filename: str
    commit: str
    """The candidate."""
    trunk: str
    """The commit of the trunk so far."""
    returns: int = 0
    """The number of times the item was sent back before."""


class WatchLanded(WatchLoopEvent):
    """A candidate has landed: the commit that was checked is the trunk."""

    filename: str
    commit: str
    """The trunk from now on, or the head of the item's branch."""
    trunk_was: str
    nothing: bool = False
    """True if the trunk contained all of the work already."""
    branch: str | None = None
    """The item's own branch, if items land on branches."""
    url: str = ""
    """The page of the pull request that was merged."""


class WatchSentBack(WatchLoopEvent):
    """A candidate did not land; its item is worked on again, before new ones."""

    filename: str
    reason: Literal["conflict", "check", "setup", "changed-files", "ci", "review"]
    """`conflict`: git cannot merge it; `check` and `setup`: the command failed on the merged work;
    `changed-files`: the command changed files that git tracks; `ci`: a job of its pull request
    failed; `review`: a person asks for changes there, or does not approve the landing."""
    output: str = ""
    """The end of the output of git, of the command or of the job, or the comments of the review."""
    paths: tuple[str, ...] = ()
    """The files in conflict, or those that were changed."""
    returns: int
    """The number of times the item has been sent back, from 1."""


class WatchFollowed(WatchLoopEvent):
    """The user's branch was moved forward to the trunk."""

    branch: str
    commit: str


class WatchFollowDelayed(WatchLoopEvent):
    """The user's branch cannot follow the trunk yet; this is retried."""

    branch: str
    commit: str
    """The trunk."""
    reason: str
    paths: tuple[str, ...] = ()
    """Files of the user that are in the way."""


class WatchFollowHealed(WatchLoopEvent):
    """Files were restored after a process was killed while it moved the user's branch forward."""

    branch: str
    restored: int
    """The number of files."""
    kept: str
    """The ref that holds them as they were found."""


class WatchTrunkMoved(WatchLoopEvent):
    """The trunk has taken over commits of the user's branch."""

    commit: str
    was: str
    """The trunk before."""
    reason: str


class WatchAuditStarted(WatchLoopEvent):
    """The audit agent starts while the watch is idle."""


class WatchAuditEnded(WatchLoopEvent):
    """The audit agent has ended."""


class WatchAuditInterrupted(WatchLoopEvent):
    """The audit agent was terminated because work arrived."""


class WatchAuditFailed(WatchLoopEvent):
    """The audit agent failed; the watch continues."""

    message: str


class WatchPolling(WatchLoopEvent):
    """A folder does not report changes and is polled instead."""

    folder: str
    reason: str


class NotificationFailed(WatchLoopEvent):
    """A notification failed; reported once, and the run or watch continues."""

    message: str


class WatchTbdItemFound(WatchLoopEvent):
    """A finding of the audit agent was stored."""

    content: str
    filename: str


WatchEvent: TypeAlias = LoopEvent | WatchLoopEvent
"""The events of the watch."""

is_watch_loop_event = category_guard(WatchLoopEvent)
