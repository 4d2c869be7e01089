"""The real GitHub Copilot CLI for tests: installed once, run with nothing of this machine's own.

It speaks to a `tests.model_openai.OpenAiServer` only: no account, no network, no model.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from typing_extensions import override

from cuggino.agents.copilot import CopilotAgent
from tests.model_openai import OpenAiServer
from tests.model_script import Script, Tool
from tests.real_program import (
    CACHE,
    RealProgram,
    Server,
    in_a_project,
    install,
    required,
)

VERSION = "1.0.102"
PACKAGE = f"@github/copilot@{VERSION}"


def install_copilot(cache: Path = CACHE) -> Path:
    """The path of the program (about 430 MB); see `install`."""
    return install(f"copilot-{VERSION}", PACKAGE, _program, cache=cache, unpack=_unpack)


def _program(place: Path) -> Path | None:
    """The native program: the one for node beside it hides the signals that it is sent."""
    found = sorted((place / "node_modules" / "@github").glob("copilot-*/copilot"))
    return found[0] if found else None


def _unpack(program: Path) -> None:
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": home, **_shared()}
        subprocess.run([program, "--version"], env=env, capture_output=True, check=True)


def _shared() -> dict[str, str]:
    return {"COPILOT_PKG_CACHE_HOME": str(CACHE / f"copilot-{VERSION}" / "unpacked")}


@pytest.fixture(scope="session")
def copilot_cli() -> Path:
    """See `required`; the SDK, which is an extra, is needed too."""

    def installed() -> Path:
        import copilot  # noqa: F401

        return install_copilot()

    return required(installed)


def clean_env(home: Path, base_url: str) -> dict[str, str]:
    """The whole environment of a run: `home` is its own, `base_url` is the only place it calls."""
    folders = {"HOME": home, "COPILOT_HOME": home / ".copilot", "TMPDIR": home / "tmp"}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    return {
        **{name: str(folder) for name, folder in folders.items()},
        **_shared(),
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_MODEL": "mock-model",
        "COPILOT_PROVIDER_BASE_URL": base_url,
        "COPILOT_PROVIDER_API_KEY": "dummy-not-a-key",
    }


class Copilot(RealProgram):
    """See `RealProgram`."""

    @override
    def agent(self, base_url: str, env: Mapping[str, str] | None = None) -> CopilotAgent:
        return CopilotAgent(
            path=self.program, env={**clean_env(self.home, base_url), **(env or {})}
        )

    @override
    def serve(self, script: Script) -> AbstractContextManager[Server]:
        return OpenAiServer(script)


def bash(command: str) -> Tool:
    """A call of the shell."""
    return Tool("bash", {"command": command, "description": "a command"})


def create(path: str, text: str) -> Tool:
    """A call that makes a file."""
    return Tool("create", {"path": path, "file_text": text})


@pytest.fixture
def copilot(copilot_cli: Path, tmp_path: Path) -> Iterator[Copilot]:
    """The program in a project; see `in_a_project`."""
    with in_a_project(Copilot, copilot_cli, tmp_path) as made:
        yield made
