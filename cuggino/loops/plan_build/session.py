"""One session of the plan/build loop."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from reactivex import Observable, operators as ops
from reactivex.subject import Subject

from cuggino.agents.base import LlmAgent, SpawnOptions, is_guarded
from cuggino.config import configured_policy
from cuggino.domain import with_findings
from cuggino.events import (
    CommitSeen,
    Event,
    PlanBuildPhaseStarted,
    PlanBuildSessionEnded,
    PlanBuildWarning,
)
from cuggino.guard import Level
from cuggino.loops.frame.run import Run
from cuggino.loops.frame.session import end_session, run_session
from cuggino.loops.plan_build.notices import WorkNotices
from cuggino.loops.plan_build.options import PlanBuildOptions
from cuggino.operators import Flow, ask, emit, forward
from cuggino.operators.alongside import alongside
from cuggino.operators.mapcat import mapcat
from cuggino.prompts import PromptNotFound, PromptPhase, read_prompt
from cuggino.stages import WAITING_SECTION, Waited, act, spawn_options
from cuggino.storage import REQUIREMENTS_FOLDER, Session


def phase_options(
    phase: PromptPhase,
    prompt: str,
    options: PlanBuildOptions,
    *,
    turn: int,
    is_guarded: bool,
    session: Session,
    agent: LlmAgent | None = None,
    drafts: bool = True,
) -> SpawnOptions:
    """Return the options of a session of the phase.

    It may write the whole project, specifications included, except protected paths. Without
    `allow_all` it may run only listed programs (LOP-112).
    """
    guard = None
    if is_guarded and options.is_guarded:
        level: Level = "roles" if options.guard == "roles" and options.allow_all else "full"
        policy = configured_policy(options, "implementing", project=options.cwd, level=level)
        guard = policy._replace(read_only=())
    common = spawn_options(
        options,
        phase,
        prompt,
        guard=guard,
        turn=turn,
        session=session,
        writes_specs=True,
        agent=agent,
        drafts=drafts,
    )
    unguarded = guard is None and not options.allow_all
    return replace(common, dangerously_skip_permissions=not unguarded)


def phase_session(
    phase: PromptPhase,
    run: Run,
    options: PlanBuildOptions,
    *,
    iteration: int,
    turn: int,
    base: str | None,
    findings: tuple[str, ...],
    waited: Waited | None = None,
) -> Flow[None]:
    """Run a session of the phase; without a planning prompt only warn (LOP-051).

    `base` is the commit before it; `findings` are added to its prompt. A build session may be one
    that has `waited`. Emits
    `PlanBuildPhaseStarted` and the events of the agent and its supervision; after them
    `SubAgentStarted`, `SubAgentEnded`, `FileTouched` and `CommitSeen` as they are noticed, for
    files of the requirements however they were changed (LOP-053); last `PlanBuildSessionEnded`.

    Raises:
        ConfigError: the prompt cannot be used, or there is none where there must be.
        QuotaExceeded, BudgetExceeded: and any error that every session would meet.
        Interrupted: a person has stopped it.
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
    prompt, may_wait = with_findings(text or "", findings), phase == "build"
    spawn = phase_options(
        phase,
        f"{prompt}\n\n{WAITING_SECTION}" if may_wait else prompt,
        options,
        turn=turn,
        is_guarded=is_guarded(run.services.agent, phase),
        session=run.session,
        agent=run.services.agent,
        drafts=run.services.drafts,
    )
    notices, seen = WorkNotices(options.cwd), set[str]()
    committed: Subject[object] = Subject()

    def new_commits() -> Observable[Event]:
        def told(commits: list[list[str]]) -> list[Event]:
            new = [(commit, subject) for commit, subject in commits if commit not in seen]
            seen.update(commit for commit, _ in new)
            return [CommitSeen(commit_hash=commit, subject=subject) for commit, subject in new]

        return run.services.commits(options.cwd, base).pipe(mapcat(told))

    def look(_event: Event) -> None:
        if notices.has_committed:
            notices.has_committed = False
            committed.on_next(True)

    def observed(events: Observable[Event]) -> Observable[Event]:
        commits: Observable[Event] = committed.pipe(ops.flat_map(lambda _: new_commits()))
        return events.pipe(mapcat(notices.notice), ops.do_action(look), alongside(commits))

    began = run.lane.now
    known = (yield from ask(act(lambda: _requirements(options.cwd)))) or {}
    report = yield from run_session(run, spawn, observed, waited=waited, may_wait=may_wait)
    yield from forward(new_commits())
    changed = (yield from ask(act(lambda: _requirements(options.cwd)))) or {}
    for path in sorted(path for path, state in changed.items() if known.get(path) != state):
        yield from emit(*notices.touched(path))
    yield from end_session(
        report,
        PlanBuildSessionEnded(
            iteration=iteration,
            phase=phase,
            outcome=report.outcome,
            message=report.message,
            cost_usd=report.cost_usd,
            cost_estimated=report.cost_estimated,
            duration=run.since(began),
            session_id=report.session_id,
        ),
    )


def _requirements(project: Path) -> dict[str, tuple[int, int]]:
    """Return time and size of each file of the requirements that can be read."""
    found: dict[str, tuple[int, int]] = {}
    for folder, _, names in os.walk(project / REQUIREMENTS_FOLDER):
        for name in names:
            path = Path(folder, name)
            with suppress(OSError):
                state = path.stat()
                found[path.relative_to(project).as_posix()] = (state.st_mtime_ns, state.st_size)
    return found
