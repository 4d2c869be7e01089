"""Providers: a CLI or an SDK in, `LlmAgentEvent`s out."""

from cuggino.agents.protocol import (
    Capabilities,
    DescribedAgent,
    GuardedAgent,
    InteractiveOptions,
    LlmAgent,
    Role,
    SandboxedAgent,
    SpawnOptions,
    capabilities_of,
)
from cuggino.agents.registry import make_agent

__all__ = [
    "Capabilities",
    "DescribedAgent",
    "GuardedAgent",
    "InteractiveOptions",
    "LlmAgent",
    "Role",
    "SandboxedAgent",
    "SpawnOptions",
    "capabilities_of",
    "make_agent",
]
