"""The scripted agent: a real child process that plays a scenario, and needs no key."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from reactivex import Observable, defer, throw

from cuggino._version import __version__
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.agents.guard import make_guard, with_variables
from cuggino.agents.guard_watch import GuardWatch
from cuggino.agents.json_values import parse_json_line
from cuggino.agents.protocol import Capabilities, InteractiveOptions, SpawnOptions
from cuggino.agents.scripted.scenario import Run, Scenario, Step, load_scenario
from cuggino.agents.stream_json import stream_json
from cuggino.errors import AgentFailed
from cuggino.events import LlmAgentEvent
from cuggino.security.policy import Policy

_STEP = b'{"type": "system", "subtype": "step",'
_PROGRAM = Path(__file__).with_name("process.py")


REMINDER = "You ended without one of the markers of your role"
"""How the prompt begins by which a session is asked for its missing marker."""


@dataclass
class _Session:
    """A session as far as this process has played it."""

    run: Run
    begun: int = 0
    """How many steps of the run have begun."""

    def next_steps(self, options: SpawnOptions) -> tuple[tuple[Step, ...], bool]:
        """What to play now, and whether these are steps of the run itself."""
        if options.resume_session_id is not None:
            if options.prompt.startswith(REMINDER):
                return self.run.reminder, False
            if self.run.resumed:
                return self.run.resumed, False
        return self.run.steps[self.begun :] or self.run.steps, True


class _Reader(ClaudeSession):
    """Reads the process, and notes in its session which step of the run has begun."""

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


class ScriptedAgent:
    """Plays a scenario in child processes that speak stream-json and really edit files.

    Each new session takes the next run of its role. When `SpawnOptions.turn` tells that an earlier
    process has done sessions of this role in this run of the loop (told apart by the session file,
    `CUGGINO_SESSION_FILE`), as many runs are skipped first; a session that is tried anew, with the
    turn it had, takes the next one. What a resumed session plays is told in `scenario`; one that
    this process does not know takes the run of its turn.
    """

    can_resume = True

    def __init__(self, scenario: Scenario | str | os.PathLike[str]) -> None:
        self._scenario = (
            scenario if isinstance(scenario, Scenario) else load_scenario(Path(scenario))
        )
        self.name = "scripted"
        self._taken: Counter[str] = Counter()
        self._turns: dict[tuple[str, str], int] = {}
        self._sessions: dict[str, _Session] = {}

    @property
    def capabilities(self) -> Capabilities:
        """See `DescribedAgent.capabilities`."""
        return Capabilities(guard="calls", mcp=True, resume=True, cost="dollars")

    def check(self) -> str:
        """The version of cuggino: the agent is a part of it."""
        return __version__

    def check_guard(self, policy: Policy) -> None:
        """See `GuardedAgent.check_guard`."""
        make_guard(policy).try_out()

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Play the next run of the role; see `LlmAgent.spawn`.

        A step whose tool the guard denies is not run: its result is the reason, and an error. Those
        of `mcp_servers` that the steps need are started for real, and end with the session.

        Fails with `AgentFailed` when the scenario has no further run for the role.
        """
        return defer(lambda _scheduler: self._start(options))

    def interactive(self, options: InteractiveOptions) -> int:
        """There is nothing to talk to."""
        raise AgentFailed("the scripted agent cannot be talked to", reason="bad_request")

    def _start(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        resumed = options.resume_session_id
        session = self._sessions.get(resumed) if resumed is not None else None
        if session is None:
            run = self._take(options)
            if run is None:
                nth = self._taken[options.role or ""]
                message = f"the scenario has no run {nth} for the role {options.role}"
                return throw(AgentFailed(message, reason="bad_request"))
            session = _Session(run)
        session_id = resumed or options.session_id or "scripted"
        self._sessions[session_id] = session
        steps, of_the_run = session.next_steps(options)
        orders: dict[str, Any] = {
            "session_id": session_id,
            "pause": self._scenario.pause,
            "cost_usd": session.run.cost_usd,
            "steps": [step.orders() for step in steps],
            "mcp_servers": dict(options.mcp_servers),
        }
        first = len(session.run.steps) - len(steps)
        reader: Callable[..., ClaudeSession] = ClaudeSession
        if of_the_run:
            reader = partial(_Reader, session, first)
        env = {**os.environ, "CUGGINO_PYTHON": sys.executable, **options.env}
        if options.guard is not None:
            guard = make_guard(with_variables(options.guard, env))
            orders["guard"] = guard.orders()
            reader = partial(reader, guard=GuardWatch(guard.token))
        return stream_json(
            [sys.executable, "-I", "-S", str(_PROGRAM)],
            program=self.name,
            cwd=options.cwd,
            env=env,
            stdin=json.dumps(orders),
            session=reader,
        )

    def _take(self, options: SpawnOptions) -> Run | None:
        role = options.role or ""
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
