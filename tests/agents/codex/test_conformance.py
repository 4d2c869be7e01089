"""The real Codex CLI keeps the rules of all agents."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest
from typing_extensions import override

from cuggino.agents import LlmAgent
from cuggino.agents.codex import CodexAgent
from cuggino.testing import AgentConformance, Run, Write
from tests.agents.arenas import ModelArena
from tests.model_responses import ResponsesServer
from tests.model_script import Tool
from tests.real_codex import MODEL, bash, clean_env, codex_cli, create

__all__ = ["codex_cli"]

pytestmark = pytest.mark.real_agent


class CodexArena(ModelArena):
    """The real Codex CLI."""

    server = ResponsesServer
    other_model = "other-model"
    harmless_tools = frozenset({"request_user_input"})  # it answers that it is unavailable
    options = MappingProxyType({"model": MODEL})

    @override
    def make(self, path: Path, base_url: str) -> LlmAgent:
        return CodexAgent(path=path, env=clean_env(self.home, base_url))

    @override
    def tool(self, act: Run | Write) -> Tool:
        match act:
            case Run(command):
                return bash(command)
            case Write(path, text):
                return create(path, *text.splitlines())


class TestCodex(AgentConformance):
    """Codex."""

    @pytest.fixture
    def arena(self, codex_cli: Path, tmp_path: Path) -> CodexArena:
        """An arena for one rule."""
        return CodexArena(tmp_path, codex_cli)
