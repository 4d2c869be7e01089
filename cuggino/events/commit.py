"""Commits and pushes of the coding loop."""

from cuggino.events.loop import LoopPhaseEvent


class CommitPerformed(LoopPhaseEvent):
    """The work of one task was committed."""

    commit_hash: str
    """Abbreviated, as by `git rev-parse --short`."""
    message: str
    left: tuple[str, ...] = ()
    """Submodules with uncommitted changes, which have to be committed inside them."""


class CommitFailed(LoopPhaseEvent):
    """A commit failed; the loop continues."""

    message: str


class PushPerformed(LoopPhaseEvent):
    """A commit was pushed."""

    commit_hash: str
    remote: str
    """The destination, as `remote/branch`."""


class PushFailed(LoopPhaseEvent):
    """A push failed; the loop continues, and the next push includes the commit."""

    message: str
