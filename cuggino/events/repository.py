"""Uncommitted changes of a person, another branch, and a rewritten history."""

from cuggino.events.supervision import SupervisionEvent


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


class BranchChanged(SupervisionEvent):
    """Another branch was checked out during the run; commits go there from now on."""

    before: str | None
    """The branch until now; None if HEAD was detached."""
    after: str | None


class HistoryRewritten(SupervisionEvent):
    """The commit that the run began with is no longer an ancestor of the current one."""

    base: str
    """The commit that the run began with; it still exists."""
    head: str | None
    """The current commit."""
