"""Providers: a CLI in, `LlmAgentEvent`s out."""

from cuggino.agents.protocol import InteractiveOptions, LlmAgent, Role, SpawnOptions
from cuggino.agents.registry import make_agent

__all__ = ["InteractiveOptions", "LlmAgent", "Role", "SpawnOptions", "make_agent"]
