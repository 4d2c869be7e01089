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
from cuggino.agents.base.enclosing import enclosure_of
from cuggino.agents.base.login import LoginCheck
from cuggino.guard import Role

__all__ = [
    "AgentLike",
    "Capabilities",
    "DelegatingAgent",
    "InteractiveOptions",
    "LlmAgent",
    "LoginCheck",
    "Role",
    "SpawnOptions",
    "adopt",
    "enclosure_of",
    "is_guarded",
]
