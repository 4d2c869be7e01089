"""The real Codex CLI for tests: installed once, run with nothing of this machine's own.

It speaks to a `tests.model_responses.ResponsesServer` only: no account, no network, no model.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import pytest
from typing_extensions import override

from cuggino.agents.codex import CodexAgent
from cuggino.events import PingEvent, SystemMessage, UsageUpdate
from tests.model_responses import ResponsesServer
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
    Tool,
)
from tests.real_program import (
    CACHE,
    RealProgram,
    Server,
    in_a_project,
    install,
    required,
)

VERSION = "0.169.0"
PACKAGE = f"@openai/codex@{VERSION}"

MODEL = "gpt-5.5"
"""A model that Codex knows: for others it has no `apply_patch`."""

CODE_MODEL = "gpt-6-sol"
"""A model that writes JavaScript, from which it calls the tools."""

Turn: TypeAlias = Block | Sequence[Block] | Reply | Callable[[ModelRequest], Block]
"""What the model does in one turn, or what makes that of what it was told."""


def install_codex(cache: Path = CACHE) -> Path:
    """The path of the program (about 400 MB); see `install`."""
    return install(f"codex-{VERSION}", PACKAGE, _program, cache=cache)


def _program(place: Path) -> Path | None:
    launcher = place / "node_modules" / "@openai" / "codex" / "bin" / "codex.js"
    return launcher if launcher.exists() else None


@pytest.fixture(scope="session")
def codex_cli() -> Path:
    """See `required`."""
    return required(install_codex)


def clean_env(home: Path, base_url: str, *, retries: int = 0) -> dict[str, str]:
    """The whole environment of a run: `home` is its own, `base_url` is the only place it calls.

    The folder for temporary files is not above that of Codex, which would not sandbox then.
    """
    folders = {"HOME": home, "CODEX_HOME": home / ".codex", "TMPDIR": home / "tmp"}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    config = home / ".codex" / "config.toml"
    given = config.read_text() if config.exists() else ""
    # What a test has written stays, and counts.
    if "[model_providers.mock]" not in given:
        own = f'model_provider = "mock"\n{given}\n[model_providers.mock]\nname = "mock"\n'
        own += f'env_key = "MOCK_KEY"\nwire_api = "responses"\nbase_url = "{base_url}"\n'
        config.write_text(f"{own}request_max_retries = {retries}\nstream_max_retries = {retries}\n")
    else:
        kept = [line for line in given.splitlines() if not line.startswith("base_url")]
        at = kept.index("[model_providers.mock]") + 1
        config.write_text("\n".join([*kept[:at], f'base_url = "{base_url}"', *kept[at:]]) + "\n")
    return {
        **{name: str(folder) for name, folder in folders.items()},
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "MOCK_KEY": "dummy-not-a-key",
    }


class Codex(RealProgram):
    """See `RealProgram`."""

    usual = MappingProxyType({"model": MODEL})
    unseen = (PingEvent, UsageUpdate, SystemMessage)

    def configure(self, text: str) -> None:
        """What the user has configured, to be called before the first session."""
        config = self.home / ".codex" / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(text)

    @override
    def agent(self, base_url: str, env: Mapping[str, str] | None = None) -> CodexAgent:
        return CodexAgent(path=self.program, env={**clean_env(self.home, base_url), **(env or {})})

    @override
    def serve(self, script: Script) -> AbstractContextManager[Server]:
        return ResponsesServer(script)

    @override
    def script(self, turns: Sequence[Turn], helper: Sequence[Turn]) -> Script:
        return _turns(turns)


def _turns(turns: Sequence[Turn]) -> Script:
    def reply(request: ModelRequest) -> Reply:
        if request.turns >= len(turns):
            return Message([Text("<DONE>done</DONE>")])
        turn = turns[request.turns]
        if isinstance(turn, Message | ApiError | Drop | Hang):
            return turn
        made = turn(request) if callable(turn) else turn
        return Message(list(made) if isinstance(made, Sequence) else [made])

    return reply


def bash(command: str, **more: Any) -> Tool:
    """A call of the shell."""
    return Tool("exec_command", {"cmd": command, **more})


def patch(*lines: str) -> Tool:
    """A call that changes files."""
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
    return Tool("apply_patch", {"input": text + "\n"})


def create(path: str, *lines: str) -> Tool:
    """A call that makes a file of these lines."""
    return patch(f"*** Add File: {path}", *(f"+{line}" for line in lines))


@pytest.fixture
def codex(codex_cli: Path, tmp_path: Path) -> Iterator[Codex]:
    """The program in a project; see `in_a_project`."""
    with in_a_project(Codex, codex_cli, tmp_path) as made:
        yield made
