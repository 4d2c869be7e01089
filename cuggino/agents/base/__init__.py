"""The agent protocol, and the parts that providers share."""

from cuggino.agents.base.agent import (
    AgentLike,
    Capabilities,
    DelegatingAgent,
    GuardLevel,
    InteractiveOptions,
    LlmAgent,
    SpawnOptions,
    adopt,
    is_guarded,
    weakest_guard,
)
from cuggino.agents.base.enclosing import enclosure_of
from cuggino.agents.base.login import LoginCheck
from cuggino.agents.base.private_files import remove_abandoned
from cuggino.guard import Role

__all__ = [
    "AgentLike",
    "Capabilities",
    "DelegatingAgent",
    "GuardLevel",
    "InteractiveOptions",
    "LlmAgent",
    "LoginCheck",
    "Role",
    "SpawnOptions",
    "adopt",
    "enclosure_of",
    "is_guarded",
    "remove_abandoned",
    "weakest_guard",
]
