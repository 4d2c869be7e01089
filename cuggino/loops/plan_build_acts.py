"""The small stages of a plan/build run, beside its sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reactivex import Observable, empty, just, operators as ops, timer

from cuggino.events import CommitFailed, CommitSeen, Event, JobsCounted, PlanBuildWarning
from cuggino.loops.deliver_interrupt import Interruption
from cuggino.loops.options import PlanBuildOptions
from cuggino.operators import Flow, ask, emit, flow, forward, within_budget
from cuggino.stages import Supervision, act, commit_stage
from cuggino.storage import WORKSPACE_FOLDER
from cuggino.storage.branch import BranchRefused, protected_branch
from cuggino.storage.jobs import JOBS_FILE, is_done, remove_done

if TYPE_CHECKING:
    from cuggino.loops.plan_build import PlanBuildService


class PlanBuildActs:
    """What one run does besides: it counts, looks, commits and waits."""

    def __init__(
        self,
        service: PlanBuildService,
        options: PlanBuildOptions,
        policies: Supervision,
        interruption: Interruption,
    ) -> None:
        self._service = service
        self._options = options
        self._policies = policies
        self._interruption = interruption
        self._warned: set[str] = set()

    def count(
        self, accepted: frozenset[str], *, is_planned: bool = False
    ) -> Flow[JobsCounted | None]:
        """How far the jobs are (LOP-053); None when their file is broken (LOP-073).

        Those that are not `accepted` are noted for `missing`, and for the run that comes next; with
        `is_planned` not those that were there before the plan.
        """
        stage = flow(lambda: self._counted(accepted, is_planned=is_planned))
        counted = yield from forward(stage, name="jobs")
        return counted if isinstance(counted, JobsCounted) else None

    def _counted(self, accepted: frozenset[str], *, is_planned: bool) -> Flow[None]:
        loaded = yield from ask(act(self._service.store.load))
        assert loaded is not None
        odd = [warning for warning in loaded.warnings if warning not in self._warned]
        self._warned = set(loaded.warnings)  # what is still odd was told; what is so again is not
        yield from emit(*(PlanBuildWarning(message=warning) for warning in odd))
        if loaded.broken is not None:
            return
        jobs = loaded.jobs
        there = {item.id for item in jobs.items}
        gone = frozenset() if is_planned else self._service.unverified.read() - there
        yield from ask(act(lambda: self._service.unverified.write(gone | (there - accepted))))
        job = jobs.next_open
        yield from emit(
            JobsCounted(
                open=jobs.count_open - jobs.count_blocked,
                done=jobs.count_done,
                blocked=jobs.count_blocked,
                next_job=f"{job.id}: {job.description}" if job is not None else None,
            )
        )

    def done_before(self) -> Flow[frozenset[str]]:
        """The ids of the jobs that are done now, by whatever came before (LOP-096).

        But not of those that an earlier run has seen open, or could not verify any more.
        """
        unverified = self._service.unverified

        def look() -> list[str]:
            loaded = self._service.store.load()
            items, noted = loaded.jobs.items, unverified.read()
            if loaded.broken is None and not is_done(self._options.cwd):
                # What is not there any more, and nobody calls done, a person has taken out.
                unverified.write(noted & {job.id for job in items})
            still_open = noted | {job.id for job in items if not job.is_done}
            return [job.id for job in items if job.is_done and job.id not in still_open]

        return frozenset((yield from ask(act(look), name="done-before")) or ())

    def missing(self) -> Flow[tuple[str, ...]]:
        """The jobs that the run has seen, that no run has verified, and that are gone (LOP-096)."""

        def look() -> list[str]:
            there = {job.id for job in self._service.store.load().jobs.items}
            gone = self._service.unverified.read() - there
            # Who has no id of its own is called by its place, which changes.
            return sorted(job_id for job_id in gone if not job_id.startswith("#"))

        return tuple((yield from ask(act(look), name="missing")) or ())

    def blocked(self) -> Flow[str]:
        """The jobs that are blocked, in a text (LOP-097)."""

        def look() -> list[str]:
            jobs = self._service.store.load().jobs.blocked
            return [f"{job.id}: {job.description}" for job in jobs]

        named = (yield from ask(act(look), name="blocked")) or []
        return f"every open job is blocked: {'; '.join(named)}"

    def is_done(self) -> Flow[bool]:
        """Whether the done file is there."""
        return bool((yield from ask(act(lambda: is_done(self._options.cwd)), name="done")))

    def remove_done(self) -> Flow[None]:
        """Remove the done file, if it is there."""
        yield from ask(act(lambda: remove_done(self._options.cwd)), name="remove-done")

    def head(self) -> Flow[str | None]:
        """The latest commit."""
        look = self._interruption.ending(self._service.repository.head())
        return (yield from ask(look, name="head"))

    def subjects(self, base: str | None) -> Flow[tuple[str, ...]]:
        """What the commits behind that one say."""
        look = self._interruption.ending(self._service.commits(self._options.cwd, base))
        made = yield from ask(look, name="commits")
        return tuple(subject for _, subject in made or ())

    def commit(self, n: int) -> Flow[None]:
        """What the iteration has left uncommitted, but on no protected branch (LOP-031)."""
        base = yield from self.head()  # before the stage: one that is begun anew finds its commit
        stage = flow(lambda: self._commit(n, base))
        yield from forward(self._interruption.ending(stage), name="commit")

    def _commit(self, n: int, base: str | None) -> Flow[None]:
        if base is None and not (self._options.cwd / ".git").exists():
            return
        if branch := (yield from ask(act(self._protected))):
            yield from emit(PlanBuildWarning(message=f"not committed: it is on branch {branch}"))
            return
        message = f"chore(loop): iteration {n}"
        stage = commit_stage(self._service.repository, message, iteration=n, base=base)
        for made in (yield from ask(stage.pipe(ops.to_list()))) or ():
            if isinstance(made, CommitFailed):
                yield from emit(PlanBuildWarning(message=f"the commit failed: {made.message}"))
        for commit, subject in (
            yield from ask(self._service.commits(self._options.cwd, base))
        ) or ():
            yield from emit(CommitSeen(commit_hash=commit, subject=subject))

    def state(self) -> Flow[str]:
        """What the project looks like, in a text."""
        project = self._service.fingerprint(
            self._options.cwd, exclude=(Path(WORKSPACE_FOLDER),), plan=None
        )
        return (yield from ask(self._interruption.ending(project), name="fingerprint")) or ""

    def unless_stopped(self) -> Flow[None]:
        """Go on, unless a person or the branch forbids it; to be asked before each session."""
        yield from self.unless_interrupted()
        yield from self.unless_protected()

    def unless_protected(self) -> Flow[None]:
        """The loop does not run on a protected branch (LOP-040, LOP-041).

        Raises:
            BranchRefused: it is on one.
        """
        yield from ask(act(self._refuse), name="branch")

    def _refuse(self) -> None:
        """A stage that fails: a run that goes on looks at the branch again."""
        if branch := self._protected():
            raise BranchRefused(branch)

    def _protected(self) -> str:
        """The protected branch that the project is on; empty where that is none, or allowed."""
        options = self._options
        if options.allow_main:
            return ""
        return protected_branch(options.cwd, options.protected_branches) or ""

    def unless_interrupted(self) -> Flow[None]:
        """Go on, unless a person has said not to: a stage, so that a resumed run asks again."""
        yield from ask(self._interruption.ending(just(None)), name="interrupt")

    def within_budget(self) -> Flow[None]:
        """Look at the budget before an iteration, and not within it: it would count as one."""
        nothing: Observable[Event] = empty()
        policies = self._policies
        left = nothing.pipe(within_budget(policies.budget, ledger=policies.ledger))
        yield from forward(left, name="budget")

    def pause(self) -> Flow[None]:
        """The time between two iterations."""
        if self._options.iteration_pause > 0:
            tick = timer(self._options.iteration_pause)
            yield from ask(self._interruption.ending(tick), name="pause")


def disappeared(missing: tuple[str, ...]) -> str:
    """That it speaks against it that all is done when jobs were taken out; empty without any."""
    if not missing:
        return ""
    verb, past = ("is", "was") if len(missing) == 1 else ("are", "were")
    return f"{', '.join(missing)} {verb} gone from {JOBS_FILE} and {past} never verified"


def contradiction(findings: tuple[str, ...], jobs: JobsCounted | None) -> str:
    """What speaks against it that all is done, empty when nothing does; `jobs` None is unknown."""
    if findings:
        return f"the verification found: {'; '.join(findings)}"
    if jobs is None:
        return "what jobs there are cannot be read"
    left = jobs.open + jobs.blocked
    if left == 0:
        return ""
    return "1 job is not done" if left == 1 else f"{left} jobs are not done"
