"""Arenas for `AgentConformance`: real CLIs on a scripted model server.

A further CLI needs a `ModelArena`: how its agent is made, and how its model uses its tools.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from cuggino.agents import LlmAgent
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.copilot import CopilotAgent
from cuggino.events import Usage
from cuggino.testing import (
    CannotPlay,
    Fail,
    Fault,
    Play,
    PlayArena,
    Run,
    Say,
    Think,
    Told,
    Turn,
    Write,
    acts_of,
)
from cuggino.testing.conformance_acts import FailKind
from tests import real_claude, real_copilot
from tests.model_openai import OpenAiServer
from tests.model_script import (
    ApiError,
    Block,
    Drop,
    Hang,
    Message,
    ModelRequest,
    Reply,
    Script,
    Text,
    Thought,
    Tool,
    overloaded,
    rate_limited,
    server_error,
)
from tests.model_server import ModelServer

NOBODY = "http://127.0.0.1:9"
"""Where nobody listens."""

LATER = 3600.0
"""Seconds until a service that is busy wants to be asked again: too long to wait."""
_LATER = {"retry-after": f"{LATER:g}"}


@dataclass(frozen=True)
class ModelPlay:
    """An agent, and the server that it asks."""

    agent: LlmAgent
    server: ModelServer

    def told(self) -> Sequence[Told]:
        """What the server was asked."""
        return [
            Told(
                system=request.system_text,
                text=request.messages_text,
                tools=tuple(request.tool_names),
                model=request.model,
            )
            for request in self.server.requests
        ]

    def taken(self) -> Usage:
        """What the messages took that a server of this kind counts, one for each request."""
        count = len(self.server.requests)
        return Usage(input_tokens=1000 * count, output_tokens=100 * count)


class ModelArena(PlayArena):
    """A real CLI, its model a script on loopback."""

    server: ClassVar[type[ModelServer]] = ModelServer
    cut_after: ClassVar[int] = 6
    """Events of a message that have been sent when it is cut."""

    def __init__(self, folder: Path, program: Path) -> None:
        super().__init__(folder / "project")
        self.folder.mkdir()
        self.home = folder / "home"
        self.path = program
        self._lines: list[str] = []

    @abstractmethod
    def make(self, path: Path, base_url: str) -> LlmAgent:
        """The agent with this program, whose model is there."""

    @abstractmethod
    def tool(self, act: Run | Write) -> Tool:
        """How the model does this."""

    @override
    @contextmanager
    def play(self, turns: Sequence[Turn], fault: Fault | None) -> Iterator[Play]:
        path = self.folder / "nothing" if fault == "missing_program" else self._wrapped()
        acts = [acts_of(turn) for turn in turns]
        with self.server(script_of(turns, self.tool, cut_after=self.cut_after)) as server:
            nobody = bool(acts) and acts[0] == (Fail("no_connection"),)
            yield ModelPlay(self.make(path, NOBODY if nobody else server.url), server)

    @override
    def inject(self, line: str) -> None:
        self._lines.append(line)

    def _wrapped(self) -> Path:
        """The program, or a shell script that prints the lines and becomes it."""
        if not self._lines:
            return self.path
        said = self.home.parent / "said.jsonl"
        said.write_text("".join(f"{line}\n" for line in self._lines), encoding="utf-8")
        wrapper = self.home.parent / self.path.name
        wrapper.write_text(
            f'#!/bin/sh\n[ "$1" = --version ] || cat "{said}"\nexec "{self.path}" "$@"\n',
            encoding="utf-8",
        )
        wrapper.chmod(0o755)
        return wrapper


def script_of(
    turns: Sequence[Turn], tool: Callable[[Run | Write], Tool], *, cut_after: int
) -> Script:
    """What a model does that plays the turns, whatever was said in the conversation before."""
    before: list[int] = []

    def reply(request: ModelRequest) -> Reply:
        if not before:
            before.append(request.turns)
        at = request.turns - before[0]
        assert at < len(turns), f"the agent asks for turn {at + 1} of {len(turns)}"
        blocks: list[Block] = []
        for act in acts_of(turns[at]):
            match act:
                case Say(text):
                    blocks.append(Text(text))
                case Think(text):
                    blocks.append(Thought(text))
                case Run() | Write():
                    blocks.append(tool(act))
                case Fail(kind):
                    return _failing(kind, blocks, cut_after)
        return Message(blocks)

    return reply


def _failing(kind: FailKind, blocks: Sequence[Block], after: int) -> Reply:
    begun = Message(blocks) if blocks else None
    match kind:
        case "bad_key":
            return ApiError(401, "authentication_error", "The key is not valid.")
        case "rate_limit":
            return rate_limited(LATER)
        case "overload":
            return replace(overloaded(), headers=_LATER)
        case "server_error":
            return replace(server_error(), headers=_LATER)
        case "cut":
            return Drop(begun, after_events=after)
        case "hang":
            return Hang(message=begun, after_events=after if begun else 0)
        case "no_connection":
            raise CannotPlay("a service cannot vanish in the midst of a session")


class ClaudeArena(ModelArena):
    """The real Claude Code CLI."""

    other_model = "claude-haiku-4-5"

    @override
    def make(self, path: Path, base_url: str) -> LlmAgent:
        env = real_claude.clean_env(self.home, base_url)
        return ClaudeAgent(path=path, env={**env, "CLAUDE_CODE_MAX_RETRIES": "0"})

    @override
    def tool(self, act: Run | Write) -> Tool:
        match act:
            case Run(command):
                return Tool("Bash", {"command": command, "description": "a command"})
            case Write(path, text):
                return Tool("Write", {"file_path": path, "content": text})


class CopilotArena(ModelArena):
    """The real GitHub Copilot CLI."""

    server = OpenAiServer
    other_model = "other-model"
    cut_after = 3

    @override
    def make(self, path: Path, base_url: str) -> LlmAgent:
        env = real_copilot.clean_env(self.home, base_url)
        # The long prompts of the rules are more than it believes that an unknown model can read.
        return CopilotAgent(path=path, env={**env, "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "500000"})

    @override
    def tool(self, act: Run | Write) -> Tool:
        match act:
            case Run(command):
                return real_copilot.bash(command)
            case Write(path, text):
                return real_copilot.create(path, text)

    @override
    def inject(self, line: str) -> None:
        raise CannotPlay("the program is a server: what it prints is not read as events")
