"""OpenCode."""

from cuggino.agents.opencode.agent import OpenCodeAgent

__all__ = ["OpenCodeAgent"]
