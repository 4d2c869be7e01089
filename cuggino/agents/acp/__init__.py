"""Agents that use the Agent Client Protocol, each described by a profile.

The agent itself is imported when it is used: the models of the protocol take longer to build than
the rest of a command that only lists the profiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuggino.agents.acp.profiles import PROFILES, Profile, profile_of

if TYPE_CHECKING:
    from cuggino.agents.acp.agent import AcpAgent

__all__ = ["PROFILES", "AcpAgent", "Profile", "profile_of"]


def __getattr__(name: str) -> Any:
    if name != "AcpAgent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cuggino.agents.acp.agent import AcpAgent

    return AcpAgent
