"""The small stages of a plan/build run, beside its sessions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reactivex import operators as ops

from cuggino.errors import WorkNotCommitted
from cuggino.events import (
    CommitFailed,
    CommitPerformed,
    CommitSeen,
    JobsCounted,
    PlanBuildWarning,
)
from cuggino.git import BranchRefused, protected_branch
from cuggino.loops.frame.history import dirty_files
from cuggino.loops.frame.run import Run
from cuggino.loops.plan_build.options import PlanBuildOptions
from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.stages import act, commit_stage
from cuggino.storage import (
    JOBS_FILE,
    WORKSPACE_FOLDER,
    JobStore,
    UnverifiedJobs,
    is_done,
    remove_done,
)

_APART = (Path(WORKSPACE_FOLDER),)
"""Folders that are no part of the project."""


class PlanBuildActs:
    """The small stages of one run: counting jobs, looking for commits, committing."""

    def __init__(self, run: Run, options: PlanBuildOptions) -> None:
        services = run.services
        self._run = run
        self._options = options
        self._repository = services.repository
        self._store = JobStore(services.workspace.root)
        self._unverified = UnverifiedJobs(services.workspace.unverified_jobs)
        self._warned: set[str] = set()
        self._dirty: Mapping[str, str] = {}

    def count(
        self, accepted: frozenset[str], *, is_planned: bool = False
    ) -> Flow[JobsCounted | None]:
        """Count the jobs (LOP-053); None when their file is broken (LOP-073).

        Jobs that are not `accepted` are kept for `missing` and for the next run; with `is_planned`
        without those that a new plan has dropped.
        """
        stage = flow(lambda: self._counted(accepted, is_planned=is_planned))
        counted = yield from forward(stage, name="jobs")
        return counted if isinstance(counted, JobsCounted) else None

    def _counted(self, accepted: frozenset[str], *, is_planned: bool) -> Flow[None]:
        loaded = yield from ask(act(self._store.load))
        assert loaded is not None
        odd = [warning for warning in loaded.warnings if warning not in self._warned]
        self._warned = set(loaded.warnings)  # warn once while it lasts, again when it recurs
        yield from emit(*(PlanBuildWarning(message=warning) for warning in odd))
        if loaded.broken is not None:
            return
        jobs = loaded.jobs
        there = {item.id for item in jobs.items}
        gone = frozenset() if is_planned else self._unverified.read() - there
        yield from ask(act(lambda: self._unverified.write(gone | (there - accepted))))
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
        """Return the ids of the jobs that were done before the run (LOP-096).

        Jobs that an earlier run saw open, or could not verify, are left out.
        """
        unverified = self._unverified

        def look() -> list[str]:
            loaded = self._store.load()
            items, noted = loaded.jobs.items, unverified.read()
            if loaded.broken is None and not is_done(self._options.cwd):
                # Without a done file, a person has removed the jobs that are gone.
                unverified.write(noted & {job.id for job in items})
            still_open = noted | {job.id for job in items if not job.is_done}
            return [job.id for job in items if job.is_done and job.id not in still_open]

        return frozenset((yield from ask(act(look), name="done-before")) or ())

    def missing(self) -> Flow[tuple[str, ...]]:
        """Return the removed jobs that no run has verified (LOP-096)."""

        def look() -> list[str]:
            there = {job.id for job in self._store.load().jobs.items}
            gone = self._unverified.read() - there
            # A job without an id is named by its position, which changes.
            return sorted(job_id for job_id in gone if not job_id.startswith("#"))

        return tuple((yield from ask(act(look), name="missing")) or ())

    def blocked(self) -> Flow[str]:
        """Return the blocked jobs as text (LOP-097)."""

        def look() -> list[str]:
            jobs = self._store.load().jobs.blocked
            return [f"{job.id}: {job.description}" for job in jobs]

        named = (yield from ask(act(look), name="blocked")) or []
        return f"every open job is blocked: {'; '.join(named)}"

    def is_done(self) -> Flow[bool]:
        """Return whether the done file exists."""
        return bool((yield from ask(act(lambda: is_done(self._options.cwd)), name="done")))

    def remove_done(self) -> Flow[None]:
        """Remove the done file, if it is there."""
        yield from ask(act(lambda: remove_done(self._options.cwd)), name="remove-done")

    def head(self) -> Flow[str | None]:
        """Return the latest commit."""
        look = self._run.interruption.ending(self._repository.head())
        return (yield from ask(look, name="head"))

    def dirty_files(self) -> Flow[None]:
        """Record the files with uncommitted changes before the first session."""
        if self._options.auto_commit:
            self._dirty = yield from dirty_files(self._repository, self._options)

    def subjects(self, base: str | None) -> Flow[tuple[str, ...]]:
        """Return the subjects of the commits after `base`."""
        look = self._run.interruption.ending(self._run.services.commits(self._options.cwd, base))
        made = yield from ask(look, name="commits")
        return tuple(subject for _, subject in made or ())

    def commit(self, n: int, *, must: bool) -> Flow[None]:
        """Commit what the iteration left uncommitted, except on a protected branch (LOP-031).

        Raises:
            WorkNotCommitted: git refused it, and `must` is set: the work is to be complete.
        """
        base = yield from self.head()  # before the stage: a restarted one finds its commit
        stage = flow(lambda: self._commit(n, base, must=must))
        yield from forward(self._run.interruption.ending(stage), name="commit")

    def _commit(self, n: int, base: str | None, *, must: bool) -> Flow[None]:
        if base is None and not (self._options.cwd / ".git").exists():
            return
        if branch := (yield from ask(act(self._protected))):
            yield from emit(
                PlanBuildWarning(message=f"not committed: branch {branch} is protected")
            )
            return
        yield from self._run.branch_seen()
        message = f"chore(loop): iteration {n}"
        stage = commit_stage(
            self._run.place,
            message,
            iteration=n,
            base=base,
            exclude=(),
            dirty=self._dirty,
            role="build",
        )
        for made in (yield from ask(stage.pipe(ops.to_list()))) or ():
            if isinstance(made, CommitFailed):
                if must:
                    raise WorkNotCommitted(made.message)
                yield from emit(PlanBuildWarning(message=f"the commit failed: {made.message}"))
            elif not isinstance(made, CommitPerformed):
                yield from emit(made)
        for commit, subject in (
            yield from ask(self._run.services.commits(self._options.cwd, base))
        ) or ():
            yield from emit(CommitSeen(commit_hash=commit, subject=subject))

    def state(self) -> Flow[str]:
        """Return the fingerprint of the project."""
        return (yield from self._run.project_state(self._options.cwd, exclude=_APART))

    def unless_stopped(self) -> Flow[None]:
        """Continue unless interrupted or on a protected branch; called before each session."""
        yield from self._run.unless_interrupted()
        yield from self.unless_protected()

    def unless_protected(self) -> Flow[None]:
        """Refuse to run on a protected branch (LOP-040, LOP-041).

        Raises:
            BranchRefused: it is on one.
        """
        yield from ask(act(self._refuse), name="branch")

    def _refuse(self) -> None:
        """Raise in a stage, so that a resumed run checks the branch again."""
        if branch := self._protected():
            raise BranchRefused(branch)

    def _protected(self) -> str:
        """Return the protected branch of the project, or "" if it may run there."""
        options = self._options
        if options.allow_main:
            return ""
        return protected_branch(options.cwd, options.protected_branches) or ""


def disappeared(missing: tuple[str, ...]) -> str:
    """Return why the build is incomplete because jobs were removed, or ""."""
    if not missing:
        return ""
    verb, past = ("is", "was") if len(missing) == 1 else ("are", "were")
    return f"{', '.join(missing)} {verb} gone from {JOBS_FILE} and {past} never verified"


def contradiction(findings: tuple[str, ...], jobs: JobsCounted | None) -> str:
    """Return why the build is incomplete, or ""; `jobs` is None when they cannot be read."""
    if findings:
        return f"the verification found: {'; '.join(findings)}"
    if jobs is None:
        return "the jobs cannot be read"
    left = jobs.open + jobs.blocked
    if left == 0:
        return ""
    return "1 job is not done" if left == 1 else f"{left} jobs are not done"
