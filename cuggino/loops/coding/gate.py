"""The gate of the coding loop: what an approval depends on, besides the reviewer.

The check runs before the first agent, so that a check that is already red blocks nothing. Before
each review it runs on the work, and again with the tests and check files of the start put over the
work, if some have changed: each new failure is a finding that the approval has to answer. An
approval counts when the check passes, each finding is answered, and the current commit is the work
that was checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from reactivex import Observable, operators as ops

from cuggino.domain import PathState, is_cache, path_changes
from cuggino.events import (
    ApprovalBlocked,
    Approved,
    Baseline,
    CheckCommandOutput,
    CheckUnmeasured,
    CheckVerdict,
    CheckWeakened,
    CommandOutputEvent,
    GateChanged,
    LoopStalled,
    NotInCommit,
    RequestChanges,
    SpecsChanged,
)
from cuggino.files import read_regular
from cuggino.gate import (
    CheckResult,
    Repeats,
    Standing,
    State,
    deciding_files,
    hidden_failures,
    is_answered,
    judge_check,
    ran_nothing,
)
from cuggino.git import current_branch, slot_home
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.sandbox import views_of
from cuggino.stages import (
    Workplace,
    act,
    check_folder,
    check_stage,
    clean_check_stage,
    clock,
    copy_check_stage,
    flake_stage,
    state_of_paths,
)
from cuggino.storage import WORKSPACE_FOLDER

MOST_REPEATS = 3
"""Approvals in a row that fail for the same reason before the run ends."""

_SHOWN = 4_000
"""Characters of an output that a prompt and an event show."""

_FILLED = frozenset({"bower_components", "coverage", "node_modules", "venv"})
"""Folders that programs can recreate; those whose name begins with a dot count, too."""


class OwnReview(NamedTuple):
    """A review of the loop itself, after an approval that does not count."""

    content: str


@dataclass(frozen=True, slots=True)
class _Known:
    """What the gate knows of a run: a fold over the outcomes of stages."""

    head: str | None = None
    """The commit that reviews compare with."""
    work: State | None = None
    """The work at the start."""
    specs: PathState | None = None
    """The specifications at the start."""
    planned: PathState | None = None
    """The specifications before the latest plan."""
    baseline: CheckResult | None = None
    unused: CheckCommandOutput | None = None
    """The output of the baseline, until the first implementing agent gets it."""
    told: tuple[str, ...] = ()
    """The changed files that were reported."""
    weakened: CheckWeakened | None = None
    """The finding of the latest review."""
    findings: tuple[tuple[str, ...], ...] = ()
    """What each finding is about, by its number."""
    checked: str | None = None
    """The tree of the work before the check of the latest review."""
    red: str | None = None
    """The tree of the latest red check before a review."""
    repeats: Repeats = field(default_factory=Repeats)


class Gate:
    """The gate of one run.

    A run that an earlier version began (`is_old`) only has the check before each review judged.
    """

    def __init__(self, place: Workplace, options: LoopRunOptions, *, is_old: bool = False) -> None:
        self._place = place
        self._services = place.services
        self._options = options
        self._is_old = is_old
        self._known = _Known()

    @property
    def base(self) -> str | None:
        """The commit that the run began with."""
        return self._known.head

    @property
    def baseline_result(self) -> CheckResult | None:
        """The result of the check before the first agent."""
        return self._known.baseline

    # -- before the first agent

    def begin(self, head: str | None = None) -> Flow[None]:
        """Record the state before the first agent.

        The tests are compared with those of the commit `head`; by default, with those of the work.
        """
        start = (yield from ask(flow(lambda: self._read(head)), name="gate-begin")) or {}
        self._known = _Known(
            head=start.get("head"), specs=start.get("specs"), work=start.get("work")
        )

    @property
    def has_baseline(self) -> bool:
        """True if the check has to run before the first agent."""
        options = self._options
        return bool(options.check_command) and options.baseline != "skip" and not self._is_old

    def baseline(self) -> Flow[LoopStalled | None]:
        """Run the check before the first agent; return why the run ends at once, or None."""
        command = self._options.check_command or ""
        took = 0.0

        def timed() -> Flow[None]:  # in one stage, as a check begins anew after a kill
            nonlocal took
            began = yield from ask(clock())
            yield from forward(check_stage(self._place, command))
            ended = yield from ask(clock())
            assert began is not None
            assert ended is not None
            took = round((ended - began).total_seconds(), 3)

        check = yield from forward(flow(timed), name="baseline")
        seconds = yield from ask(act(lambda: took), name="baseline-seconds")
        assert isinstance(check, CheckCommandOutput)
        assert seconds is not None
        result = CheckResult.of(check.exit_code, check.output)
        work = self._known.work
        if work is not None:  # what the check itself writes never counts
            after = yield from ask(self._services.work.changed(work), name="baseline-state")
            found = after or {}
            written = [*found.get("changed", ()), *found.get("added", ())]
            work = {**work, "written": written, "listed": found.get("listed", work["listed"])}
        self._known = replace(self._known, baseline=result, unused=check, work=work)
        yield from emit(
            Baseline(
                iteration=1,
                exit_code=result.exit_code,
                failing=result.failing,
                seconds=seconds,
            )
        )
        if result.passed or self._options.baseline != "must-pass":
            return None
        return LoopStalled(
            iteration=1,
            reason="check",
            message=f"the check fails before the first agent: {_reason(result, check.output)}",
        )

    # -- before agents

    def plan(self, n: int) -> Flow[str]:
        """Report changed specifications; return the section of the planner's prompt, or ""."""
        before = self._known.planned or self._known.specs
        now = yield from ask(self._specifications(), name="gate-specs")
        self._known = replace(self._known, planned=now)
        changed = _paths(before, now)
        if changed:
            yield from emit(SpecsChanged(iteration=n, paths=changed))
        told = [_REPLANNED.format(paths=_listed(changed))] if changed else []
        unused, baseline = self._known.unused, self._known.baseline
        if unused is not None and baseline is not None and not baseline.passed:
            told.append(_RED_BEFORE.format(reason=_reason(baseline, unused.output)))
        return "\n\n".join(told)

    def check_before_work(self, n: int) -> Flow[CheckCommandOutput | None]:
        """Run the check for an implementing agent; the first one gets that of the baseline."""
        unused = self._known.unused
        if unused is not None:
            self._known = replace(self._known, unused=None)
            return unused
        return (yield from self._check(n))

    def changed(self, n: int) -> Flow[tuple[str, ...]]:
        """Return the tests and check files that differ from the start; emit `GateChanged`."""
        known = self._known
        now = yield from ask(flow(lambda: self._compared(known)), name="gate-review")
        changed = tuple((now or {}).get("changed", ()))
        specs = _paths(known.specs, (now or {}).get("specs"))
        paths = tuple(sorted({*changed, *specs}))
        self._known = replace(known, checked=(now or {}).get("tree"))
        if paths and paths != known.told:
            self._known = replace(self._known, told=paths)
            yield from emit(GateChanged(iteration=n, paths=paths))
        return changed

    def check_before_review(
        self, n: int, changed: tuple[str, ...]
    ) -> Flow[CheckCommandOutput | None]:
        """Run the check for the reviewer: again if it may be a flake, and without the `changed`."""
        check = yield from self._check(n)
        self._known = replace(self._known, weakened=None)
        if check is None or self._is_old:
            return check
        result = CheckResult.of(check.exit_code, check.output)
        self._known = replace(self._known, repeats=self._known.repeats.after(result))
        if judge_check(result, self._known.baseline) == "failed":
            is_new = self._known.checked is None or self._known.checked != self._known.red
            self._known = replace(self._known, red=self._known.checked)
            if is_new:
                check = yield from self._again(n, check)
        if changed:
            yield from self._measure(n, check, changed)
        return check

    def section(self) -> str:
        """Return the section of the reviewer's prompt on what has changed, or ""."""
        known = self._known
        parts: list[str] = []
        if known.told:
            parts.append(_CHANGED.format(paths=_listed(known.told)))
        if known.weakened is not None:
            parts.append(
                _WEAKENED.format(
                    id=known.weakened.id,
                    paths=_listed(known.weakened.paths),
                    output=known.weakened.output,
                )
            )
        return "".join(f"\n\n{part}" for part in parts)

    # -- after the review

    def unanswered(self, approval: str) -> tuple[str, ...]:
        """Return what an approval leaves open, for the reviewer to be asked about."""
        weakened = self._known.weakened
        if weakened is None or not self._options.approval_is_checked:
            return ()
        if self._is_answered(weakened, approval):
            return ()
        return (
            f"{_open(weakened)}: with {_listed(weakened.paths)} as at the start of the run, the "
            "check fails. Quote, word for word, the clause of the specification that wants this "
            f"change (`{weakened.id}: ...`), or request changes",
        )

    def judged(
        self, n: int, verdict: Approved | RequestChanges, check: CheckCommandOutput | None
    ) -> Flow[OwnReview | LoopStalled | None]:
        """Emit the verdict on an approval; return what replaces one that does not count."""
        if check is None or not self._options.approval_is_checked:
            return None
        weakened = self._known.weakened
        if isinstance(verdict, RequestChanges):  # also in the place of an approval without answer
            if weakened is None or _open(weakened) not in verdict.content:
                return None
            event = ApprovalBlocked(
                iteration=n,
                exit_code=check.exit_code,
                changed=weakened.paths,
                reason="weakened",
                failing=weakened.failing,
            )
            result = CheckResult.of(1, weakened.output)
            return (yield from self.blocked(event, _weakened(weakened), result, weakened.output))
        result = CheckResult.of(check.exit_code, check.output)
        kind = judge_check(result, self._known.baseline)
        if kind == "failed":
            event = ApprovalBlocked(iteration=n, exit_code=check.exit_code, failing=result.failing)
            return (yield from self.blocked(event, _failed_check(check), result, check.output))
        yield from emit(CheckVerdict(iteration=n, verdict=kind, failing=result.failing))
        return None

    def blocked(
        self,
        event: ApprovalBlocked,
        review: str,
        result: CheckResult | None = None,
        output: str = "",
    ) -> Flow[OwnReview | LoopStalled]:
        """Emit that an approval does not count; return the review, or the end after the third."""
        yield from emit(event)
        repeats = self._known.repeats.add(event.reason, result)
        self._known = replace(self._known, repeats=repeats)
        if repeats.times < MOST_REPEATS:
            return OwnReview(review)
        what = _reason(result, output) if result is not None else ", ".join(event.changed)
        return LoopStalled(
            iteration=event.iteration,
            reason="check",
            message=f"{_STUCK[event.reason]} {repeats.times} times in a row, although agents "
            f"worked on it: {what}",
        )

    def approved(self, n: int) -> Flow[str | None]:
        """Return why there must be another plan although the work was approved; None if not."""
        if self._known.planned is None:
            return None
        now = yield from ask(self._specifications(), name="gate-approved")
        changed = _paths(self._known.planned, now)
        if not changed:
            return None
        self._known = replace(self._known, planned=now)
        yield from emit(SpecsChanged(iteration=n, paths=changed))
        return _APPROVED_BEFORE.format(paths=_listed(changed))

    def committed(
        self, n: int, commit: Callable[[], Flow[None]]
    ) -> Flow[OwnReview | LoopStalled | None]:
        """Compare the current commit with the work; `commit` commits what was staged for it.

        Differences are reported, and repaired where that is safe. If the commit still lacks work,
        the approval does not count.
        """
        start, work = self._known.work, self._services.work
        if self._is_old or start is None or not self._options.commit:
            return None
        problems = yield from self._on_the_branch(n, start)
        found = yield from self._standing(start, "standing")
        if found.missing:
            yield from ask(work.stage(found.missing), name="stage")
            yield from commit()
            left = (yield from self._standing(start, "standing-again")).missing
            mended = tuple(path for path in found.missing if path not in left)
            for paths, is_mended in ((mended, True), (left, False)):
                if paths:
                    yield from emit(
                        NotInCommit(iteration=n, reason="missing", paths=paths, mended=is_mended)
                    )
            problems += [f"it lacks {_listed(left)}"] if left else []
        ignored = tuple(path for path in found.ignored if not _can_be_made_again(path))
        if found.removed:
            yield from emit(NotInCommit(iteration=n, reason="removed", paths=found.removed))
        if found.nested:
            yield from emit(NotInCommit(iteration=n, reason="nested", paths=found.nested))
            problems += [f"{_listed(found.nested)} is a repository of its own"]
        if ignored:
            yield from emit(NotInCommit(iteration=n, reason="ignored", paths=ignored))
        if not problems or not self._options.approval_is_checked:
            return None
        blocked = ApprovalBlocked(
            iteration=n,
            exit_code=None,
            changed=(*found.missing, *found.nested) or ("HEAD",),
            reason="not_committed",
        )
        return (yield from self.blocked(blocked, _NOT_COMMITTED.format(why="; ".join(problems))))

    def clean(self, n: int) -> Flow[OwnReview | LoopStalled | None]:
        """Run the check on a clean checkout of HEAD, with `gate: clean`; as `judged`.

        In a slot the landing does that. Without commits, the work itself is checked out.
        """
        options = self._options
        if options.gate != "clean" or options.slot is not None or options.check_command is None:
            return None
        commit = yield from ask(flow(self._commit), name="clean-commit")
        if commit is None:
            return None
        stage = clean_check_stage(
            options.cwd,
            commit=commit,
            check_command=options.check_command,
            setup_command=options.setup_command,
            folder=check_folder(slot_home(options.cwd, options.slot_folder)),
            env=options.env,
            views=views_of(options),
            specs=options.specs_path,
            iteration=n,
            command_timeout=self._place.command_timeout,
        )
        output = yield from forward(stage, name="clean-check")
        assert isinstance(output, CommandOutputEvent)
        if output.exit_code == 0:
            return None
        result = CheckResult.of(output.exit_code, output.output)
        if judge_check(result, self._known.baseline) == "known":
            return None
        blocked = ApprovalBlocked(
            iteration=n, exit_code=output.exit_code, reason="clean", failing=result.failing
        )
        review = _NOT_CLEAN.format(code=output.exit_code, output=output.output)
        return (yield from self.blocked(blocked, review, result, output.output))

    # -- the parts

    def _commit(self) -> Flow[None]:
        """Emit the commit to check out."""
        if self._options.commit:
            yield from emit((yield from ask(self._services.repository.head())))
        else:
            yield from emit((yield from ask(self._services.work.as_commit())))

    def _check(self, n: int) -> Flow[CheckCommandOutput | None]:
        command = self._options.check_command
        if not command:
            return None
        check = yield from forward(check_stage(self._place, command, iteration=n), name="check")
        assert isinstance(check, CheckCommandOutput)
        return check

    def _again(self, n: int, check: CheckCommandOutput) -> Flow[CheckCommandOutput]:
        """Run a red check once more in a copy; return what counts."""
        again = yield from self._in_a_copy(n, (), "check-again")
        if again is None or again.exit_code != 0:
            return check
        flake = flake_stage(
            check.output,
            command=self._options.check_command or "",
            exit_code=check.exit_code,
            ledger=self._services.workspace.flakes,
            iteration=n,
        )
        yield from forward(flake, name="flake")
        return again

    def _measure(self, n: int, check: CheckCommandOutput, changed: tuple[str, ...]) -> Flow[None]:
        """Run the check with the files of the start, and record the failures that they reveal."""
        at_start = yield from self._in_a_copy(n, changed, "check-start")
        if at_start is None:
            yield from emit(CheckUnmeasured(iteration=n, paths=changed))
            return
        result = CheckResult.of(check.exit_code, check.output)
        other = CheckResult.of(at_start.exit_code, at_start.output)
        is_hidden, failing = hidden_failures(result, other)
        if not is_hidden:
            return
        if result.passed:  # a check that fails in every copy, or finds no test, tells nothing
            plain = yield from self._in_a_copy(n, (), "check-copy")
            nothing = ran_nothing(at_start.output, exit_code=at_start.exit_code)
            if plain is None or plain.exit_code != 0 or nothing:
                yield from emit(CheckUnmeasured(iteration=n, paths=changed))
                return
        about = failing or (other.failures.digest,)
        findings = self._known.findings
        if about not in findings:
            findings = (*findings, about)
        weakened = CheckWeakened(
            iteration=n,
            id=f"C{findings.index(about) + 1}",
            paths=changed,
            failing=failing,
            output=at_start.output[-_SHOWN:],
        )
        self._known = replace(self._known, weakened=weakened, findings=findings)
        yield from emit(weakened)

    def _in_a_copy(
        self, n: int, paths: tuple[str, ...], name: str
    ) -> Flow[CheckCommandOutput | None]:
        start, command = self._known.work, self._options.check_command
        if start is None or command is None:
            return None
        stage = copy_check_stage(self._place, command, start, paths, iteration=n)
        output = yield from forward(stage, name=name)
        return output if isinstance(output, CheckCommandOutput) else None

    def _is_answered(self, finding: CheckWeakened, answer: str) -> bool:
        options = self._options
        texts = (options.focus, *_texts(options.cwd, self._known.specs or {}))
        return is_answered(finding.id, answer, texts)

    def _on_the_branch(self, n: int, start: State) -> Flow[list[str]]:
        branch = start.get("branch")
        now = yield from ask(act(lambda: current_branch(self._options.cwd)), name="branch")
        if branch is None or now == branch:
            return []
        is_back = yield from ask(self._services.work.return_to(branch), name="return")
        yield from emit(
            NotInCommit(iteration=n, reason="branch", paths=(branch,), mended=is_back is True)
        )
        return [] if is_back else [f"HEAD has left the branch `{branch}`, which has other commits"]

    def _standing(self, start: State, name: str) -> Flow[Standing]:
        exclude = (*self._apart(), self._options.specs_path)
        checked = self._known.checked
        found = self._services.work.standing(start, checked=checked, exclude=exclude)
        known = yield from ask(found.pipe(ops.map(_as_lists)), name=name)
        return Standing(**{key: tuple(paths) for key, paths in (known or {}).items()})

    def _apart(self) -> tuple[str, ...]:
        """Return the paths that do not count as work: files of cuggino and of agent programs."""
        return (WORKSPACE_FOLDER, *self._services.own_files(self._options.cwd))

    def _specifications(self) -> Observable[dict[str, str] | None]:
        options = self._options
        return act(lambda: dict(state_of_paths(options.cwd, [options.specs_path])))

    def _read(self, head: str | None) -> Flow[None]:
        options = self._options
        commit = head or (yield from ask(self._services.repository.head()))
        work: State | None = None
        if options.check_command or options.commit:
            work = yield from ask(self._services.work.state(head))
        specs = state_of_paths(options.cwd, [options.specs_path])
        yield from emit({"head": commit, "specs": specs, "work": work})

    def _compared(self, known: _Known) -> Flow[None]:
        options = self._options
        deciding: list[str] = []
        tree: str | None = None
        if known.work is not None and options.check_command and not self._is_old:
            apart = (*self._apart(), options.specs_path, *known.work.get("written", ()))
            now = yield from ask(self._services.work.changed(known.work))
            tree = (now or {}).get("tree")
            found = now or {}
            changed, added = found.get("changed", ()), found.get("added", ())
            # What the run has hidden from git, by other rules than at the start, may decide, too.
            has_rules = any(PurePosixPath(path).name == ".gitignore" for path in (*changed, *added))
            hidden = found.get("ignored", ()) if has_rules else ()
            paths = deciding_files(
                changed,
                added,
                had_tests=found.get("had_tests", False),
                patterns=(*options.gate_paths, *hidden),
            )
            deciding = [path for path in paths if not any(_is_in(path, name) for name in apart)]
        specs = state_of_paths(options.cwd, [options.specs_path])
        yield from emit({"changed": deciding, "specs": specs, "tree": tree})


