"""Snapshots of the project before a stage."""

from cuggino.events.supervision import SupervisionEvent


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
