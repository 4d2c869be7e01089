"""The verification after a session: no job is done until it is verified.

Sources: requirements LOP-090 to LOP-099.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from reactivex import Observable, just, operators as ops

from cuggino.domain import (
    BLOCKED,
    IN_PROGRESS,
    CommandCheck,
    CommandRun,
    FailureCounts,
    JobFacts,
    Jobs,
    VerificationResult,
    failure_note,
    parse_check_answer,
    parse_job_answer,
    with_facts,
)
from cuggino.events import (
    BuildVerified,
    CheckCommandOutput,
    CheckCommandStarted,
    JobBlocked,
    JobVerified,
    PlanBuildWarning,
    VerificationEnded,
    dump_event,
    parse_event,
)
from cuggino.gate import failures_in, same
from cuggino.loops.frame.run import Run
from cuggino.loops.plan_build.judge import judged
from cuggino.loops.plan_build.options import PlanBuildOptions
from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.prompts import build_verification_prompt, job_verification_prompt
from cuggino.stages import (
    act,
    command_stage,
    commands_shell,
    flake_stage,
    protected_from_commands,
    shell_lines,
    verified,
)
from cuggino.storage import JobStore, check_requirement

UNVERIFIED = "It could not be verified"
"""The issue of a job without a verdict: it is sent back, but has not failed."""


class GateVerdict(NamedTuple):
    """The result of a verification."""

    findings: tuple[str, ...] = ()
    """The findings for the next session."""
    failures: Mapping[str, int] = MappingProxyType({})
    """The number of consecutive failures of each job, by id."""
    accepted: frozenset[str] = frozenset()
    """The ids of the jobs that are done and need no further verification."""
    runs: Mapping[str, CommandRun] = MappingProxyType({})
    """The latest run of each of the project's commands."""


class _Claim(NamedTuple):
    """A job reported as done."""

    job_id: str
    requirement_code: str
    description: str


