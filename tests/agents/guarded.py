"""A guarded session of the real Claude Code CLI: what it did, what it was told, what was said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.claude import ClaudeAgent
from cuggino.errors import CugginoError
from cuggino.events import Event, GuardDenied, LlmAgentEvent, SessionEnded, ToolResult
from cuggino.security.policy import Policy
from cuggino.security.roles import role_policy
from cuggino.sources import process_lines
from cuggino.testing import no_leaks
from tests.model_server import Message, ModelRequest, ModelServer, Reply, Text, Tool
from tests.real_claude import clean_env

Turn: TypeAlias = Tool | Sequence[Tool] | Callable[[], Tool | Sequence[Tool]]
"""Calls of tools in one message, or what makes them when it is asked for."""

SPEC = "There is a file.\n"
"""The specification of the project."""

SUBAGENT = "You are the helper of the test."
"""A prompt with these words is that of a sub-agent."""


@dataclass
class Outcome:
    """One session."""

    events: list[LlmAgentEvent]
    error: CugginoError | None
    requests: list[ModelRequest]

    @property
    def denied(self) -> list[GuardDenied]:
        return [event for event in self.events if isinstance(event, GuardDenied)]

    @property
    def results(self) -> list[ToolResult]:
        return [event for event in self.events if isinstance(event, ToolResult)]

    @property
    def ended(self) -> SessionEnded:
        assert isinstance(self.events[-1], SessionEnded)
        return self.events[-1]

    @property
    def told(self) -> str:
        """All that the model was told until its last message."""
        return self.requests[-1].messages_text


@dataclass
class Guarded:
    """The program in a project and a home of its own, held to the permissions of a role."""

    program: Path
    project: Path
    home: Path

    def policy(self, role: Any = "implementing", **options: Any) -> Policy:
        return role_policy(role, project=self.project, level="roles", **options)

    def path(self, name: str) -> str:
        return str(self.project / name)

    def read(self, name: str) -> str | None:
        """What is in the file, None when it is not there."""
        file = self.project / name
        return file.read_text() if file.exists() else None

    def run(
        self,
        *turns: Turn,
        policy: Policy | None = None,
        helper: Sequence[Turn] = (),
        **options: Any,
    ) -> Outcome:
        """A session in which the model calls these tools, and then ends.

        `helper` is what its sub-agent does.
        """
        script = _Turns(turns, helper)
        events: list[LlmAgentEvent] = []
        error: CugginoError | None = None
        with ModelServer(script) as server:
            agent = ClaudeAgent(path=self.program, env=clean_env(self.home, server.url))
            given = {
                "prompt": "Go.",
                "cwd": self.project,
                "dangerously_skip_permissions": True,
                "guard": policy or self.policy(),
                **options,
            }
            try:
                cuggino.run(agent.spawn(SpawnOptions(**given)), _kept(events))
            except CugginoError as failure:
                error = failure
            return Outcome(events, error, server.requests)


def _kept(events: list[LlmAgentEvent]) -> Callable[[Event], None]:
    def keep(event: Event) -> None:
        assert isinstance(event, LlmAgentEvent)
        events.append(event)

    return keep


class _Turns:
    """The replies of the model and of its sub-agent."""

    def __init__(self, main: Sequence[Turn], helper: Sequence[Turn]) -> None:
        self._main = main
        self._helper = helper

    def __call__(self, request: ModelRequest) -> Reply:
        is_helper = SUBAGENT in str(request.body["messages"][0]["content"])
        turns = self._helper if is_helper else self._main
        if request.turns >= len(turns):
            return Message([Text("<DONE>done</DONE>")])
        turn = turns[request.turns]
        made = turn() if callable(turn) else turn
        return Message([made] if isinstance(made, Tool) else list(made))


def bash(command: str) -> Tool:
    """A call of the shell."""
    return Tool("Bash", {"command": command})


@pytest.fixture
def claude(claude_cli: Path, tmp_path: Path) -> Iterator[Guarded]:
    project = tmp_path / "project"
    (project / ".specs").mkdir(parents=True)
    (project / ".specs" / "task.md").write_text(SPEC)
    (project / "app.py").write_text("old = 1\n")
    cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
    with no_leaks():
        yield Guarded(claude_cli, project, tmp_path / "home")
