"""Agents that use the Agent Client Protocol, each described by a profile."""

from cuggino.agents.acp.agent import AcpAgent
from cuggino.agents.profiles import PROFILES, Profile, profile_of

__all__ = ["PROFILES", "AcpAgent", "Profile", "profile_of"]
