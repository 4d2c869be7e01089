"""Events about the files and the check that an approval depends on."""

from cuggino.events.loop import LoopPhaseEvent


class GateChanged(LoopPhaseEvent):
    """Files that an approval depends on have changed since the start; the reviewer is informed."""

    paths: tuple[str, ...]
    """Files that the check command names or `gatePaths` lists, specifications, and tests that are
    removed or newly skipped."""
    check: tuple[str, ...] = ()
    """Files of the check that neither the focus nor a specification asks to change."""
    weakened: tuple[str, ...] = ()
    """Test files with fewer tests, or more skip markers, than at the start."""


class ApprovalBlocked(LoopPhaseEvent):
    """With `gate: block`, an approval was rejected.

    The check before it had failed, or files of the check itself were changed although neither the
    focus nor a specification asks for that.
    """

    exit_code: int | None
    changed: tuple[str, ...] = ()
    """Those files."""
