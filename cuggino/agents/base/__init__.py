"""The agent protocol, and the parts that providers share."""

from cuggino.agents.base.agent import (
    AgentLike,
    Capabilities,
    DelegatingAgent,
    InteractiveOptions,
    LlmAgent,
    SpawnOptions,
    adopt,
    is_guarded,
)
from cuggino.guard import Role

__all__ = [
    "AgentLike",
    "Capabilities",
    "DelegatingAgent",
    "InteractiveOptions",
    "LlmAgent",
    "Role",
    "SpawnOptions",
    "adopt",
    "is_guarded",
]
