"""One run of the deliver loop: which session follows which, and when it is over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from reactivex import operators as ops

from cuggino.agents.base import is_guarded
from cuggino.config import AgentSettings
from cuggino.domain import TOOLS_OF, agent_tool, tool_named
from cuggino.errors import ConfigError
from cuggino.events import (
    DeliverablesListed,
    DeliverExit,
    DeliverInstruction,
    DeliverSessionEnded,
    DeliverSessionRetry,
    DeliverSessionStarted,
    DeliverWarning,
    Event,
)
from cuggino.guard import NOTE
from cuggino.loops.deliver.course import Course
from cuggino.loops.deliver.options import DeliverRunOptions
from cuggino.loops.deliver.session import deliver_session, listed
from cuggino.loops.deliver.setup import session_setup
from cuggino.loops.deliver.tool_socket import ToolSocket
from cuggino.loops.frame.ending import run_to_its_end
from cuggino.loops.frame.history import history_kept
from cuggino.loops.frame.run import Run, Story
from cuggino.operators import Flow, Scope, ask, emit, flow, forward
from cuggino.prompts import (
    is_planning,
    load_instruction,
)
from cuggino.stages import WAITING_SECTION, Waited, act, boundary_for, spawn_options
from cuggino.storage import WORKSPACE_FOLDER, DeliverableStore, VerifiedFile

_MAY_WAIT: frozenset[DeliverInstruction] = frozenset({"coding", "verify"})
"""The instructions whose sessions may wait."""


class DeliverRun(Story):
    """One run: what its sessions share. A resumed run replays the outcomes of its stages."""

    reports_interruption = True

    def __init__(
        self,
        run: Run,
        options: DeliverRunOptions,
        *,
        agent_settings: AgentSettings,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self._run = run
        self._store = DeliverableStore(run.services.workspace.root)
        self._options = options
        self._agent_settings = agent_settings
        self._warnings = warnings
        self._verified = VerifiedFile(run.session.verified_file)
        self._course = Course(options)

    def opening(self) -> Flow[None]:
        """Warn of settings of the project that cannot be used."""
        yield from emit(*(DeliverWarning(message=warning) for warning in self._warnings))

    def run(self) -> Flow[None]:
        """Run sessions until the loop has a result."""
        yield from run_to_its_end(self._kept(), self._end)

    def _kept(self) -> Flow[tuple[DeliverExit, str]]:
        base = yield from ask(self._run.services.repository.head(), name="head-start")
        reason = yield from self._until_done()
        yield from history_kept(self._run, base)
        return reason, self._course.error if reason in ("stalled", "max_retries_exceeded") else ""

    def _until_done(self) -> Flow[DeliverExit]:
        course, options = self._course, self._options
        yield from self._look()
        yield from self._run.unless_interrupted()
        reason = None if options.recheck else (yield from self._decide(None))
        if reason is None and course.watches_progress:
            course.begin((yield from self._files()))
        while reason is None:
            yield from self._run.within_budget()
            ended = yield from self._session()
            yield from self._run.unless_interrupted()
            reason = yield from self._after(ended)
            if reason is None:
                yield from self._run.pause(options.session_pause)
        return reason

    def _decide(self, ended: DeliverSessionEnded | None) -> Flow[DeliverExit | None]:
        """Return why the loop ends after this session, or before the first, or None."""
        course, options = self._course, self._options
        reason = course.decide(ended)
        if reason == "all_passed" and options.verify:
            yield from self._verify(only_passed=True)
            reason = course.decide(ended)
        elif reason == "all_verified" and options.workflow == "run":
            reason = course.verified(ended)
        return reason

    def _session(self) -> Flow[DeliverSessionEnded]:
        exists = yield from ask(act(self._store.exists), name="exists")
        course = self._course
        instruction = course.instruction(is_planned=bool(exists))
        course.sessions += 1
        turn = self._run.next_turn(instruction)
        model = self._options.model
        if is_planning(instruction):
            model = self._options.plan_model or model
        started = DeliverSessionStarted(
            session=course.sessions, instruction=instruction, model=model
        )
        waited: Waited | None = None
        while True:  # until it waits for nothing more
            yield from emit(started)
            stage = flow(partial(self._run_session, instruction, turn, model, waited))
            ended = yield from forward(stage, name=instruction)
            assert isinstance(ended, DeliverSessionEnded)
            if instruction in _MAY_WAIT:
                waited = yield from self._run.resumed_after(ended, instruction)
            if waited is None:
                break
        course.ended(ended)
        yield from self._look()
        # Of a broken file nothing is known, not that there is nothing to verify.
        if instruction == "sync" and not course.failures.times and course.listed is not None:
            yield from self._verify(only_passed=False)
        return ended

    def _after(self, ended: DeliverSessionEnded) -> Flow[DeliverExit | None]:
        """Return why the loop ends after this session, or None; emits the retry or standstill."""
        course, options = self._course, self._options
        reason = yield from self._decide(ended)
        if reason is not None:
            return reason
        if course.failures.times:
            attempt, message = course.failures
            yield from emit(
                DeliverSessionRetry(
                    attempt=attempt, max_retries=options.max_retries, message=message
                )
            )
        elif course.watches_progress:
            standstill = course.moved((yield from self._files()))
            if standstill is not None:
                yield from emit(standstill)
                return "stalled"
        return None

    def _run_session(
        self,
        instruction: DeliverInstruction,
        turn: int,
        model: str | None,
        waited: Waited | None,
    ) -> Flow[None]:
        """Run a session as a stage; a resumed run repeats an unfinished one."""
        options, agent = self._options, self._run.services.agent
        tools: dict[str, str] = {tool: agent_tool(tool) for tool in TOOLS_OF[instruction]}
        told = yield from ask(act(lambda: load_instruction(instruction, options.cwd, tools=tools)))
        assert told is not None
        yield from emit(*(DeliverWarning(message=warning) for warning in told.warnings))
        if instruction == "verify":
            yield from ask(act(self._keep_verified))
        boundary = boundary_for(options, instruction, agent)
        tools_folder = self._run.session.tools_folder
        with Scope() as scope:
            call = partial(self._call, instruction)
            server = scope.acquire(partial(ToolSocket, tools_folder, call), ToolSocket.close)
            setup = session_setup(
                instruction,
                options,
                self._agent_settings,
                is_guarded=is_guarded(agent, instruction),
                socket=server.path,
            )
            may_wait = instruction in _MAY_WAIT
            common = spawn_options(
                options,
                instruction,
                f"{told.text}\n\n{WAITING_SECTION}" if may_wait else told.text,
                guard=setup.guard,
                turn=turn,
                session=self._run.session,
                agent=agent,
                folder=tools_folder if boundary.engine != "none" else None,
                drafts=self._run.services.drafts,
            )
            spawn = replace(
                common,
                model=model,
                thinking=options.thinking,
                settings=setup.settings,
                mcp_servers=setup.mcp_servers,
                allowed_tools=setup.allowed_tools,
            )
            session = partial(
                deliver_session,
                self._course.sessions,
                self._run,
                spawn,
                self._store,
                self._verified,
                waited=waited,
                may_wait=may_wait,
            )
            yield from forward(flow(session).pipe(ops.do_action(self._heard)))

    def _call(
        self, instruction: DeliverInstruction, tool: str, given: Mapping[str, object]
    ) -> Mapping[str, object]:
        """Call a deliverable tool for an agent; any thread."""
        if tool_named(tool) not in TOOLS_OF[instruction]:
            raise ConfigError(f'there is no tool "{tool}" in this session')
        called = self._store.call(
            tool,
            given,
            now=datetime.now(UTC),
            strict=self._options.strict_transitions,
            verified=self._verified if instruction == "verify" else None,
        )
        return called.answer()

    def _heard(self, event: Event) -> None:
        """Keep the deliverables that a session reports, in case the loop ends with it."""
        if isinstance(event, DeliverablesListed):
            self._course.listed = event

    def _keep_verified(self) -> None:
        """Create the file again if it was removed since an earlier process."""
        if self._verified.read() is None:
            self._verified.start(self._course.to_verify or ())

    def _verify(self, *, only_passed: bool) -> Flow[None]:
        """Begin to verify deliverables, each of them once."""
        ids = self._course.unverified(only_passed=only_passed)
        yield from ask(act(lambda: bool(self._verified.start(ids))), name="verification")
        yield from self._look()

    def _look(self) -> Flow[None]:
        """Read the deliverables; they are unknown when their file is broken (AUT-104)."""
        last = yield from forward(flow(self._list), name="status")
        self._course.listed = last if isinstance(last, DeliverablesListed) else None

    def _list(self) -> Flow[None]:
        loaded = yield from ask(act(lambda: self._store.load(now=self._run.lane.now)))
        assert loaded is not None
        yield from emit(*(DeliverWarning(message=warning) for warning in loaded.warnings))
        if loaded.broken is None:
            verifies = self._course.to_verify is not None
            done = (yield from ask(act(self._verified.read))) if verifies else None
            yield from emit(listed(loaded, done.verified if done else ()))

    def _files(self) -> Flow[str]:
        """Return the fingerprint of the project; notes alone are no progress."""
        exclude = (Path(NOTE), Path(".autonoe"), Path(WORKSPACE_FOLDER))
        return (yield from self._run.project_state(self._options.cwd, exclude=exclude))

    def _end(self, reason: DeliverExit, error: str) -> Flow[None]:
        """Emit the result (AUT-036)."""
        run = self._run
        ended = self._course.conclusion(reason, error=error, paid=run, duration=run.seconds)
        self.is_resumable = ended.is_resumable
        yield from emit(ended)
