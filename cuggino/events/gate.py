"""Events of the gate: what the check says, and what an approval depends on."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeAlias, assert_never

from cuggino.events.loop import LoopPhaseEvent
from cuggino.events.supervision import SupervisionEvent


class CheckCannotFail(SupervisionEvent):
    """A command whose exit code decides always succeeds; emitted once by each process of a run."""

    command: str
    why: str
    """The reason, as a clause such as "`|| true` hides the failure of `make test`"."""


class CheckDoesNotDecide(SupervisionEvent):
    """With `gate: context`, an approval counts even if the check command fails.

    Emitted once by each process of a run; not for slots, where the check decides what lands.
    """

    command: str


_NAMED = 5
"""The tests and files that a message names."""


class Baseline(LoopPhaseEvent):
    """The check has run before the first agent: what is red now does not block an approval."""

    exit_code: int
    failing: tuple[str, ...] = ()
    """The failing tests, if the output tells them apart."""
    seconds: float = 0.0
    """The time that it took."""

    @property
    def message(self) -> str:
        if self.exit_code == 0:
            return f"passes before the first agent, in {self.seconds:.0f} s"
        missing = ", as a program was not found" if self.exit_code == 127 else ""
        what = _listed(self.failing) or f"exit code {self.exit_code}{missing}"
        return f"fails before the first agent, in {self.seconds:.0f} s: {what}"


class GateChanged(LoopPhaseEvent):
    """Files that may decide the check have changed since the start; the reviewer is informed."""

    paths: tuple[str, ...]
    """Tests, scripts and settings, what `gatePaths` lists, and specifications."""
    check: tuple[str, ...] = ()
    """In journals of 0.2.0: files of the check that nobody asked to change."""
    weakened: tuple[str, ...] = ()
    """In journals of 0.2.0: test files with fewer tests, or more skip markers."""


class CheckWeakened(LoopPhaseEvent):
    """The check passes on the work, but fails with the tests and check files of the start.

    An approval has to answer it with the clause of the specification that wants the change.
    """

    id: str
    """Such as `C1`; the same for the same failures."""
    paths: tuple[str, ...]
    """The files that hide the failure: those that were put back for this check."""
    failing: tuple[str, ...] = ()
    """The tests that fail then, if the output tells them apart."""
    output: str = ""
    """The end of the output."""

    @property
    def message(self) -> str:
        what = f": {_listed(self.failing)}" if self.failing else ""
        files = _listed(self.paths)
        return f"{self.id}: fails with the versions of the start of {files}{what}"


class CheckUnmeasured(LoopPhaseEvent):
    """Nobody knows what the changed tests and check files hide.

    The check fails in a copy of the project even with them, or no copy can be made.
    """

    paths: tuple[str, ...]

    @property
    def message(self) -> str:
        return f"cannot be run in a copy, so nobody knows what changed with {_listed(self.paths)}"


Deviation: TypeAlias = Literal["missing", "removed", "nested", "ignored", "branch"]
"""Why the current commit is not the work: it lacks files; it has files that the work tree lacks;
folders are repositories of their own; git ignores files; HEAD is elsewhere than on the branch."""


class NotInCommit(LoopPhaseEvent):
    """The current commit differs from the work that was checked."""

    reason: Deviation
    paths: tuple[str, ...] = ()
    """Files; the branch of the start, if HEAD has left it."""
    mended: bool = False
    """True if it was put right: committed, or back on the branch."""

    @property
    def message(self) -> str:
        what = _DEVIATIONS[self.reason].format(paths=_listed(self.paths))
        return f"{what}; put right" if self.mended else what


class CheckVerdict(LoopPhaseEvent):
    """The gate lets an approval count; `ApprovalBlocked` if not."""

    verdict: Literal["passed", "known"]
    """`known`: red, but only with failures from before the first agent."""
    failing: tuple[str, ...] = ()
    """The tests that failed before and now."""

    @property
    def message(self) -> str:
        what = f": {_listed(self.failing)}" if self.failing else ""
        return f"{_VERDICTS[self.verdict]}{what}"


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
        tests = _listed(self.tests)
        often = f"; {self.times} times lately" if self.times > 1 else ""
        return f"failed, then passed on the same files{f': {tests}' if tests else ''}{often}"


class ApprovalBlocked(LoopPhaseEvent):
    """With `gate: block` or `clean`, an approval does not count."""

    exit_code: int | None
    changed: tuple[str, ...] = ()
    """Files with which the check is weaker than at the start, or that the commit lacks."""
    reason: Literal["check", "weakened", "not_committed", "clean"] = "check"
    """The check failed, or fails with the files of the start, or on a clean checkout; or the commit
    lacks work."""
    failing: tuple[str, ...] = ()
    """The failing tests, if the output tells them apart."""

    @property
    def message(self) -> str:
        match self.reason:
            case "weakened":
                return f"the check fails with the versions of the start of {_listed(self.changed)}"
            case "not_committed":
                return f"the commit lacks work: {_listed(self.changed)}"
            case "clean":
                return f"the check exited with {self.exit_code} on a clean checkout"
            case "check" if self.changed:  # of 0.2.0
                return f"the check was changed ({_listed(self.changed)})"
            case "check" if self.exit_code is None:
                return "the check failed"
            case "check":
                return f"the check exited with {self.exit_code}"
            case _:
                assert_never(self.reason)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


_DEVIATIONS: Mapping[Deviation, str] = MappingProxyType(
    {
        "missing": "HEAD lacks {paths}",
        "removed": "the work tree lacks {paths}, which HEAD has",
        "nested": "HEAD cannot hold repositories of their own: {paths}",
        "ignored": "git ignores {paths}",
        "branch": "HEAD has left the branch {paths}",
    }
)
_VERDICTS = MappingProxyType(
    {
        "passed": "passes, so the approval counts",
        "known": "fails as before the first agent, so the approval counts",
    }
)
