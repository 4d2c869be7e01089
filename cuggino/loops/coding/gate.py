"""The basis of an approval: the check's own files, the tests, the specifications.

Agents may change all three, for good reason or to get approved. So their state at the start of a
run is compared with the one before each review, and the reviewer gets the differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from reactivex import Observable

from cuggino.domain import PathState, files_of_command, is_named, is_test_file, path_changes
from cuggino.events import Approved, CheckCommandOutput, GateChanged, SpecsChanged
from cuggino.files import read_regular
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.operators import Flow, ask, emit, flow
from cuggino.stages import Workplace, act, state_of_paths

_State = dict[str, Any]
"""`check` and `specs` with a `PathState` each, and the commit `head`."""


class OwnReview(NamedTuple):
    """A review of the loop itself, after an approval that does not count."""

    content: str
    changed: tuple[str, ...] = ()
    """The files of the check that were changed, if that is the reason."""


class Gate:
    """A comparison of the files that approvals rest on; one object per run.

    A fold over the outcomes of stages. A run that an earlier version began lacks them: then nothing
    is compared.
    """

    def __init__(self, place: Workplace, options: LoopRunOptions) -> None:
        self._services = place.services
        self._options = options
        self._start: _State | None = None
        self._specs: PathState | None = None
        """The specifications as they were before the latest plan."""
        self._told: tuple[str, ...] = ()

    def begin(self, head: str | None = None) -> Flow[None]:
        """Record the state before the first agent.

        The tests are compared with those of the commit `head`; by default, of the current one.
        """
        self._start = yield from ask(flow(lambda: self._read(head)), name="gate-begin")

    @property
    def base(self) -> str | None:
        """The commit that the run began with."""
        return self._start["head"] if self._start is not None else None

    def plan(self, n: int) -> Flow[str]:
        """Report changed specifications; return the prompt section on them, or ""."""
        before = self._specs
        if before is None:
            before = self._start["specs"] if self._start is not None else None
        self._specs = yield from ask(self._specifications(), name="gate-specs")
        changed = _paths(before, self._specs)
        if changed:
            yield from emit(SpecsChanged(iteration=n, paths=changed))
        return _REPLANNED.format(paths=_listed(changed)) if changed else ""

    def review(self, n: int) -> Flow[GateChanged | None]:
        """Emit and return the differences from the start of the run; None without any."""
        if self._start is None:
            return None
        now = yield from ask(flow(lambda: self._compared(self._start or {})), name="gate-review")
        if now is None:
            return None
        check = _paths(self._start["check"], now["check"])
        specs = _paths(self._start["specs"], now["specs"])
        weakened = tuple(now.get("weakened", ()))  # none by an earlier version
        paths = tuple(sorted({*check, *specs, *now["removed"], *weakened}))
        if not paths:
            return None
        explained = tuple(path for path in check if path in now["named"])
        changed = GateChanged(
            iteration=n,
            paths=paths,
            check=tuple(p for p in check if p not in explained),
            weakened=weakened,
        )
        if paths != self._told:
            self._told = paths
            yield from emit(changed)
        return changed

    def judged(self, verdict: Approved, changed: GateChanged | None) -> OwnReview | None:
        """Return the review that replaces an approval which is void, with `gate: block`.

        Files of the check have changed, and neither the focus, a specification nor the reviewer
        names them.
        """
        if changed is None or not self._options.approval_is_checked:
            return None
        paths = tuple(path for path in changed.check if not is_named(path, verdict.content))
        return _changed_check_review(paths) if paths else None

    def approved(self, n: int) -> Flow[str | None]:
        """Return why there must be another plan although the work was approved; None if not."""
        if self._specs is None:
            return None
        now = yield from ask(self._specifications(), name="gate-approved")
        changed = _paths(self._specs, now)
        if not changed:
            return None
        self._specs = now
        yield from emit(SpecsChanged(iteration=n, paths=changed))
        return _APPROVED_BEFORE.format(paths=_listed(changed))

    def _specifications(self) -> Observable[dict[str, str] | None]:
        options = self._options
        return act(lambda: dict(state_of_paths(options.cwd, [options.specs_path])))

    def _patterns(self) -> tuple[str, ...]:
        return (*files_of_command(self._options.check_command or ""), *self._options.gate_paths)

    def _read(self, head: str | None) -> Flow[None]:
        options = self._options
        head = head or (yield from ask(self._services.repository.head()))
        yield from emit(
            {
                "head": head,
                "check": state_of_paths(options.cwd, self._patterns()),
                "specs": state_of_paths(options.cwd, [options.specs_path]),
            }
        )

    def _compared(self, start: _State) -> Flow[None]:
        options = self._options
        tests = yield from ask(self._services.changed_tests(options.cwd, start["head"]))
        removed, weakened = tests or ((), ())
        check = state_of_paths(options.cwd, self._patterns())
        changed = _paths(start["check"], check)
        specs = state_of_paths(options.cwd, [options.specs_path])
        asked_for = "\n".join([options.focus, *_texts(options.cwd, start["specs"], specs)])
        yield from emit(
            {
                "check": check,
                "specs": specs,
                "removed": [path for path in removed if is_test_file(path)],
                "weakened": [*weakened],
                "named": [path for path in changed if is_named(path, asked_for)],
            }
        )


def gate_section(changed: GateChanged | None) -> str:
    """Return the section on the change in the prompt of the reviewer, or ""."""
    if changed is None:
        return ""
    told = (
        "\n\nSince the start of this run, these files that your approval rests on were changed or "
        f"removed (check command, tests, specifications): {_listed(changed.paths)}. Look at each "
        "with care: tests that were deleted or skipped and a check that was weakened are findings."
    )
    if changed.weakened:
        told += f" Tests were removed from, or newly skipped in, {_listed(changed.weakened)}."
    if changed.check:
        told += (
            f" An approval must name each of {_listed(changed.check)} and say why its change is "
            "right."
        )
    return told


def failed_check_review(check: CheckCommandOutput) -> OwnReview:
    """Return the review for the planning agent when the check of an approved work failed."""
    return OwnReview(
        "The reviewer approved, but the check command failed "
        f"(exit code {check.exit_code}), so the approval does not count. "
        f"Make the check pass. Its output was:\n\n{check.output}"
    )


def _changed_check_review(paths: tuple[str, ...]) -> OwnReview:
    return OwnReview(
        f"The reviewer approved, but {_listed(paths)}, which the check command runs, was changed "
        "during this run and nobody asked for it, so the approval does not count. Restore it as it "
        "was, and make that check pass.",
        changed=paths,
    )


def _paths(before: PathState | None, after: PathState | None) -> tuple[str, ...]:
    if before is None or after is None:
        return ()
    return tuple(change.path for change in path_changes(before, after))


def _listed(paths: Iterable[str]) -> str:
    return ", ".join(f"`{path}`" for path in paths)


def _texts(cwd: Path, before: PathState, now: PathState) -> Iterator[str]:
    """Yield the unchanged specifications: agents cannot have justified their changes there."""
    for path, digest in now.items():
        if before.get(path) == digest:
            with suppress(OSError, ValueError):  # a link to a device has no end
                yield read_regular(cwd / path).decode("utf-8", "replace")


_REPLANNED = (
    "The specifications have changed since the last plan: {paths}. Read them again, and plan what "
    "they ask for now."
)
_APPROVED_BEFORE = (
    "The work was approved, but the specifications changed after it was planned: {paths}. Read "
    "them again, and plan what they ask for now; if nothing is left to do, the plan says so."
)
