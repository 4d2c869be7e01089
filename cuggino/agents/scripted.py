"""The scripted agent: a real child process that plays a scenario, and needs no key."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

from reactivex import Observable, defer, throw

from cuggino._version import __version__
from cuggino.agents.protocol import InteractiveOptions, SpawnOptions
from cuggino.agents.scenario import Run, Scenario, load_scenario
from cuggino.agents.stream_json import stream_json
from cuggino.errors import AgentFailed
from cuggino.events import LlmAgentEvent

_PROGRAM = Path(__file__).with_name("scripted_process.py")


class ScriptedAgent:
    """Plays a scenario in child processes that speak stream-json and really edit files.

    Each spawned session takes the next run of its role. A resumed session plays the `reminder` of
    the run it belongs to.
    """

    can_resume = True

    def __init__(self, scenario: Scenario | str | os.PathLike[str]) -> None:
        self._scenario = (
            scenario if isinstance(scenario, Scenario) else load_scenario(Path(scenario))
        )
        self.name = "scripted"
        self._taken: Counter[str] = Counter()
        self._sessions: dict[str, Run] = {}

    def check(self) -> str:
        """The version of cuggino: the agent is a part of it."""
        return __version__

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Play the next run of the role; see `LlmAgent.spawn`.

        Fails with `AgentFailed` when the scenario has no further run for the role.
        """
        return defer(lambda _scheduler: self._start(options))

    def interactive(self, options: InteractiveOptions) -> int:
        """There is nothing to talk to."""
        raise AgentFailed("the scripted agent cannot be talked to", reason="bad_request")

    def _start(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        if options.resume_session_id is not None:
            run = self._sessions.get(options.resume_session_id, Run())
            steps = run.reminder
        else:
            taken = self._take(options.role)
            if taken is None:
                nth = self._taken[options.role or ""]
                message = f"the scenario has no run {nth} for the role {options.role}"
                return throw(AgentFailed(message, reason="bad_request"))
            run, steps = taken, taken.steps
        session_id = options.resume_session_id or options.session_id or "scripted"
        self._sessions[session_id] = run
        orders = {
            "session_id": session_id,
            "pause": self._scenario.pause,
            "cost_usd": run.cost_usd,
            "steps": [step.model_dump(exclude_none=True) for step in steps],
        }
        return stream_json(
            [sys.executable, "-I", "-S", str(_PROGRAM)],
            program=self.name,
            cwd=options.cwd,
            env={**os.environ, "CUGGINO_PYTHON": sys.executable, **options.env},
            stdin=json.dumps(orders),
        )

    def _take(self, role: str | None) -> Run | None:
        self._taken[role or ""] += 1
        runs, nth = self._scenario.runs(role), self._taken[role or ""]
        if nth <= len(runs):
            return runs[nth - 1]
        return runs[-1] if runs and self._scenario.repeat else None
