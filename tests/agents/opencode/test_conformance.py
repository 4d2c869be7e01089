"""The real OpenCode CLI keeps the rules of all agents."""

from __future__ import annotations

from pathlib import Path

import pytest
from typing_extensions import override

from cuggino.agents import LlmAgent
from cuggino.agents.opencode import OpenCodeAgent
from cuggino.testing import AgentConformance, Run, Write
from tests.agents.arenas import ModelArena
from tests.model_openai import OpenAiServer
from tests.model_script import Tool
from tests.real_opencode import bash, clean_env, opencode_cli, write

__all__ = ["opencode_cli"]

pytestmark = pytest.mark.real_agent


class OpenCodeArena(ModelArena):
    """The real OpenCode CLI."""

    server = OpenAiServer
    cut_after = 3
    patience = 100.0  # it asks again for a minute before it gives up
    other_model = "mock/other-model"
    unknown_session = "ses_0123456789abcdefghijklmnop"

    @override
    def make(self, path: Path, base_url: str) -> LlmAgent:
        return OpenCodeAgent(path=path, env=clean_env(self.home, base_url))

    @override
    def tool(self, act: Run | Write) -> Tool:
        match act:
            case Run(command):
                return bash(command)
            case Write(path, text):
                return write(path, text)


class TestOpenCode(AgentConformance):
    """OpenCode."""

    @pytest.fixture
    def arena(self, opencode_cli: Path, tmp_path: Path) -> OpenCodeArena:
        """An arena for one rule."""
        return OpenCodeArena(tmp_path, opencode_cli)
