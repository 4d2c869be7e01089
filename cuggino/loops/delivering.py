"""One run of the deliverables loop: which session follows which, and when it is over."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from reactivex import Observable, empty, just, operators as ops, timer

from cuggino.agents.protocol import SpawnOptions, is_guarded
from cuggino.domain.deliverable_tools import TOOLS_OF, agent_tool
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
from cuggino.loops.deliver_course import Course
from cuggino.loops.deliver_session import DeliverSession, listed
from cuggino.loops.deliver_setup import session_setup
from cuggino.loops.durable import RESUMABLE, Held, told_to_its_end
from cuggino.loops.options import DeliverRunOptions
from cuggino.operators import Flow, ask, emit, flow, forward, within_budget
from cuggino.prompts.instructions import (
    is_planning,
    load_instruction,
)
from cuggino.security.agent_settings import AgentSettings
from cuggino.security.paths import NOTE
from cuggino.stages import act
from cuggino.storage import WORKSPACE_FOLDER
from cuggino.storage.verified import VerifiedFile

if TYPE_CHECKING:
    from cuggino.loops.deliver import DeliverService


class Delivery:
    """One run: what its sessions share. A resumed run replays the outcomes of its stages."""

    def __init__(
        self,
        service: DeliverService,
        held: Held,
        options: DeliverRunOptions,
        *,
        agent_settings: AgentSettings,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self._service = service
        self._run_file = held.session.session_file
        self._options = options
        self._policies = held.policies
        self._agent_settings = agent_settings
        self._warnings = warnings
        self._interruption = held.interruption
        self._here = held.here
        self._began: datetime = held.here.now
        self._earlier = held.earlier
        self._verified = VerifiedFile(held.session.verified_file)
        self._course = Course(options)
        self._turns: Counter[str] = Counter()
        self.is_unfinished = True
        """Whether another process could go on with the run."""

    def notices(self) -> Flow[None]:
        """What of the project's settings is to be said."""
        yield from emit(*(DeliverWarning(message=warning) for warning in self._warnings))

    def tell(self) -> Flow[None]:
        """The sessions, one after the other, and how it ended."""
        yield from told_to_its_end(self._until_done(), self._end)

    def _until_done(self) -> Flow[DeliverExit]:
        course, options = self._course, self._options
        yield from self._look()
        yield from self._unless_interrupted()
        reason = None if options.recheck else (yield from self._decide(None))
        if reason is None and course.watches_progress:
            course.begin((yield from self._files()))
        while reason is None:
            yield from self._within_budget()
            ended = yield from self._session()
            yield from self._unless_interrupted()
            reason = yield from self._after(ended)
            if reason is None:
                yield from self._pause()
        return reason

    def _decide(self, ended: DeliverSessionEnded | None) -> Flow[DeliverExit | None]:
        """Why the loop is over after this session, or before the first; None when it goes on."""
        course, options = self._course, self._options
        reason = course.decide(ended)
        if reason == "all_passed" and options.verify:
            yield from self._verify(only_passed=True)
            reason = course.decide(ended)
        elif reason == "all_verified" and options.workflow == "run":
            reason = course.verified(ended)
        return reason

    def _session(self) -> Flow[DeliverSessionEnded]:
        exists = yield from ask(act(self._service.store.exists), name="exists")
        course = self._course
        instruction = course.instruction(is_planned=bool(exists))
        course.sessions += 1
        self._turns[instruction] += 1
        model = self._options.model
        if is_planning(instruction):
            model = self._options.plan_model or model
        yield from emit(
            DeliverSessionStarted(session=course.sessions, instruction=instruction, model=model)
        )
        stage = flow(lambda: self._run_session(instruction, model))
        ended = yield from forward(stage, name=instruction)
        assert isinstance(ended, DeliverSessionEnded)
        course.ended(ended)
        yield from self._look()
        # Of a broken file nothing is known, not that there is nothing to verify.
        if instruction == "sync" and not course.errors and course.listed is not None:
            yield from self._verify(only_passed=False)
        return ended

    def _after(self, ended: DeliverSessionEnded) -> Flow[DeliverExit | None]:
        """Decide, and say how it goes on; gives why the loop is over, None when it is not."""
        course, options = self._course, self._options
        reason = yield from self._decide(ended)
        if reason is not None:
            return reason
        if course.errors:
            retry = DeliverSessionRetry(
                attempt=course.errors, max_retries=options.max_retries, message=course.error
            )
            yield from emit(retry)
        elif course.watches_progress:
            standstill = course.moved((yield from self._files()))
            if standstill is not None:
                yield from emit(standstill)
                return "stalled"
        return None

    def _run_session(self, instruction: DeliverInstruction, model: str | None) -> Flow[None]:
        """A session as a stage: done as a whole, or begun anew by a resumed run."""
        service, options = self._service, self._options
        tools: dict[str, str] = {tool: agent_tool(tool) for tool in TOOLS_OF[instruction]}
        told = yield from ask(act(lambda: load_instruction(instruction, options.cwd, tools=tools)))
        assert told is not None
        yield from emit(*(DeliverWarning(message=warning) for warning in told.warnings))
        if instruction == "verify":
            yield from ask(act(self._keep_verified))
        setup = yield from ask(
            act(
                lambda: session_setup(
                    instruction,
                    options,
                    self._agent_settings,
                    verified=self._verified.path,
                    is_guarded=is_guarded(service.agent, instruction),
                )
            )
        )
        assert setup is not None
        spawn = SpawnOptions(
            prompt=told.text,
            cwd=options.cwd,
            dangerously_skip_permissions=True,
            session_id=str(uuid.uuid4()),
            role=instruction,
            turn=self._turns[instruction],
            model=model,
            thinking=options.thinking,
            env={"CUGGINO_ROLE": instruction, "CUGGINO_SESSION_FILE": str(self._run_file)},
            guard=setup.guard,
            sandbox=setup.sandbox,
            settings=setup.settings,
            mcp_servers=setup.mcp_servers,
            allowed_tools=setup.allowed_tools,
        )
        session = DeliverSession(
            self._course.sessions,
            service.agent,
            spawn,
            self._policies,
            service.store,
            self._verified,
            service.changes,
            self._interruption,
        )
        yield from forward(flow(session.run).pipe(ops.do_action(self._heard)))

    def _heard(self, event: Event) -> None:
        """What a session says of the deliverables counts, should it be the end of the loop."""
        if isinstance(event, DeliverablesListed):
            self._course.listed = event

    def _keep_verified(self) -> None:
        """The file is there: somebody may have cleared away an unfinished run's."""
        if self._verified.read() is None:
            self._verified.start(self._course.to_verify or ())

    def _verify(self, *, only_passed: bool) -> Flow[None]:
        """From now on deliverables are verified, each of them once."""
        ids = self._course.unverified(only_passed=only_passed)
        yield from ask(act(lambda: bool(self._verified.start(ids))), name="verification")
        yield from self._look()

    def _look(self) -> Flow[None]:
        """What deliverables there are; unknown when their file is broken (AUT-104)."""
        last = yield from forward(flow(self._list), name="status")
        self._course.listed = last if isinstance(last, DeliverablesListed) else None

    def _list(self) -> Flow[None]:
        loaded = yield from ask(act(lambda: self._service.store.load(now=self._here.now)))
        assert loaded is not None
        yield from emit(*(DeliverWarning(message=warning) for warning in loaded.warnings))
        if loaded.broken is None:
            verifies = self._course.to_verify is not None
            done = (yield from ask(act(self._verified.read))) if verifies else None
            yield from emit(listed(loaded, done.verified if done else ()))

    def _files(self) -> Flow[str]:
        """What the project looks like, in a text; notes alone are no progress."""
        exclude = (Path(NOTE), Path(".autonoe"), Path(WORKSPACE_FOLDER))
        project = self._service.fingerprint(self._options.cwd, exclude=exclude, plan=None)
        return (yield from ask(self._interruption.ending(project), name="fingerprint")) or ""

    def _unless_interrupted(self) -> Flow[None]:
        """Go on, unless a person has said not to: a stage, so that a resumed run asks again.

        Raises:
            Interrupted: then it does not go on.
        """
        yield from ask(self._interruption.ending(just(None)), name="interrupt")

    def _within_budget(self) -> Flow[None]:
        """Look at the budget before a session, and not within it: it would count as one.

        Raises:
            BudgetExceeded: it is used up, so that no session is begun.
        """
        nothing: Observable[Event] = empty()
        policies = self._policies
        left = nothing.pipe(within_budget(policies.budget, ledger=policies.ledger))
        yield from forward(left, name="budget")

    def _pause(self) -> Flow[None]:
        """The time between two sessions (AUT-033)."""
        if self._options.session_pause > 0:
            tick = timer(self._options.session_pause)
            yield from ask(self._interruption.ending(tick), name="pause")

    def _end(self, reason: DeliverExit, error: str) -> Flow[None]:
        """The one way out (AUT-036)."""
        self.is_unfinished = reason in RESUMABLE
        worked = max(0.0, (self._here.now - self._began).total_seconds())
        yield from emit(
            self._course.conclusion(
                reason,
                error=error,
                cost_usd=self._policies.ledger.spent.cost_usd or 0.0,
                duration=self._earlier + worked,
            )
        )
