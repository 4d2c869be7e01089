"""Providers: a CLI or an SDK in, `LlmAgentEvent`s out."""

from cuggino.agents.candidates import Candidate
from cuggino.agents.configured import configured_agent
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
    is_guarded,
)
from cuggino.agents.registry import make_agent
from cuggino.agents.routing import RoutedAgent

__all__ = [
    "Candidate",
    "Capabilities",
    "DescribedAgent",
    "GuardedAgent",
    "InteractiveOptions",
    "LlmAgent",
    "Role",
    "RoutedAgent",
    "SandboxedAgent",
    "SpawnOptions",
    "capabilities_of",
    "configured_agent",
    "is_guarded",
    "make_agent",
]
