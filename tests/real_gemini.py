"""The real Gemini CLI for tests: installed once, run with nothing of this machine's own.

It speaks to a `tests.model_gemini.GeminiServer` only: no account, no network, no model.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType

import pytest
from typing_extensions import override

from cuggino.agents.gemini import GeminiAgent
from cuggino.events import MessageDelta, SystemMessage, UsageUpdate
from tests.model_gemini import GeminiServer
from tests.model_script import HELPER, Script, Tool, Turn, spoken
from tests.real_program import (
    CACHE,
    RealProgram,
    Server,
    in_a_project,
    install,
    required,
)

VERSION = "0.61.0"
PACKAGE = f"@google/gemini-cli@{VERSION}"
MODEL = "gemini-2.5-flash"


def install_gemini(cache: Path = CACHE) -> Path:
    """The path of the program (about 100 MB); see `install`."""
    return install(f"gemini-{VERSION}", PACKAGE, _program, cache=cache)


def _program(place: Path) -> Path | None:
    program = place / "node_modules" / ".bin" / "gemini"
    return program if program.exists() else None


@pytest.fixture(scope="session")
def gemini_cli() -> Path:
    """See `required`."""
    return required(install_gemini)


def clean_env(home: Path, base_url: str) -> dict[str, str]:
    """The whole environment of a run: `home` is its own, `base_url` is the only place it calls."""
    home.mkdir(parents=True, exist_ok=True)
    return {
        "HOME": str(home),
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "GEMINI_API_KEY": "dummy-not-a-key",
        "GOOGLE_GEMINI_BASE_URL": base_url,
    }


class Gemini(RealProgram):
    """See `RealProgram`."""

    usual = MappingProxyType({"model": MODEL})
    unseen = (MessageDelta, UsageUpdate, SystemMessage)

    def write(self, name: str, text: str) -> None:
        """Put the text into a file of the project."""
        file = self.project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    @override
    def agent(self, base_url: str, env: Mapping[str, str] | None = None) -> GeminiAgent:
        return GeminiAgent(path=self.program, env={**clean_env(self.home, base_url), **(env or {})})

    @override
    def serve(self, script: Script) -> AbstractContextManager[Server]:
        return GeminiServer(script)

    @override
    def script(self, turns: Sequence[Turn], helper: Sequence[Turn]) -> Script:
        return spoken(
            turns,
            helper,
            is_helper=lambda request: (
                HELPER in request.messages_text and "complete_task" in request.tool_names
            ),
            helped=Tool("complete_task", {"result": {"response": "helped"}}),
        )


def bash(command: str) -> Tool:
    """A call of the shell."""
    return Tool("run_shell_command", {"command": command, "description": "a command"})


def create(path: str, text: str) -> Tool:
    """A call that makes a file."""
    return Tool("write_file", {"file_path": path, "content": text})


@pytest.fixture
def gemini(gemini_cli: Path, tmp_path: Path) -> Iterator[Gemini]:
    """The program in a project; see `in_a_project`."""
    with in_a_project(Gemini, gemini_cli, tmp_path) as made:
        yield made
