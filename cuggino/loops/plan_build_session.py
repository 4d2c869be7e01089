"""One session of the plan/build loop."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from reactivex import Observable, operators as ops
from reactivex.subject import Subject

from cuggino.agents.protocol import LlmAgent, SpawnOptions, is_guarded
from cuggino.config import configured_policy
from cuggino.domain.job_verification import with_findings
from cuggino.events import (
    CommitSeen,
    Event,
    PlanBuildPhase,
    PlanBuildPhaseStarted,
    PlanBuildSessionEnded,
    PlanBuildWarning,
)
from cuggino.loops.deliver_interrupt import Interruption
from cuggino.loops.options import PlanBuildOptions
from cuggino.loops.session_fold import SessionFold
from cuggino.loops.work_notices import WorkNotices
from cuggino.operators import Flow, alongside, ask, emit, flow, forward, mapcat
from cuggino.prompts.loop_prompts import PromptNotFound, PromptPhase, read_prompt
from cuggino.security.policy import Level, Policy
from cuggino.security.sandbox import Sandbox, sandbox_for
from cuggino.stages import Sessions, Supervision, act, lane
from cuggino.storage.jobs import REQUIREMENTS_FOLDER

if TYPE_CHECKING:
    from cuggino.loops.plan_build import PlanBuildService


def spawn_options(
    phase: PromptPhase,
    prompt: str,
    options: PlanBuildOptions,
    *,
    turn: int,
    is_guarded: bool,
    run_file: Path,
) -> SpawnOptions:
    """What a session of the phase is started with.

    The project is its own, but for what is protected; without `allow_all` as far as listed programs
    go (LOP-112).
    """
    guard = None
    if is_guarded and options.is_guarded:
        level: Level = "roles" if options.guard == "roles" and options.allow_all else "full"
        policy = configured_policy(options, "implementing", project=options.cwd, level=level)
        guard = policy._replace(read_only=())
    return SpawnOptions(
        prompt=prompt,
        cwd=options.cwd,
        dangerously_skip_permissions=options.allow_all or guard is not None,
        session_id=str(uuid.uuid4()),
        role=phase,
        turn=turn,
        model=options.model,
        env={"CUGGINO_ROLE": phase, "CUGGINO_SESSION_FILE": str(run_file)},
        guard=guard,
        sandbox=_sandbox(options, guard),
    )


def _sandbox(options: PlanBuildOptions, guard: Policy | None) -> Sandbox | None:
    if guard is None or not options.sandbox:
        return None
    return sandbox_for(guard, domains=options.sandbox_domains)


def phase_session(
    phase: PromptPhase,
    service: PlanBuildService,
    options: PlanBuildOptions,
    policies: Supervision,
    interruption: Interruption,
    *,
    iteration: int,
    turn: int,
    base: str | None,
    findings: tuple[str, ...],
    run_file: Path,
) -> Flow[None]:
    """A session of the phase from its prompt on; a warning alone when nobody can plan (LOP-051).

    `base` is the commit before it; `findings` are what it is told besides.

    Raises:
        ConfigError: the prompt cannot be used, or there is none where there must be.
        QuotaExceeded, BudgetExceeded, Interrupted: as `PlanBuildSession.run`.
    """
    path = options.plan_prompt if phase == "plan" else options.build_prompt
    try:
        text = yield from ask(act(lambda: read_prompt(phase, path, options.cwd)))
    except PromptNotFound as error:
        if phase == "build" or options.plan_only:
            raise
        yield from emit(PlanBuildWarning(message=f"{error.message}\n{error.hint or ''}".strip()))
        return
    yield from emit(PlanBuildPhaseStarted(phase=phase, iteration=iteration))
    spawn = spawn_options(
        phase,
        with_findings(text or "", findings),
        options,
        turn=turn,
        is_guarded=is_guarded(service.agent, phase),
        run_file=run_file,
    )
    session = PlanBuildSession(
        iteration,
        phase,
        service.agent,
        spawn,
        policies,
        interruption,
        commits=lambda: service.commits(options.cwd, base),
    )
    yield from forward(flow(session.run))


class PlanBuildSession:
    """A session and what it is seen to do. One object for each."""

    def __init__(
        self,
        iteration: int,
        phase: PlanBuildPhase,
        agent: LlmAgent,
        options: SpawnOptions,
        policies: Supervision,
        interruption: Interruption,
        *,
        commits: Callable[[], Observable[list[list[str]]]],
    ) -> None:
        self._iteration = iteration
        self._phase: PlanBuildPhase = phase
        self._agent = agent
        self._options = options
        self._policies = policies
        self._interruption = interruption
        self._commits = commits
        self._fold = SessionFold(policies.budget)
        self._notices = WorkNotices(options.cwd)
        self._committed: Subject[object] = Subject()
        self._seen: set[str] = set()

    def run(self) -> Flow[None]:
        """The session.

        Emits the events of the agent and of its policies; behind them `SubAgentStarted`,
        `SubAgentEnded`, `FileTouched` and `CommitSeen` as they are noticed, for files of the
        requirements however they were changed (LOP-053); last `PlanBuildSessionEnded`.

        Raises:
            QuotaExceeded, BudgetExceeded: and what every other session would meet as well.
            Interrupted: a person has stopped it.
        """
        here = yield from ask(lane())
        assert here is not None
        began = here.now
        known = (yield from ask(act(lambda: _requirements(self._options.cwd)))) or {}
        sessions = Sessions(
            self._agent, self._options, read=self._fold.read, budget=self._policies.remaining
        )
        supervised = self._policies.around(sessions, sessions.first())
        commits: Observable[Event] = self._committed.pipe(
            ops.flat_map(lambda _tick: self._new_commits())
        )
        work = supervised.pipe(
            ops.do_action(self._fold.add),
            mapcat(self._notices.notice),
            ops.do_action(self._look),
            alongside(commits),
        )
        failure: Exception | None = None
        try:
            yield from forward(self._interruption.ending(work))
        except Exception as error:
            failure = error
        judged = self._fold.judged(failure)
        yield from forward(self._new_commits())
        changed = yield from ask(act(lambda: _requirements(self._options.cwd)))
        for path in sorted(
            path for path, state in (changed or {}).items() if known.get(path) != state
        ):
            yield from emit(*self._notices.touched(path))
        ended = PlanBuildSessionEnded(
            iteration=self._iteration,
            phase=self._phase,
            outcome=self._fold.outcome(judged),
            message=judged.message if judged is not None else self._fold.words,
            cost_usd=self._fold.spent.cost_usd,
            duration=max(0.0, (here.now - began).total_seconds()),
        )
        yield from emit(ended)
        if judged is not None and self._fold.ends_the_loop(judged):
            # Not an end of the session that a resumed run could go on behind.
            raise judged

    def _look(self, _event: Event) -> None:
        if self._notices.has_committed:
            self._notices.has_committed = False
            self._committed.on_next(True)

    def _new_commits(self) -> Observable[Event]:
        def told(commits: list[list[str]]) -> list[Event]:
            new = [(commit, subject) for commit, subject in commits if commit not in self._seen]
            self._seen.update(commit for commit, _ in new)
            return [CommitSeen(commit_hash=commit, subject=subject) for commit, subject in new]

        return self._commits().pipe(mapcat(told))


def _requirements(project: Path) -> dict[str, tuple[int, int]]:
    """The files of the requirements, each with its time and size; as far as they can be seen."""
    found: dict[str, tuple[int, int]] = {}
    for folder, _, names in os.walk(project / REQUIREMENTS_FOLDER):
        for name in names:
            path = Path(folder, name)
            with suppress(OSError):
                state = path.stat()
                found[path.relative_to(project).as_posix()] = (state.st_mtime_ns, state.st_size)
    return found
