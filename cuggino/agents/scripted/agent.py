"""The scripted agent: a real child process that plays a scenario, without a key."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from reactivex import Observable, defer, throw

from cuggino._version import __version__
from cuggino.agents.base.agent import Capabilities, LlmAgent, SpawnOptions
from cuggino.agents.base.enclosing import enclosure_of
from cuggino.agents.base.guard import make_guard, with_variables
from cuggino.agents.base.private_files import Session
from cuggino.agents.base.stream import stream_json
from cuggino.agents.base.wire import parse_json_line
from cuggino.agents.claude.guard import GuardWatch, try_hook
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.agents.scripted.scenario import Scenario, ScenarioRun, Step, load_scenario
from cuggino.errors import AgentFailed
from cuggino.events import LlmAgentEvent
from cuggino.guard import Policy
from cuggino.operators import acquire_release
from cuggino.programs import program

_STEP = b'{"type": "system", "subtype": "step",'


REMINDER = "You ended without one of the markers of your role"
"""Prefix of the prompt that asks a session for its missing marker."""


@dataclass
class _Session:
    """The progress of a session in this process."""

    run: ScenarioRun
    begun: int = 0
    """Number of steps of the run that have started."""

    def next_steps(self, options: SpawnOptions) -> tuple[tuple[Step, ...], bool]:
        """Return the steps to play now, and whether they are steps of the run itself."""
        if options.resume_session_id is not None:
            if options.prompt.startswith(REMINDER):
                return self.run.reminder, False
            if self.run.resumed:
                return self.run.resumed, False
        return self.run.steps[self.begun :] or self.run.steps, True


class _Reader(ClaudeSession):
    """Reads the process, and tracks which step of the run has started."""

    def __init__(self, session: _Session, first: int, **options: Any) -> None:
        super().__init__(**options)
        self._session = session
        self._first = first

    def feed(self, line: bytes, *, now: float) -> list[LlmAgentEvent]:
        if line.startswith(_STEP) and isinstance(
            number := (parse_json_line(line) or {}).get("number"), int
        ):
            self._session.begun = self._first + number + 1
        return super().feed(line, now=now)


class ScriptedAgent(LlmAgent):
    """Plays a scenario in child processes that print stream-json and really edit files.

    Each new session takes the next run of its role. If `SpawnOptions.turn` shows that an earlier
    process had sessions of this role in this run of the loop (identified by the session file,
    `CUGGINO_SESSION_FILE`), as many runs are skipped first; a session that is retried with the same
    turn takes the next one. `scenario` describes what a resumed session plays; one that this
    process does not know takes the run of its turn.
    """

    name = "scripted"

    def __init__(self, scenario: Scenario | str | os.PathLike[str]) -> None:
        self._scenario = (
            scenario if isinstance(scenario, Scenario) else load_scenario(Path(scenario))
        )
        self._taken: Counter[str] = Counter()
        self._turns: dict[tuple[str, str], int] = {}
        self._sessions: dict[str, _Session] = {}

    capabilities = Capabilities(
        guard="calls",
        mcp=True,
        resume=True,
        cost="dollars",
        view=True,
        messages=True,
        note="takes them in the steps that listen",
    )

    def check(self) -> str:
        """Return the version of cuggino, as the agent is a part of it."""
        return __version__

    def check_guard(self, policy: Policy) -> None:
        try_hook(make_guard(policy))

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Play the next run of the role; see `LlmAgent.spawn`.

        A step whose tool the guard denies does not run: its result is the reason, as an error. The
        `mcp_servers` that the steps need are really started, and end with the session.

        Fails with `AgentFailed` if the scenario has no further run for the role.
        """
        return acquire_release(
            Session,
            lambda stack: defer(lambda _: self._start(options, stack)),
            lambda stack: stack.close(),
        )

    def _start(self, options: SpawnOptions, stack: ExitStack) -> Observable[LlmAgentEvent]:
        resumed = options.resume_session_id
        session = self._sessions.get(resumed) if resumed is not None else None
        if session is None:
            run = self._take(options)
            if run is None:
                role = _role_of(options)
                whom = (
                    f"the role {role}" if role else "an agent without a role (`SpawnOptions.role`)"
                )
                message = f"the scenario has no run {self._taken[role]} for {whom}"
                return throw(AgentFailed(message, reason="bad_request"))
            session = _Session(run)
        session_id = resumed or options.session_id or "scripted"
        self._sessions[session_id] = session
        steps, of_the_run = session.next_steps(options)
        orders: dict[str, Any] = {
            "session_id": session_id,
            "pause": self._scenario.pause,
            "cost_usd": session.run.reported_usd,
            "model": session.run.model,
            "steps": [step.orders() for step in steps],
            "mcp_servers": dict(options.mcp_servers),
        }
        first = len(session.run.steps) - len(steps)
        reader: Callable[..., ClaudeSession] = partial(ClaudeSession, drafts=options.drafts)
        if of_the_run:
            reader = partial(_Reader, session, first, drafts=options.drafts)
        env = options.environment({**os.environ, "CUGGINO_PYTHON": sys.executable})
        if options.guard is not None:
            guard = make_guard(with_variables(options.guard, env))
            orders["guard"] = guard.orders()
            reader = partial(reader, watch=GuardWatch(guard.token))
        return stream_json(
            [sys.executable, "-I", "-S", str(program("agents/scripted/process.py"))],
            program=self.name,
            cwd=options.cwd,
            env=env,
            stdin=json.dumps(orders) + "\n",
            session=reader,
            messages=options.messages,
            drafts=options.drafts,
            enclosure=enclosure_of(options.view, env=env, stack=stack, programs=[sys.executable]),
        )

    def _take(self, options: SpawnOptions) -> ScenarioRun | None:
        role = _role_of(options)
        if options.turn is not None:
            run_of_the_loop = (options.env.get("CUGGINO_SESSION_FILE", ""), role)
            seen = self._turns.get(run_of_the_loop, 0)
            self._taken[role] += max(0, options.turn - seen - 1)
            self._turns[run_of_the_loop] = max(seen, options.turn)
        self._taken[role] += 1
        runs, nth = self._scenario.runs(role), self._taken[role]
        if nth <= len(runs):
            return runs[nth - 1]
        return runs[-1] if runs and self._scenario.repeat else None


def _role_of(options: SpawnOptions) -> str:
    return options.role or options.env.get("CUGGINO_ROLE", "")