def _failed_check(check: CheckCommandOutput) -> str:
    return (
        "The reviewer approved, but the check command failed "
        f"(exit code {check.exit_code}), so the approval does not count. "
        f"Make the check pass. Its output was:\n\n{check.output}"
    )


def _weakened(weakened: CheckWeakened) -> str:
    return (
        f"The reviewer approved, but with {_listed(weakened.paths)} as at the start of this run "
        f"the check fails ({weakened.id}), and no clause of the specification that wants the "
        "change was quoted, so the approval does not count. Restore the check, and make it "
        f"pass. Its output was:\n\n{weakened.output}"
    )


def _open(weakened: CheckWeakened) -> str:
    return f"{weakened.id} is not answered"


def _reason(result: CheckResult, output: str) -> str:
    """Return a short description of how a check failed."""
    if result.failing:
        more = f" and {len(result.failing) - 5} more" if len(result.failing) > 5 else ""
        return f"{', '.join(result.failing[:5])}{more}"
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    last = f": {lines[-1][:200]}" if lines else ""
    return f"exit code {result.exit_code}{last}"


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _as_lists(standing: Standing) -> dict[str, list[str]]:
    return {name: [*paths] for name, paths in standing._asdict().items()}


def _can_be_made_again(path: str) -> bool:
    parts = PurePosixPath(path).parts
    folders = parts if path.endswith("/") else parts[:-1]
    return is_cache(path) or any(part in _FILLED or part.startswith(".") for part in folders)


