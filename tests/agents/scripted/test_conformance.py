"""The scripted agent passes the conformance suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from typing_extensions import override

from cuggino.agents.scripted import ScriptedAgent
from cuggino.agents.scripted.scenario import Failure, Scenario, ScenarioRun, Step, TokenCounts
from cuggino.events import Usage
from cuggino.testing import (
    AgentConformance,
    Call,
    CannotPlay,
    Delegate,
    Edit,
    Fail,
    FailureConformance,
    Fault,
    GuardConformance,
    Meanwhile,
    Play,
    PlayArena,
    Read,
    Run,
    Say,
    Think,
    Turn,
    Write,
    acts_of,
)
from cuggino.testing.conformance.acts import FailKind


@dataclass(frozen=True)
class ScriptedPlay:
    """A play of the scripted agent, which has no model."""

    agent: ScriptedAgent
    answers: int

    def requests(self) -> None:
        """Return None: the agent has no model."""

    def usage(self) -> Usage:
        """Return the usage in its scenario."""
        return Usage(input_tokens=1000 * self.answers, output_tokens=100 * self.answers)


class ScriptedArena(PlayArena):
    """An arena for the scripted agent."""

    options: Mapping[str, Any] = MappingProxyType({"role": "implementing"})

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._lines: list[str] = []

    @override
    @contextmanager
    def play(self, turns: Sequence[Turn], fault: Fault | None) -> Iterator[Play]:
        if fault is not None:
            raise CannotPlay("its program is Python")
        steps = [Step(raw=line) for line in self._lines]
        for turn in turns:
            steps += _steps(turn)
        run = ScenarioRun(steps=tuple(steps), cost_usd=0.01 * len(turns))
        agent = ScriptedAgent(Scenario(implementing=(run,)))
        yield ScriptedPlay(agent, len(turns))

    @override
    def inject(self, line: str) -> None:
        self._lines.append(line)


_FAILURES: Mapping[FailKind, Failure] = {
    "bad_key": Failure(status=401, error="authentication_failed", text="Invalid API key"),
    "rate_limit": Failure(status=429, error="rate_limit_error", text="Too many requests"),
    "overload": Failure(status=529, error="overloaded_error", text="Overloaded"),
    "server_error": Failure(status=500, text="Internal server error"),
    "no_connection": Failure(error="connection_failed", text="Unable to connect"),
}


def _steps(turn: Turn) -> Iterator[Step]:
    for act in acts_of(turn):
        match act:
            case Say(text):
                yield Step(say=text)
            case Think(text):
                yield Step(think=text)
            case Run(command):
                yield Step(run=command)
            case Write(path, text):
                yield Step(write=path, text=text)
            case Fail("hang"):
                yield Step(sleep=3600)
            case Fail(kind, None) if kind in _FAILURES:
                yield Step(fail=_FAILURES[kind])
                return
            case Fail() | Edit() | Read() | Call() | Delegate() | Meanwhile():
                raise CannotPlay(f"a scenario has no {act}")
    yield Step(usage=TokenCounts(input_tokens=1000, output_tokens=100))


@pytest.fixture
def arena(tmp_path: Path) -> ScriptedArena:
    """Return an arena for one rule."""
    return ScriptedArena(tmp_path)


class TestFailures(FailureConformance):
    pass


class TestGuard(GuardConformance):
    exempt = MappingProxyType({"test_startup_files": "its commands run in `sh`"})


class TestAgent(AgentConformance):
    exempt = MappingProxyType(
        {
            "test_needs_permission": "a scenario plays what is written in it",
            "test_mcp_server": "it starts those whose tools its steps use",
            "test_resume_unknown_session": "a scenario goes on with whatever is asked for",
        }
    )
