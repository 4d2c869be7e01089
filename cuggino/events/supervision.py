"""Events of supervision: retries, waits, budgets, liveness, progress, fallback."""

from datetime import datetime
from typing import Literal

from cuggino.events.base import category_guard
from cuggino.events.resumed import SupervisionEvent
from cuggino.events.usage import Usage

BudgetKind = Literal["cost", "tokens", "duration"]


class AgentRetry(SupervisionEvent):
    """An agent failed transiently; it is retried after a pause."""

    reason: str
    """An `AgentFailure`, such as `overloaded`."""
    message: str
    attempt: int
    """The retry that follows, from 1."""
    max_retries: int
    """0 means no limit."""
    retry_in: float
    """Seconds until the retry."""


class QuotaWaiting(SupervisionEvent):
    """A usage limit was reached; the stage resumes in `remaining` seconds.

    Emitted when the wait begins, then every minute.
    """

    remaining: float
    resets_at: datetime | None = None
    """When the limit is lifted, if the agent reported it."""
    message: str = ""
    """The agent's message about the limit."""


class QuotaLifted(SupervisionEvent):
    """The wait for a usage limit is over; the stage resumes."""

    waited: float
    """Seconds."""


class BudgetWarning(SupervisionEvent):
    """A share of a budget is spent (80 % by default); emitted once per budget."""

    budget: BudgetKind
    spent: float
    """US dollars, tokens or seconds."""
    limit: float


class StageCost(SupervisionEvent):
    """The cost of the agents of one stage and of the run so far; emitted when it is known."""

    phase: str
    """`planning`, `implementing`, `reviewing`, `audit`."""
    cost_usd: float | None = None
    usage: Usage | None = None
    duration: float | None = None
    """Seconds."""
    total_cost: float | None = None
    """US dollars of the whole run so far, including earlier processes of a resumed run."""
    total_usage: Usage | None = None


class AgentNudged(SupervisionEvent):
    """An agent was silent, took too long or repeated itself; its session is resumed."""

    idle: float | None = None
    """Seconds without an event; None if the stage timed out."""
    tool: str | None = None
    """The running tool, if any, or the one that was called repeatedly."""
    repeated: int | None = None
    """The number of equal calls of the tool in a row; None for another reason."""


class AgentReplaced(SupervisionEvent):
    """An agent stalled, again after a nudge if it got one; a new agent starts the stage again."""

    idle: float | None = None
    """Seconds without an event; None if the stage timed out."""
    tool: str | None = None
    repeated: int | None = None


class SandboxChosen(SupervisionEvent):
    """The sandbox that confines agents to their roles; emitted once by each process of a run.

    A watch emits it for all its items. It is not emitted where the sandbox is turned off, or where
    no agent of the loop can be started in one.
    """

    engine: str
    """`bubblewrap+overlay`, `bubblewrap`, `landlock` or `none`."""
    held: tuple[str, ...]
    """The roles whose agents the system confines, with everything that they start."""
    not_held: tuple[str, ...] = ()
    """The other roles; what they change without permission is reverted after each session."""
    reason: str = ""
    """Why it is not the best sandbox, or not for all roles."""


class RoleViolated(SupervisionEvent):
    """A session or a command changed something that its role may not write; it was reverted."""

    role: str
    paths: tuple[str, ...]
    """Relative to the project; `HEAD:PATH` in a commit, `:PATH` in git's index, or a reference."""
    kept: str | None = None
    """The reference, or without git the folder, that keeps what the session wrote."""
    failed: tuple[str, ...] = ()
    """The paths that could not be restored."""
    void: bool = True
    """True if the verdict is void and the agent is replaced; false for commands of a run, and if
    there are only new files, such as those of a test run."""


class ProtectedChanged(SupervisionEvent):
    """Something that the role may not write changed during a session, and was left as it is.

    A person may have edited it.
    """

    role: str
    paths: tuple[str, ...]


class AgentFellBack(SupervisionEvent):
    """An agent failed; its fallback starts the session again with the same prompt.

    Changes that the failed agent made in the project are kept.
    """

    role: str
    """The role of both agents, such as `reviewing`; empty if unknown."""
    from_agent: str
    to_agent: str
    reason: str
    """`quota`, `not_found`, or an `AgentFailure` such as `auth`."""
    message: str
    """The failed agent's error."""
    until: datetime | None = None
    """The end of the failed agent's cooldown."""


class ContradictoryMarkers(SupervisionEvent):
    """An agent ended its stage in several ways; the most cautious one counts.

    In the order of caution: `SPEC_ISSUE`, `REQUEST_CHANGES`, `PROGRESS`, `PLAN_COMPLETE`, `DONE`,
    `NO_MORE_WORK`, `APPROVED`. Emitted before the marker that counts.
    """

    phase: str
    """`planning`, `implementing`, `reviewing`."""
    counted: str
    """The tag that counts, such as `REQUEST_CHANGES`."""
    markers: tuple[tuple[str, str], ...]
    """Tag and content of each terminal marker, in the order in which the
    agent wrote them."""


class NoProgress(SupervisionEvent):
    """Agents work, but nothing changes or earlier states return."""

    kind: Literal["unchanged", "oscillating"]
    agents: int
    """Implementing agents in a row."""
    action: Literal["replan", "stop"]


class SnapshotTaken(SupervisionEvent):
    """The files of the project were saved before a stage; `cuggino undo` restores them."""

    stage: str
    """The stage that follows, such as `implementing-2`."""
    ref: str
    """The reference `refs/cuggino/snapshots/<run>/<stage>`."""
    commit: str
    left_out: tuple[tuple[str, str], ...] = ()
    """Files that no snapshot of the run holds, each with the reason, such as its size."""


class SnapshotFailed(SupervisionEvent):
    """The files of the project could not be saved before a stage; the run continues."""

    stage: str
    message: str


class DirtyFilesKept(SupervisionEvent):
    """Files had uncommitted changes when the run began.

    They stay out of its commits until somebody changes them.
    """

    paths: tuple[str, ...]


class DirtyFilesCommitted(SupervisionEvent):
    """Files that had uncommitted changes before the run have been changed by it, too.

    The next commit contains both.
    """

    paths: tuple[str, ...]


class HistoryRewritten(SupervisionEvent):
    """The commit that the run began with is no longer an ancestor of the current one."""

    base: str
    """That commit; it is still there."""
    head: str | None
    """The current commit."""


is_supervision_event = category_guard(SupervisionEvent)