def _paths(before: PathState | None, after: PathState | None) -> tuple[str, ...]:
    if before is None or after is None:
        return ()
    return tuple(change.path for change in path_changes(before, after))


def _listed(paths: Iterable[str]) -> str:
    return ", ".join(f"`{path}`" for path in paths)


def _texts(cwd: Path, start: PathState) -> Iterator[str]:
    """Yield the unchanged specifications: agents cannot have justified their changes there."""
    for path, digest in state_of_paths(cwd, [*start]).items():
        if start.get(path) == digest:
            with suppress(OSError, ValueError):  # a link to a device has no end
                yield read_regular(cwd / path).decode("utf-8", "replace")


_STUCK = {
    "check": "the check failed in the same way",
    "weakened": "the check was weakened",
    "not_committed": "the commit lacked the same work",
    "clean": "the check failed on a clean checkout",
}
_REPLANNED = (
    "The specifications have changed since the last plan: {paths}. Read them again, and plan what "
    "they ask for now."
)
_APPROVED_BEFORE = (
    "The work was approved, but the specifications changed after it was planned: {paths}. Read "
    "them again, and plan what they ask for now; if nothing is left to do, the plan says so."
)
_RED_BEFORE = (
    "Before any agent worked, the check command already failed: {reason}. Plan to mend that only "
    "if the task or the specifications ask for it."
)
_CHANGED = (
    "Since the start of this run, these files that your approval rests on were changed, added or "
    "removed (tests, scripts and settings, specifications): {paths}. Look at each with care, with "
    "`git diff --text`: tests that were deleted, emptied or skipped and a check that was weakened "
    "are findings."
)
_WEAKENED = (
    "{id}: with the versions of the start of {paths}, the check fails as it does not on the work. "
    "If the specification wants that change, an approval has to answer {id} with the clause that "
    "wants it, quoted word for word (`{id}: ...`); otherwise request changes. The output with the "
    "versions of the start:\n\n{output}"
)
_NOT_CLEAN = (
    "The reviewer approved, but on a clean checkout of the work the check command fails (exit code "
    "{code}), so the approval does not count. Something that the check needs is not committed, or "
    "exists only here. Its output was:\n\n{output}"
)
_NOT_COMMITTED = (
    "The reviewer approved, but the current commit is not the work that was checked, so the "
    "approval does not count: {why}. See to it that a fresh clone has the whole work."
)
