"""The real OpenCode CLI for tests: installed once, run with nothing of this machine's own.

It speaks to a `tests.model_openai.OpenAiServer` only: no account, no network, no model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from cuggino.agents.opencode import OpenCodeAgent
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

VERSION = "1.18.33"
PACKAGE = f"opencode-ai@{VERSION}"

COST = 1000 * 1e-6 + 100 * 10e-6
"""US dollars of one answer of the model."""


def install_opencode(cache: Path = CACHE) -> Path:
    """The path of the program (about 350 MB); see `install`."""
    return install(f"opencode-{VERSION}", PACKAGE, _program, cache=cache)


def _program(place: Path) -> Path | None:
    """The native program, of the kind that runs on more machines last."""
    found = sorted((place / "node_modules").glob("opencode-*/bin/opencode"))
    return found[0] if found else None


@pytest.fixture(scope="session")
def opencode_cli() -> Path:
    """See `required`."""
    return required(install_opencode)


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


class OpenCode(RealProgram):
    """See `RealProgram`."""

    @override
    def agent(self, base_url: str, env: Mapping[str, str] | None = None) -> OpenCodeAgent:
        return OpenCodeAgent(
            path=self.program, env={**clean_env(self.home, base_url), **(env or {})}
        )

    @override
    def serve(self, script: Script) -> AbstractContextManager[Server]:
        return OpenAiServer(script)


def bash(command: str, **more: Any) -> Tool:
    """A call of the shell."""
    return Tool("bash", {"command": command, "description": "a command", **more})


def write(path: str, text: str) -> Tool:
    """A call that makes a file."""
    return Tool("write", {"filePath": path, "content": text})


@pytest.fixture
def opencode(opencode_cli: Path, tmp_path: Path) -> Iterator[OpenCode]:
    """The program in a project; see `in_a_project`."""
    with in_a_project(OpenCode, opencode_cli, tmp_path) as made:
        yield made
