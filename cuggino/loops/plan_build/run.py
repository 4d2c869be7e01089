"""One run of the plan/build loop: its phases, one after the other, and when it is over."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

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
from cuggino.loops.frame.run import Run, Story
from cuggino.loops.frame.session import is_failure
from cuggino.loops.frame.standstill import Failures, described, progress_watch, standstill
from cuggino.loops.plan_build.acts import PlanBuildActs, contradiction, disappeared
from cuggino.loops.plan_build.job_gate import GateVerdict, JobGate
from cuggino.loops.plan_build.options import PlanBuildOptions
from cuggino.loops.plan_build.session import phase_session
from cuggino.operators import Flow, emit, flow, forward
from cuggino.prompts import PromptPhase
from cuggino.stages import Waited
from cuggino.storage import DONE_FILE


class _Over(NamedTuple):
    """The end of a run."""

    reason: PlanBuildExit
    error: str = ""
    """Its cause, if the loop has noted it itself."""


class _State(NamedTuple):
    """The state that the iterations of a run share."""

    iteration: int = 0
    failed: Failures = Failures()
    jobs: JobsCounted = JobsCounted(open=0, done=0)
    is_known: bool = True
    """True if the jobs could be read the last time."""
    verdict: GateVerdict = GateVerdict()
    base: str | None = None
    """The commit before the latest session."""
    first: str | None = None
    """The commit before the first one."""
    rejected: str = ""
    """The reason why the done file was removed since the last build session."""

    def begun(self, base: str | None) -> _State:
        """Return the state in another session, which begins at the commit `base`."""
        return self._replace(iteration=self.iteration + 1, base=base, first=self.first or base)

    def counted(self, jobs: JobsCounted | None) -> _State:
        """Return the state after the jobs were counted; they could not be if it is None."""
        return self._replace(jobs=jobs or self.jobs, is_known=jobs is not None)

    @property
    def is_blocked(self) -> bool:
        """Return whether no job is left that an agent could do."""
        return self.is_known and self.jobs.blocked > 0 and not self.jobs.open


class PlanBuildRun(Story):
    """One run. A resumed run replays its stages, and so comes to the same state."""

    reports_interruption = True

    def __init__(self, run: Run, options: PlanBuildOptions) -> None:
        self._run = run
        self._options = options
        self._acts = PlanBuildActs(run, options)
        self._state = _State()
        self._progress = progress_watch(options.progress_patience)

    def run(self) -> Flow[None]:
        """Plan and build, until the loop has a result."""
        yield from run_to_its_end(self._course(), self._end)

    def _course(self) -> Flow[_Over]:
        over = yield from self._until_done()
        yield from history_kept(self._run, self._state.first)
        return over

    def _until_done(self) -> Flow[_Over]:
        options, acts = self._options, self._acts
        self._verified(GateVerdict(accepted=(yield from acts.done_before())))
        yield from self._count()
        yield from acts.unless_stopped()
        yield from acts.dirty_files()
        if options.start == "plan":
            over = yield from self._plan()
            if over is not None or options.plan_only:
                return over or _Over("planned")
        elif options.fresh:
            yield from acts.remove_done()
        return (yield from self._build())

    def _limit(self) -> Flow[_Over | None]:
        """Return why there may be no further session, or None; checks count and budget."""
        most = self._options.max_sessions
        if most is not None and self._state.iteration >= most:
            return _Over("max_iterations")
        yield from self._run.within_budget()
        return None

    def _plan(self) -> Flow[_Over | None]:
        """Plan, in the first iteration (LOP-050 to LOP-054)."""
        yield from self._acts.remove_done()
        while True:
            if over := (yield from self._limit()):
                return over
            ended = yield from self._session("plan")
            if ended is None:
                return None  # reported; existing jobs can still be built (LOP-051)
            if not is_failure(ended.outcome):
                yield from self._verify_claims()
                yield from self._count(is_planned=True)
                yield from self._iterated(ended)
                return None
            if over := (yield from self._retried()):
                return over
            yield from self._run.pause(self._options.iteration_pause)
            yield from self._acts.unless_stopped()

    def _build(self) -> Flow[_Over]:
        if self._progress is not None:
            self._progress = self._progress.started((yield from self._acts.state()))
        while True:
            yield from self._acts.unless_stopped()
            if (yield from self._acts.is_done()):
                yield from self._verify_claims()  # others may have made claims
                yield from self._count()
                if (yield from self._is_complete()):
                    return _Over("complete")
            if self._state.is_blocked:
                return _Over("blocked", (yield from self._acts.blocked()))
            if over := (yield from self._limit()):
                return over
            if over := (yield from self._one()):
                return over
            yield from self._run.pause(self._options.iteration_pause)

    def _one(self) -> Flow[_Over | None]:
        """Build and verify once; return why the loop is over, or None."""
        acts = self._acts
        ended = yield from self._session("build")
        assert ended is not None
        if is_failure(ended.outcome):
            return (yield from self._retried())
        subjects = yield from acts.subjects(self._state.base)
        self._verified((yield from self._gate().run(self._state.verdict, subjects, iterated=True)))
        self._state = self._state._replace(rejected="")
        yield from self._count()
        # At once: what contradicts the done file must neither be committed nor outlast the run.
        complete = (yield from acts.is_done()) and (yield from self._is_complete())
        if self._options.auto_commit:
            yield from acts.commit(self._state.iteration, must=complete)
        yield from self._iterated(ended)
        return _Over("complete") if complete else (yield from self._standstill())

    def _gate(self) -> JobGate:
        return JobGate(self._state.iteration, self._run, self._options)

    def _verify_claims(self) -> Flow[None]:
        """Verify every job reported as done (LOP-096)."""
        known = self._state.verdict
        verdict = yield from self._gate().run(known, iterated=False)
        self._verified(verdict._replace(findings=(*known.findings, *verdict.findings)))

    def _verified(self, verdict: GateVerdict) -> None:
        self._state = self._state._replace(verdict=verdict)

    def _session(self, phase: PromptPhase) -> Flow[PlanBuildSessionEnded | None]:
        """Run a session of the phase; return its end, or None without a prompt for it."""
        before = self._state
        state = self._state = before.begun((yield from self._acts.head()))
        turn = self._run.next_turn(phase)
        waited: Waited | None = None
        while True:  # until it waits for nothing more
            # A resumed run repeats it from the start unless it had finished.
            stage = flow(
                partial(
                    phase_session,
                    phase,
                    self._run,
                    self._options,
                    iteration=state.iteration,
                    turn=turn,
                    base=state.base,
                    findings=(*state.verdict.findings, *filter(None, [state.rejected])),
                    waited=waited,
                )
            )
            try:
                ended = yield from forward(stage, name=phase)
            except ConfigError:
                self._state = state._replace(iteration=before.iteration)  # nothing was started
                raise
            if phase == "build" and isinstance(ended, PlanBuildSessionEnded):
                waited = yield from self._run.resumed_after(ended, phase)
            if waited is None:
                break
        if not isinstance(ended, PlanBuildSessionEnded):
            self._state = state._replace(iteration=before.iteration)
            return None
        self._state = state._replace(failed=state.failed.after(ended))
        return ended

    def _is_complete(self) -> Flow[bool]:
        """Return whether the done file ends the loop; remove it if it is contradicted (LOP-096).

        Without verification it ends the loop (TC-030-05), with a warning if jobs are open.
        """
        options, state = self._options, self._state
        reason = contradiction(state.verdict.findings, state.jobs if state.is_known else None)
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
        self._state = state._replace(rejected=f"{DONE_FILE} existed although {reason}")
        return False

    def _retried(self) -> Flow[_Over | None]:
        """Announce another session after one that failed, unless too many have (LOP-064)."""
        yield from self._verify_claims()
        yield from self._count()
        attempt, message = self._state.failed
        most = self._options.max_retries
        if attempt > most:
            return _Over("max_retries_exceeded", message)
        yield from emit(PlanBuildSessionRetry(attempt=attempt, max_retries=most, message=message))
        return None

    def _iterated(self, ended: PlanBuildSessionEnded) -> Flow[None]:
        yield from emit(
            PlanBuildIterationEnded(
                iteration=self._state.iteration,
                cost_usd=ended.cost_usd,
                cost_estimated=ended.cost_estimated,
                duration=ended.duration,
            )
        )

    def _standstill(self) -> Flow[_Over | None]:
        """Return "stalled" if the latest iterations changed nothing (LOP-065)."""
        if self._progress is None:
            return None
        self._progress = self._progress.after((yield from self._acts.state()))
        found = standstill(self._progress)
        if found is None:
            return None
        yield from emit(found)
        return _Over("stalled", described(found, "iterations"))

    def _count(self, *, is_planned: bool = False) -> Flow[None]:
        accepted = self._state.verdict.accepted
        jobs = yield from self._acts.count(accepted, is_planned=is_planned)
        self._state = self._state.counted(jobs)

    def _end(self, reason: PlanBuildExit, error: str) -> Flow[None]:
        """Emit the result."""
        state = self._state
        ended = PlanBuildEnded(
            reason=reason,
            iterations=state.iteration,
            open=state.jobs.open,
            done=state.jobs.done,
            blocked=state.jobs.blocked,
            cost_usd=self._run.cost_usd,
            cost_estimated=self._run.cost_estimated,
            duration=self._run.seconds,
            error=error,
        )
        self.is_resumable = ended.is_resumable
        yield from emit(ended)
