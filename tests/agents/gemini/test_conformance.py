"""The real Gemini CLI keeps the rules of all agents."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest
from typing_extensions import override

from cuggino.agents import LlmAgent
from cuggino.agents.gemini import GeminiAgent
from cuggino.testing import AgentConformance, Run, Write
from tests.agents.arenas import ModelArena
from tests.model_gemini import GeminiServer
from tests.model_script import Tool
from tests.real_gemini import MODEL, bash, clean_env, create, gemini_cli

__all__ = ["gemini_cli"]

pytestmark = pytest.mark.real_agent


class GeminiArena(ModelArena):
    """The real Gemini CLI."""

    server = GeminiServer
    other_model = "gemini-2.5-pro"
    options = MappingProxyType({"model": MODEL})

    @override
    def make(self, path: Path, base_url: str) -> LlmAgent:
        return GeminiAgent(path=path, env=clean_env(self.home, base_url))

    @override
    def tool(self, act: Run | Write) -> Tool:
        match act:
            case Run(command):
                return bash(command)
            case Write(path, text):
                return create(path, text)


class TestGemini(AgentConformance):
    """Gemini CLI."""

    @pytest.fixture
    def arena(self, gemini_cli: Path, tmp_path: Path) -> GeminiArena:
        """An arena for one rule."""
        return GeminiArena(tmp_path, gemini_cli)
