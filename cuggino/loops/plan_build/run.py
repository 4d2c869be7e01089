"""One run of the plan/build loop: its phases, one after the other, and when it is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from cuggino.errors import ConfigError
from cuggino.events import (
    DoneFileRejected,
    JobsCounted,
    PlanBuildEnded,
    PlanBuildExit,
    PlanBuildIterationEnded,
    PlanBuildSessionEnded,
    PlanBuildSessionRetry,
    PlanBuildWarning,
)
from cuggino.loops.frame.ending import run_to_its_end
from cuggino.loops.frame.history import history_kept
from cuggino.loops.frame.run import Run
from cuggino.loops.frame.session import is_failure
from cuggino.loops.frame.standstill import Failures, described, progress_watch, standstill
from cuggino.loops.plan_build.acts import PlanBuildActs, contradiction, disappeared
from cuggino.loops.plan_build.job_gate import JobGate
from cuggino.loops.plan_build.options import PlanBuildOptions
from cuggino.loops.plan_build.session import phase_session
from cuggino.operators import Flow, emit, flow, forward
from cuggino.prompts import PromptPhase
from cuggino.storage import DONE_FILE


class PlanBuildRun:
    """One run: the state that its iterations share. A resumed run replays its stages."""

    reports_interruption = True

    def __init__(self, run: Run, options: PlanBuildOptions) -> None:
        self._run = run
        self._options = options
        self._acts = PlanBuildActs(run, options)
        self._iteration = 0
        self._failed = Failures()
        self._error = ""
        self._jobs = JobsCounted(open=0, done=0)
        self._is_known = True
        """True if the jobs could be read the last time."""
        self._accepted: frozenset[str] = frozenset()
        """The ids of the jobs that are done and were verified, or were done before the run."""
        self._base: str | None = None
        """The commit before the latest session."""
        self._first: str | None = None
        """The commit before the first one."""
        self._findings: tuple[str, ...] = ()
        self._rejected: tuple[str, ...] = ()
        """The reason why the done file was removed since the last build session, at most one."""
        self._failures: Mapping[str, int] = {}
        self._turns: Counter[str] = Counter()
        self._progress = progress_watch(options.progress_patience)
        self.is_resumable = True

    def opening(self) -> Flow[None]:
        """Emit nothing."""
        yield from ()

    def run(self) -> Flow[None]:
        """Plan and build, until the loop has a result."""
        yield from run_to_its_end(self._course(), self._end)

    def _course(self) -> Flow[PlanBuildExit]:
        reason = yield from self._until_done()
        yield from history_kept(self._run, self._first)
        return reason

    def _until_done(self) -> Flow[PlanBuildExit]:
        options, acts = self._options, self._acts
        self._accepted = yield from acts.done_before()
        yield from self._count()
        yield from acts.unless_stopped()
        yield from acts.dirty_files()
        if options.start == "plan":
            reason = yield from self._plan()
            if reason is not None or options.plan_only:
                return reason or "planned"
        elif options.fresh:
            yield from acts.remove_done()
        return (yield from self._build())

    def _limit(self) -> Flow[PlanBuildExit | None]:
        """Return why there may be no further session, or None; checks count and budget."""
        most = self._options.max_sessions
        if most is not None and self._iteration >= most:
            return "max_iterations"
        yield from self._run.within_budget()
        return None

    def _plan(self) -> Flow[PlanBuildExit | None]:
        """Plan, in the first iteration (LOP-050 to LOP-054)."""
        yield from self._acts.remove_done()
        while True:
            if reason := (yield from self._limit()):
                return reason
            ended = yield from self._session("plan")
            if ended is None:
                return None  # reported; existing jobs can still be built (LOP-051)
            if not is_failure(ended.outcome):
                yield from self._verify_claims()
                yield from self._count(is_planned=True)
                yield from self._iterated(ended)
                return None
            if reason := (yield from self._retried()):
                return reason
            yield from self._run.pause(self._options.iteration_pause)
            yield from self._acts.unless_stopped()

    def _build(self) -> Flow[PlanBuildExit]:
        if self._progress is not None:
            self._progress.start((yield from self._acts.state()))
        while True:
            yield from self._acts.unless_stopped()
            if (yield from self._acts.is_done()):
                yield from self._verify_claims()  # others may have made claims
                yield from self._count()
                if (yield from self._is_complete()):
                    return "complete"
            if self._is_known and self._jobs.blocked and not self._jobs.open:
                self._error = yield from self._acts.blocked()
                return "blocked"
            if reason := (yield from self._limit()):
                return reason
            if reason := (yield from self._one()):
                return reason
            yield from self._run.pause(self._options.iteration_pause)

    def _one(self) -> Flow[PlanBuildExit | None]:
        """Build and verify once; return why the loop is over, or None."""
        acts = self._acts
        ended = yield from self._session("build")
        assert ended is not None
        if is_failure(ended.outcome):
            return (yield from self._retried())
        subjects = yield from acts.subjects(self._base)
        verdict = yield from self._gate().run(
            self._accepted, self._failures, subjects, iterated=True
        )
        self._rejected = ()
        self._findings, self._failures, self._accepted = verdict
        yield from self._count()
        # At once: what contradicts the done file must neither be committed nor outlast the run.
        complete = (yield from acts.is_done()) and (yield from self._is_complete())
        if self._options.auto_commit:
            yield from acts.commit(self._iteration, must=complete)
        yield from self._iterated(ended)
        return "complete" if complete else (yield from self._standstill())

    def _gate(self) -> JobGate:
        return JobGate(self._iteration, self._run, self._options)

    def _verify_claims(self) -> Flow[None]:
        """Verify every job reported as done (LOP-096)."""
        verdict = yield from self._gate().run(self._accepted, self._failures, iterated=False)
        self._findings += verdict.findings
        self._failures, self._accepted = verdict.failures, verdict.accepted

    def _session(self, phase: PromptPhase) -> Flow[PlanBuildSessionEnded | None]:
        """Run a session of the phase; return its end, or None without a prompt for it."""
        self._base = yield from self._acts.head()
        self._first = self._first or self._base
        self._iteration += 1
        self._turns[phase] += 1
        # A resumed run repeats it from the start unless it had finished.
        stage = flow(
            lambda: phase_session(
                phase,
                self._run,
                self._options,
                iteration=self._iteration,
                turn=self._turns[phase],
                base=self._base,
                findings=(*self._findings, *self._rejected),
            )
        )
        try:
            ended = yield from forward(stage, name=phase)
        except ConfigError:
            self._iteration -= 1  # nothing was started
            raise
        if not isinstance(ended, PlanBuildSessionEnded):
            self._iteration -= 1
            return None
        self._failed = self._failed.after(ended)
        return ended

    def _is_complete(self) -> Flow[bool]:
        """Return whether the done file ends the loop; remove it if it is contradicted (LOP-096).

        Without verification it ends the loop (TC-030-05), with a warning if jobs are open.
        """
        options = self._options
        known = self._jobs if self._is_known else None
        reason = contradiction(self._findings, known)
        if not (options.verify_after_iteration or options.verify_build or options.verify_test):
            if reason:
                ends = f"{DONE_FILE} ends the loop without verification, although {reason}"
                yield from emit(PlanBuildWarning(message=ends))
            return True
        reason = reason or disappeared((yield from self._acts.missing()))
        if not reason:
            return True
        yield from self._acts.remove_done()
        yield from emit(DoneFileRejected(reason=reason))
        self._rejected = (f"{DONE_FILE} was there although {reason}",)
        return False

    def _retried(self) -> Flow[PlanBuildExit | None]:
        """Announce another session after one that failed, unless too many have (LOP-064)."""
        yield from self._verify_claims()
        yield from self._count()
        attempt, self._error = self._failed
        most = self._options.max_retries
        if attempt > most:
            return "max_retries_exceeded"
        yield from emit(
            PlanBuildSessionRetry(attempt=attempt, max_retries=most, message=self._error)
        )
        return None

    def _iterated(self, ended: PlanBuildSessionEnded) -> Flow[None]:
        yield from emit(
            PlanBuildIterationEnded(
                iteration=self._iteration, cost_usd=ended.cost_usd, duration=ended.duration
            )
        )

    def _standstill(self) -> Flow[PlanBuildExit | None]:
        """Return "stalled" if the latest iterations changed nothing (LOP-065)."""
        if self._progress is None:
            return None
        found = standstill(self._progress, (yield from self._acts.state()))
        if found is None:
            return None
        self._error = described(found, "iterations")
        yield from emit(found)
        return "stalled"

    def _count(self, *, is_planned: bool = False) -> Flow[None]:
        counted = yield from self._acts.count(self._accepted, is_planned=is_planned)
        self._is_known = counted is not None
        self._jobs = counted or self._jobs

    def _end(self, reason: PlanBuildExit, error: str) -> Flow[None]:
        """Emit the result."""
        own = self._error if reason in _EXPLAINED else ""
        ended = PlanBuildEnded(
            reason=reason,
            iterations=self._iteration,
            open=self._jobs.open,
            done=self._jobs.done,
            blocked=self._jobs.blocked,
            cost_usd=self._run.cost_usd,
            duration=self._run.seconds,
            error=error or own,
        )
        self.is_resumable = ended.is_resumable
        yield from emit(ended)


_EXPLAINED = frozenset({"blocked", "stalled", "max_retries_exceeded"})
"""Ends whose cause the loop has noted itself."""
