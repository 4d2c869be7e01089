"""The real OpenCode CLI for tests: installed once, run with nothing of this machine's own.

It speaks to a `tests.model_openai.OpenAiServer` only: no account, no network, no model.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pytest
from filelock import FileLock

import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.opencode import OpenCodeAgent
from cuggino.errors import CugginoError
from cuggino.events import (
    Event,
    LlmAgentEvent,
    MessageDelta,
    PingEvent,
    SessionEnded,
    SystemMessage,
    UsageUpdate,
)
from cuggino.security.policy import Policy
from cuggino.security.roles import role_policy
from cuggino.sources import process_lines
from cuggino.testing import no_leaks
from tests.model_openai import OpenAiServer
from tests.model_script import Block, Message, ModelRequest, Reply, Script, Text, Tool

VERSION = "1.18.33"
PACKAGE = f"opencode-ai@{VERSION}"
CACHE = Path(__file__).resolve().parent.parent / ".cache" / "agents"
_INSTALL_TIMEOUT = 600

E = TypeVar("E", bound=LlmAgentEvent)
Turn: TypeAlias = Block | Sequence[Block] | Callable[[], Block | Sequence[Block]]
"""What the model says in one message, or what makes it when it is asked for."""

SPEC = "There is a file.\n"
"""The specification of the project."""

HELPER = "You are the helper of the test."
"""A prompt with these words is that of a sub-agent."""

COST = 1000 * 1e-6 + 100 * 10e-6
"""US dollars of one answer of the model."""


def install_opencode(cache: Path = CACHE) -> Path:
    """The path of the `opencode` program; installs it on the first call (about 350 MB).

    Safe to call from several processes at once: one installs, into a folder that is moved to its
    place when it is complete.

    Raises:
        FileNotFoundError: npm is not there.
        RuntimeError: the installation failed; the message ends with what npm said.
    """
    place = cache / f"opencode-{VERSION}"
    if found := _program(place):
        return found
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError("npm is needed to install OpenCode")
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / f"opencode-{VERSION}.lock", timeout=_INSTALL_TIMEOUT):
        if found := _program(place):
            return found
        with tempfile.TemporaryDirectory(dir=cache, prefix=".installing-") as folder:
            prefix = Path(folder) / "package"
            _npm_install(npm, prefix)
            shutil.rmtree(place, ignore_errors=True)
            prefix.rename(place)
        program = _program(place)
        assert program is not None
    return program


def _program(place: Path) -> Path | None:
    """The native program, of the kind that runs on more machines last."""
    found = sorted((place / "node_modules").glob("opencode-*/bin/opencode"))
    return found[0] if found else None


def _npm_install(npm: str, prefix: Path) -> None:
    prefix.mkdir()
    done = subprocess.run(
        [npm, "install", "--no-fund", "--no-audit", "--prefix", str(prefix), PACKAGE],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=_INSTALL_TIMEOUT,
        check=False,
    )
    if done.returncode != 0 or _program(prefix) is None:
        raise RuntimeError(f"npm could not install {PACKAGE}: {done.stderr.strip()[-2000:]}")


@pytest.fixture(scope="session")
def opencode_cli() -> Path:
    """The program; skips where it cannot be installed, but fails on CI, where it must be there."""
    try:
        return install_opencode()
    except (FileNotFoundError, RuntimeError, subprocess.SubprocessError) as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"the real agent must be tested on CI: {error}")
        pytest.skip(str(error))


def clean_env(home: Path, base_url: str, *, priced: bool = True) -> dict[str, str]:
    """The whole environment of a run: `home` is its own, `base_url` is the only place it calls."""
    folders = {"HOME": home, "TMPDIR": home / "tmp"}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    model: dict[str, Any] = {"name": "Mock", "limit": {"context": 1_000_000, "output": 8192}}
    if priced:
        model["cost"] = {"input": 1, "output": 10, "cache_read": 0.1}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Mock",
        "options": {"baseURL": base_url, "apiKey": "dummy-not-a-key"},
        "models": {"mock-model": model, "other-model": model},
    }
    config = {
        "provider": {"mock": provider},
        "model": "mock/mock-model",
        "small_model": "mock/mock-model",
    }
    return {
        **{name: str(folder) for name, folder in folders.items()},
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "OPENCODE_CONFIG_CONTENT": json.dumps(config),
    }


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
        """Without signs of life, counts of tokens, and what the program says of itself."""
        unseen = PingEvent | UsageUpdate | SystemMessage | MessageDelta
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
class OpenCode:
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

    def agent(self, base_url: str, env: Mapping[str, str] | None = None) -> OpenCodeAgent:
        return OpenCodeAgent(
            path=self.program, env={**clean_env(self.home, base_url), **(env or {})}
        )

    def options(self, **options: Any) -> SpawnOptions:
        given = {"prompt": "Go.", "cwd": self.project, "dangerously_skip_permissions": True}
        return SpawnOptions(**{**given, **options})

    def run(
        self,
        *turns: Turn,
        helper: Sequence[Turn] = (),
        env: Mapping[str, str] | None = None,
        script: Script | None = None,
        **options: Any,
    ) -> Outcome:
        """A session in which the model says these things, and then ends; its sub-agent `helper`."""
        events: list[LlmAgentEvent] = []
        error: CugginoError | None = None
        with OpenAiServer(script or _turns(turns, helper)) as server:
            agent = self.agent(server.url, env)

            def keep(event: Event) -> None:
                assert isinstance(event, LlmAgentEvent)
                events.append(event)

            try:
                cuggino.run(agent.spawn(self.options(**options)), keep)
            except CugginoError as failure:
                error = failure
            return Outcome(events, error, server.requests)


def _turns(main: Sequence[Turn], helper: Sequence[Turn]) -> Script:
    def reply(request: ModelRequest) -> Reply:
        is_helper = HELPER in str(request.body["messages"][0]["content"])
        turns = helper if is_helper else main
        if request.turns >= len(turns):
            return Message([Text("helped" if is_helper else "<DONE>done</DONE>")])
        turn = turns[request.turns]
        made = turn() if callable(turn) else turn
        return Message(list(made) if isinstance(made, Sequence) else [made])

    return reply


def bash(command: str, **more: Any) -> Tool:
    """A call of the shell."""
    return Tool("bash", {"command": command, "description": "a command", **more})


def write(path: str, text: str) -> Tool:
    """A call that makes a file."""
    return Tool("write", {"filePath": path, "content": text})


@pytest.fixture
def opencode(opencode_cli: Path, tmp_path: Path) -> Iterator[OpenCode]:
    """The program, which leaves no process, thread or open file behind."""
    project = tmp_path / "project"
    (project / ".specs").mkdir(parents=True)
    (project / ".specs" / "task.md").write_text(SPEC)
    (project / "app.py").write_text("old = 1\n")
    cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
    with no_leaks():
        yield OpenCode(opencode_cli, project, tmp_path / "home")
