"""Events about the files and the check that an approval depends on."""

from cuggino.events.loop import LoopPhaseEvent

_NAMED = 5
"""The tests that a message names."""


class GateChanged(LoopPhaseEvent):
    """Files that an approval depends on have changed since the start; the reviewer is informed."""

    paths: tuple[str, ...]
    """Files that the check command names or `gatePaths` lists, specifications, and tests that are
    removed or newly skipped."""
    check: tuple[str, ...] = ()
    """Files of the check that neither the focus nor a specification asks to change."""
    weakened: tuple[str, ...] = ()
    """Test files with fewer tests, or more skip markers, than at the start."""


class CheckFlaky(LoopPhaseEvent):
    """A check that failed has passed on the same files when repeated, and counts as passed."""

    tests: tuple[str, ...] = ()
    """The tests that failed first; empty if its output does not name them."""
    times: int = 1
    """How often the check has been flaky lately because of them, this time included."""
    output: str = ""
    """The output of the run that failed."""

    @property
    def message(self) -> str:
        """The event in words."""
        tests = ", ".join(self.tests[:_NAMED])
        if (more := len(self.tests) - _NAMED) > 0:
            tests += f" and {more} more"
        often = f"; {self.times} times lately" if self.times > 1 else ""
        return f"failed, then passed on the same files{f': {tests}' if tests else ''}{often}"


class ApprovalBlocked(LoopPhaseEvent):
    """With `gate: block`, an approval was rejected.

    The check before it had failed, or files of the check itself were changed although neither the
    focus nor a specification asks for that.
    """

    exit_code: int | None
    changed: tuple[str, ...] = ()
    """Those files."""
