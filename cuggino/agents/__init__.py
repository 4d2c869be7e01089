"""Providers: a CLI in, `LlmAgentEvent`s out."""

from cuggino.agents.protocol import (
    GuardedAgent,
    InteractiveOptions,
    LlmAgent,
    Role,
    SandboxedAgent,
    SpawnOptions,
)
from cuggino.agents.registry import make_agent

__all__ = [
    "GuardedAgent",
    "InteractiveOptions",
    "LlmAgent",
    "Role",
    "SandboxedAgent",
    "SpawnOptions",
    "make_agent",
]
