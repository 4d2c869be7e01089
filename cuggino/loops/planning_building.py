"""One run of the plan/build loop: its phases, one after the other, and when it is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from cuggino.domain.progress import ProgressWatch
from cuggino.errors import ConfigError
from cuggino.events import (
    DoneFileRejected,
    JobsCounted,
    NoProgress,
    PlanBuildEnded,
    PlanBuildExit,
    PlanBuildIterationEnded,
    PlanBuildSessionEnded,
    PlanBuildSessionRetry,
)
from cuggino.loops.durable import RESUMABLE, Held, told_to_its_end
from cuggino.loops.job_gate import JobGate
from cuggino.loops.options import PlanBuildOptions
from cuggino.loops.plan_build_acts import PlanBuildActs, contradiction, disappeared
from cuggino.loops.plan_build_judge import Judge
from cuggino.loops.plan_build_session import phase_session
from cuggino.loops.session_fold import is_failure
from cuggino.operators import Flow, emit, flow, forward
from cuggino.prompts.loop_prompts import PromptPhase
from cuggino.storage.jobs import DONE_FILE

if TYPE_CHECKING:
    from cuggino.loops.plan_build import PlanBuildService


class PlanningBuilding:
    """One run: what its iterations share. A resumed run replays the outcomes of its stages."""

    def __init__(
        self,
        service: PlanBuildService,
        held: Held,
        options: PlanBuildOptions,
    ) -> None:
        self._service = service
        self._session_files = held.session
        self._options = options
        self._policies = held.policies
        self._interruption = held.interruption
        self._acts = PlanBuildActs(service, options, held.policies, held.interruption)
        self._here = held.here
        self._began: datetime = held.here.now
        self._earlier = held.earlier
        self._iteration = 0
        self._errors = 0
        self._error = ""
        self._jobs = JobsCounted(open=0, done=0)
        self._is_known = True
        """Whether the jobs could be read when they were last looked at."""
        self._accepted: frozenset[str] = frozenset()
        """The ids of the jobs that are done and were verified, or were done before the run."""
        self._base: str | None = None
        """The commit before the latest session."""
        self._findings: tuple[str, ...] = ()
        self._rejected: tuple[str, ...] = ()
        """Why the done file was taken away since the last build session, at most one reason."""
        self._failures: Mapping[str, int] = {}
        self._turns: Counter[str] = Counter()
        patience = options.progress_patience
        self._progress = ProgressWatch(patience) if patience else None
        self.is_unfinished = True
        """Whether another process could go on with the run."""

    def notices(self) -> Flow[None]:
        """There is nothing to say before it begins."""
        yield from ()

    def tell(self) -> Flow[None]:
        """Plan and build, and how it ended."""
        yield from told_to_its_end(self._until_done(), self._end)

    def _until_done(self) -> Flow[PlanBuildExit]:
        options, acts = self._options, self._acts
        self._accepted = yield from acts.done_before()
        yield from self._count()
        yield from acts.unless_stopped()
        if options.start == "plan":
            reason = yield from self._plan()
            if reason is not None or options.plan_only:
                return reason or "planned"
        elif options.fresh:
            yield from acts.remove_done()
        return (yield from self._build())

    def _limit(self) -> Flow[PlanBuildExit | None]:
        """Whether there may be another session: its number, and what it may spend."""
        most = self._options.max_sessions
        if most is not None and self._iteration >= most:
            return "max_iterations"
        yield from self._acts.within_budget()
        return None

    def _plan(self) -> Flow[PlanBuildExit | None]:
        """The first iteration: what is to be built (LOP-050 to LOP-054)."""
        yield from self._acts.remove_done()
        while True:
            if reason := (yield from self._limit()):
                return reason
            ended = yield from self._session("plan")
            if ended is None:
                return None  # told; what there is can be built all the same (LOP-051)
            if not is_failure(ended.outcome):
                yield from self._verify_claims()
                yield from self._count(is_planned=True)
                yield from self._iterated(ended)
                return None
            if reason := (yield from self._retried(ended)):
                return reason
            yield from self._acts.pause()
            yield from self._acts.unless_stopped()

    def _build(self) -> Flow[PlanBuildExit]:
        if self._progress is not None:
            self._progress.start((yield from self._acts.state()))
        while True:
            yield from self._acts.unless_stopped()
            if (yield from self._acts.is_done()):
                yield from self._verify_claims()  # somebody else may have made some
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
            yield from self._acts.pause()

    def _one(self) -> Flow[PlanBuildExit | None]:
        """An iteration of building, its verification with it; gives why the loop is over."""
        acts = self._acts
        ended = yield from self._session("build")
        assert ended is not None
        if is_failure(ended.outcome):
            return (yield from self._retried(ended))
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
            yield from acts.commit(self._iteration)
        yield from self._iterated(ended)
        return "complete" if complete else (yield from self._standstill())

    def _gate(self) -> JobGate:
        service, run_file = self._service, self._session_files.session_file
        common = (self._options, self._policies, self._interruption)
        return JobGate(
            self._iteration,
            Judge(self._iteration, service.agent, *common, run_file=run_file),
            *common,
            store=service.store,
            prompts=service.prompts,
            shell=service.shell,
            session=self._session_files,
        )

    def _verify_claims(self) -> Flow[None]:
        """No job is done without a verification, whoever says so and whenever (LOP-096)."""
        verdict = yield from self._gate().run(self._accepted, self._failures, iterated=False)
        self._findings += verdict.findings
        self._failures, self._accepted = verdict.failures, verdict.accepted

    def _session(self, phase: PromptPhase) -> Flow[PlanBuildSessionEnded | None]:
        """A session of the phase; None when there is no prompt for it."""
        self._base = yield from self._acts.head()
        self._iteration += 1
        self._turns[phase] += 1
        # Done as a whole, or begun anew by a resumed run.
        stage = flow(
            lambda: phase_session(
                phase,
                self._service,
                self._options,
                self._policies,
                self._interruption,
                iteration=self._iteration,
                turn=self._turns[phase],
                base=self._base,
                findings=(*self._findings, *self._rejected),
                run_file=self._session_files.session_file,
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
        self._errors = self._errors + 1 if is_failure(ended.outcome) else 0
        return ended

    def _is_complete(self) -> Flow[bool]:
        """The done file is a claim like any other: what contradicts it takes it away (LOP-096)."""
        known = self._jobs if self._is_known else None
        reason = contradiction(self._findings, known)
        reason = reason or disappeared((yield from self._acts.missing()))
        if not reason:
            return True
        yield from self._acts.remove_done()
        yield from emit(DoneFileRejected(reason=reason))
        self._rejected = (f"{DONE_FILE} was there although {reason}",)
        return False

    def _retried(self, ended: PlanBuildSessionEnded) -> Flow[PlanBuildExit | None]:
        """Another session follows one that failed, unless too many have (LOP-064)."""
        yield from self._verify_claims()
        yield from self._count()
        self._error = ended.message or "Unknown error"
        most = self._options.max_retries
        if self._errors > most:
            return "max_retries_exceeded"
        yield from emit(
            PlanBuildSessionRetry(attempt=self._errors, max_retries=most, message=self._error)
        )
        return None

    def _iterated(self, ended: PlanBuildSessionEnded) -> Flow[None]:
        yield from emit(
            PlanBuildIterationEnded(
                iteration=self._iteration, cost_usd=ended.cost_usd, duration=ended.duration
            )
        )

    def _standstill(self) -> Flow[PlanBuildExit | None]:
        """Whether the latest iterations have changed nothing (LOP-065)."""
        if self._progress is None:
            return None
        kind = self._progress.observe((yield from self._acts.state()))
        if kind is None:
            return None
        agents = self._progress.agents
        how = "changed nothing" if kind == "unchanged" else "came back to the same state"
        self._error = f"{agents} iterations in a row {how}"
        yield from emit(NoProgress(kind=kind, agents=agents, action="stop"))
        return "stalled"

    def _count(self, *, is_planned: bool = False) -> Flow[None]:
        counted = yield from self._acts.count(self._accepted, is_planned=is_planned)
        self._is_known = counted is not None
        self._jobs = counted or self._jobs

    def _end(self, reason: PlanBuildExit, error: str) -> Flow[None]:
        """The one way out."""
        self.is_unfinished = reason in RESUMABLE
        worked = max(0.0, (self._here.now - self._began).total_seconds())
        own = self._error if reason in _EXPLAINED else ""
        yield from emit(
            PlanBuildEnded(
                reason=reason,
                iterations=self._iteration,
                open=self._jobs.open,
                done=self._jobs.done,
                blocked=self._jobs.blocked,
                cost_usd=self._policies.ledger.spent.cost_usd or 0.0,
                duration=self._earlier + worked,
                error=error or own,
            )
        )


_EXPLAINED = frozenset({"blocked", "stalled", "max_retries_exceeded"})
"""Ends whose cause the loop has noted itself."""
