"""The Claude Agent SDK with the real Claude Code CLI for tests, which speaks to a scripted model.

The program is that of `tests.real_claude`: no key, no network, no model.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.claude_sdk import ClaudeSdkAgent
from cuggino.errors import CugginoError
from cuggino.events import (
    Event,
    LlmAgentEvent,
    MessageDelta,
    PingEvent,
    SessionEnded,
    UsageUpdate,
)
from cuggino.security.policy import Policy
from cuggino.security.roles import role_policy
from cuggino.sources import process_lines
from cuggino.testing import no_leaks
from tests.model_script import ModelRequest, Script, Tool, Turn, spoken
from tests.model_server import ModelServer
from tests.real_claude import clean_env

E = TypeVar("E", bound=LlmAgentEvent)

SPEC = "There is a file.\n"
"""The specification of the project."""


def needs_sdk() -> None:
    """Skip where the SDK is not installed, but fail on CI, where it must be."""
    if importlib.util.find_spec("claude_agent_sdk") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("the Claude Agent SDK must be tested on CI")
        pytest.skip("the Claude Agent SDK is not installed")


@dataclass
class Outcome:
    """One session."""

    events: list[LlmAgentEvent]
    error: CugginoError | None
    requests: list[ModelRequest]

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def tags(self) -> list[str]:
        """Without signs of life, text on its way, and counts of tokens."""
        unseen = PingEvent | MessageDelta | UsageUpdate
        return [event.tag for event in self.events if not isinstance(event, unseen)]

    @property
    def ended(self) -> SessionEnded:
        assert isinstance(self.events[-1], SessionEnded)
        return self.events[-1]

    @property
    def told(self) -> str:
        """All that the model was told until its last message."""
        return self.requests[-1].messages_text


@dataclass
class ClaudeSdk:
    """The program in a project and a home of its own."""

    program: Path
    project: Path
    home: Path

    def policy(self, role: Any = "implementing", level: Any = "roles") -> Policy:
        return role_policy(role, project=self.project, level=level)

    def path(self, name: str) -> str:
        return str(self.project / name)

    def read(self, name: str) -> str | None:
        """What is in the file, None when it is not there."""
        file = self.project / name
        return file.read_text() if file.exists() else None

    def agent(
        self, base_url: str, env: Mapping[str, str] | None = None, tools: Sequence[Any] = ()
    ) -> ClaudeSdkAgent:
        clean = clean_env(self.home, base_url)
        return ClaudeSdkAgent(path=self.program, env={**clean, **(env or {})}, tools=tools)

    def options(self, **options: Any) -> SpawnOptions:
        given = {"prompt": "Go.", "cwd": self.project, "dangerously_skip_permissions": True}
        return SpawnOptions(**{**given, **options})

    def run(
        self,
        *turns: Turn,
        helper: Sequence[Turn] = (),
        env: Mapping[str, str] | None = None,
        tools: Sequence[Any] = (),
        script: Script | None = None,
        **options: Any,
    ) -> Outcome:
        """A session in which the model says these things, and then ends; its sub-agent `helper`."""
        events: list[LlmAgentEvent] = []
        error: CugginoError | None = None
        with ModelServer(script or spoken(turns, helper)) as server:
            agent = self.agent(server.url, env, tools)

            def keep(event: Event) -> None:
                assert isinstance(event, LlmAgentEvent)
                events.append(event)

            try:
                cuggino.run(agent.spawn(self.options(**options)), keep)
            except CugginoError as failure:
                error = failure
            return Outcome(events, error, server.requests)


def bash(command: str) -> Tool:
    """A call of the shell."""
    return Tool("Bash", {"command": command})


@pytest.fixture
def claude_sdk(claude_cli: Path, tmp_path: Path) -> Iterator[ClaudeSdk]:
    """The program, which leaves no process, thread or open file behind."""
    needs_sdk()
    project = tmp_path / "project"
    (project / ".specs").mkdir(parents=True)
    (project / ".specs" / "task.md").write_text(SPEC)
    (project / "app.py").write_text("old = 1\n")
    cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
    with no_leaks():
        yield ClaudeSdk(claude_cli, project, tmp_path / "home")