class JobGate:
    """Verifies the work of one session.

    Each verification and each change of the jobs file is a stage: a run that is resumed in between
    loses no verdict.
    """

    def __init__(self, iteration: int, run: Run, options: PlanBuildOptions) -> None:
        self._iteration = iteration
        self._run = run
        self._options = options
        self._store = JobStore(run.services.workspace.root)
        self._findings: list[str] = []
        self._ran_before: Mapping[str, CommandRun] = {}

    def run(
        self, before: GateVerdict, commits: tuple[str, ...] = (), *, iterated: bool
    ) -> Flow[GateVerdict]:
        """Verify the build after an iteration, and each job that is done and not yet accepted.

        `before` is the last verdict, `commits` the subjects of the commits of the iteration. Emits
        `CheckCommandStarted`, `CheckFlaky`, the events of the verifying agents, `BuildVerified`,
        `JobVerified` and `JobBlocked`; last `VerificationEnded`. If no iteration has ended, the
        build is not verified, and nothing is emitted without a job to verify. With a broken jobs
        file no job is verified (LOP-073).

        Raises:
            QuotaExceeded, BudgetExceeded: and any error that every session would meet.
            StorageError: the jobs cannot be written.
            Interrupted: a person has stopped it.
        """
        counts = FailureCounts(dict(before.failures))
        self._ran_before = before.runs
        accepted, claims = yield from self._claimed(before.accepted)
        if not iterated and not claims:
            return GateVerdict((), counts.counts, accepted, before.runs)
        wants_build = iterated and self._options.verify_after_iteration
        runs = yield from self._commands(build=wants_build or bool(claims), tests=bool(claims))
        if wants_build:
            told = yield from forward(flow(lambda: self._build(runs)), name="verify-build")
            if isinstance(told, BuildVerified) and not told.passed:
                self._findings += told.issues
        refuted: set[str] = set()
        for claim in claims:
            if claim.job_id not in refuted:
                passed, counts = yield from self._job(claim, runs, commits, counts)
                accepted |= {claim.job_id}
                if not passed:
                    refuted.add(claim.job_id)
        accepted, late = yield from self._claimed(accepted - refuted)
        for claim in {claim.job_id: claim for claim in late}.values():
            yield from emit(_told(claim, VerificationResult.failed(UNVERIFIED)))  # too late for it
            self._findings.append(f"{claim.job_id}: {UNVERIFIED}")
            yield from self._sent_back(claim.job_id, IN_PROGRESS, UNVERIFIED)
        yield from emit(
            VerificationEnded(findings=tuple(self._findings), failures=dict(counts.counts))
        )
        latest = {**before.runs, **{run.command: run for run in runs}}
        return GateVerdict(tuple(self._findings), counts.counts, accepted, latest)

    def _claimed(self, accepted: frozenset[str]) -> Flow[tuple[frozenset[str], list[_Claim]]]:
        """Return the jobs that are still accepted, and those done that are not."""
        seen: Any = yield from ask(act(self._look), name="claims")
        if seen is None:
            return accepted, []
        done = [_Claim(*row) for row in seen["done"]]
        # An id that is given twice is done when all of its jobs are.
        still = accepted & ({claim.job_id for claim in done} - set(seen["open"]))
        return still, [claim for claim in done if claim.job_id not in still]

    def _look(self) -> dict[str, Any] | None:
        """Return the jobs reported as done and the ids of the others; None if broken."""
        loaded = self._store.load()
        if loaded.broken is not None:
            return None
        items = loaded.jobs.items
        return {
            "done": [[x.id, x.requirement_code, x.description] for x in items if x.is_done],
            "open": [x.id for x in items if not x.is_done],
        }

    def _commands(self, *, build: bool, tests: bool) -> Flow[tuple[CommandRun, ...]]:
        """Run the project's own commands once each: an exit code is proof (LOP-099)."""
        wanted: list[tuple[CommandCheck, str]] = []
        if build and self._options.verify_build:
            wanted.append(("build", self._options.verify_build))
        if tests and self._options.verify_test:
            wanted.append(("tests", self._options.verify_test))
        if not wanted:
            return ()
        ran: list[CommandRun] = []
        while len(ran) < len(wanted):  # version 0.1.0 ran all of them in one stage
            started = CheckCommandStarted(iteration=self._iteration, command=wanted[len(ran)][1])
            yield from forward(just(started), name="verify-start")
            for code, output in (yield from self._ran(started.command, "verify-commands")):
                check, command = wanted[len(ran)]
                ran.append(CommandRun(check=check, command=command, exit_code=code, output=output))
        runs: list[CommandRun] = []
        for run in ran:
            runs.append((yield from self._repeated(run)))
        return tuple(runs)

    def _ran(self, command: str, name: str) -> Flow[list[tuple[int, str]]]:
        """Run the command; return its exit code and output, as a list of one."""
        stage: Observable[list[Any]] = flow(lambda: self._run_command(command))
        outcomes = (yield from ask(stage, name=name)) or []
        for _code, _output, *violations in outcomes:
            yield from emit(*(parse_event(line) for line in violations))
        return [(code, output) for code, output, *_ in outcomes]

    def _repeated(self, run: CommandRun) -> Flow[CommandRun]:
        """Repeat a command that failed in a new way: one that then passes is flaky."""
        before = self._ran_before.get(run.command)
        if run.succeeded or (before is not None and _failed_alike(before, run)):
            return run
        for code, output in (yield from self._ran(run.command, "verify-again")):
            if code == 0:
                flake = flake_stage(
                    run.output,
                    command=run.command,
                    exit_code=run.exit_code,
                    ledger=self._run.services.workspace.flakes,
                    iteration=self._iteration,
                )
                yield from forward(flake, name="flake")
                return replace(run, exit_code=code, output=output)
        return run

    def _run_command(self, command: str) -> Flow[None]:
        run = self._run
        stage = command_stage(
            CheckCommandOutput,
            command,
            shell=commands_shell(run.services.shell, self._options),
            cwd=self._options.cwd,
            iteration=self._iteration,
            output_file=run.session.check_file,
            timeout=self._options.command_timeout,
        )
        protected = None
        if run.services.shell is shell_lines:
            protected = protected_from_commands(
                self._options, "verify", session=run.session, role="build"
            )
        around = verified(protected, is_last=lambda _: True, voids=False)
        told: list[Any] = []
        seen = run.supervision.in_time(stage).pipe(around, ops.do_action(told.append))
        done = yield from ask(run.interruption.ending(seen))
        violations = [dump_event(event) for event in told if event is not done]
        code = done.exit_code if done is not None else None
        output = done.output if done is not None else ""
        yield from emit([[1 if code is None else code, output, *violations]])

    def _asked(
        self, prompt: str, read: Callable[[str], VerificationResult]
    ) -> Flow[VerificationResult | None]:
        run, options = self._run, self._options
        return (yield from judged(prompt, read, run, options, iteration=self._iteration))

    def _build(self, runs: tuple[CommandRun, ...]) -> Flow[None]:
        """Verify that the project builds (LOP-095)."""
        own = next((run.result for run in runs if run.check == "build"), None)
        if own is None:
            prompt = build_verification_prompt(self._run.services.prompts)
            own = yield from self._asked(prompt, partial(parse_check_answer, "build"))
        if own is None:
            return
        issues = own.issues or (() if own.complete else ("the build does not succeed",))
        yield from emit(BuildVerified(passed=own.complete, issues=issues))

    def _job(
        self,
        claim: _Claim,
        runs: tuple[CommandRun, ...],
        commits: tuple[str, ...],
        counts: FailureCounts,
    ) -> Flow[tuple[bool, FailureCounts]]:
        """Keep the job, or send it back with the reasons (LOP-096, LOP-097)."""
        stage = flow(lambda: self._verify(claim, runs, commits))
        told = yield from forward(stage, name="verify-job")
        assert isinstance(told, JobVerified)
        job_id = claim.job_id
        if told.passed:
            return True, counts.passed(job_id)
        self._findings += [f"{job_id}: {issue}" for issue in told.issues]
        status, note = IN_PROGRESS, UNVERIFIED
        if told.issues != (UNVERIFIED,):
            counts = counts.failed(job_id)
            status = BLOCKED if counts.is_exhausted(job_id) else IN_PROGRESS
            note = failure_note(VerificationResult(issues=told.issues))
        written = yield from self._sent_back(job_id, status, note)
        if written and status == BLOCKED:
            yield from emit(
                JobBlocked(
                    job_id=job_id, description=claim.description, failures=counts.counts[job_id]
                )
            )
        return False, counts

    def _sent_back(self, job_id: str, status: str, note: str) -> Flow[bool]:
        """Send the job back; return whether that succeeded, and warn if not."""
        back = act(lambda: self._send_back(job_id, status, note))
        problem = yield from ask(back, name="send-back")
        if problem:
            yield from emit(PlanBuildWarning(message=problem))
        return not problem

    def _verify(
        self, claim: _Claim, runs: tuple[CommandRun, ...], commits: tuple[str, ...]
    ) -> Flow[None]:
        options = self._options
        code = claim.requirement_code
        requirement = yield from ask(act(lambda: check_requirement(options.cwd, code)))
        assert requirement is not None
        facts = JobFacts(requirement=requirement, runs=runs, commits=commits)
        result = facts.refutation
        if result is None and not options.verify_after_iteration:
            result = VerificationResult.passed()  # the project asks no agent: the facts decide
        if result is None:
            prompt = job_verification_prompt(
                self._run.services.prompts,
                job_id=claim.job_id,
                requirement_code=code,
                description=claim.description,
                facts=facts.as_list,
                build_command=options.verify_build,
                test_command=options.verify_test,
            )
            told = yield from self._asked(prompt, parse_job_answer)
            unknown = VerificationResult.failed(UNVERIFIED)
            result = with_facts(told, facts) if told is not None else unknown
        yield from emit(_told(claim, result))

    def _send_back(self, job_id: str, status: str, note: str) -> str:
        """Set status and note of the job; return why that failed, or ""."""
        broken = self._store.load().broken
        if broken is not None:
            return f"{job_id} cannot be sent back: {broken}"

        def step(jobs: Jobs) -> Jobs:
            named = [job for job in jobs.items if job.id == job_id]
            if not named:
                return jobs
            if status == BLOCKED or any(job.is_done for job in named):
                jobs = jobs.with_status(job_id, status)
            return jobs.noted(job_id, note)

        self._store.change(step)
        return ""


def _failed_alike(before: CommandRun, now: CommandRun) -> bool:
    """Return whether both runs of a command failed in the same way."""
    return not before.succeeded and same(failures_in(before.output), failures_in(now.output))


def _told(claim: _Claim, result: VerificationResult) -> JobVerified:
    return JobVerified(
        job_id=claim.job_id,
        description=claim.description,
        passed=result.complete,
        issues=result.issues,
    )
