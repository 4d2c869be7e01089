"""The scripted agent keeps the rules of all agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import pytest
from typing_extensions import override

from cuggino.agents.scripted import ScriptedAgent
from cuggino.agents.scripted.scenario import (
    Failure,
    Run as ScriptedRun,
    Scenario,
    Step,
    TokenCounts,
)
from cuggino.events import Usage
from cuggino.testing import (
    AgentConformance,
    CannotPlay,
    Fail,
    Fault,
    Play,
    PlayArena,
    Run,
    Say,
    Think,
    Turn,
    Write,
    acts_of,
)
from cuggino.testing.conformance_acts import FailKind


@dataclass(frozen=True)
class ScriptedPlay:
    """The scripted agent, which has no model."""

    agent: ScriptedAgent
    answers: int

    def told(self) -> None:
        """There is no model."""

    def taken(self) -> Usage:
        """What its scenario says."""
        return Usage(input_tokens=1000 * self.answers, output_tokens=100 * self.answers)


class ScriptedArena(PlayArena):
    """The scripted agent."""

    options: ClassVar[Mapping[str, Any]] = {"role": "implementing"}

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
        run = ScriptedRun(steps=tuple(steps), cost_usd=0.01 * len(turns))
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
            case Fail("cut"):
                raise CannotPlay("it says whole messages")
            case Fail(kind):
                yield Step(fail=_FAILURES[kind])
                return
    yield Step(usage=TokenCounts(input_tokens=1000, output_tokens=100))


class TestScripted(AgentConformance):
    """The scripted agent."""

    exempt = MappingProxyType(
        {
            "test_nothing_is_written_without_leave": "a scenario plays what is written in it",
            "test_servers_of_tools_are_started": "it starts those whose tools its steps use",
            "test_a_session_that_is_not_there": "a scenario goes on with whatever is asked for",
        }
    )

    @pytest.fixture
    def arena(self, tmp_path: Path) -> ScriptedArena:
        """An arena for one rule."""
        return ScriptedArena(tmp_path)
