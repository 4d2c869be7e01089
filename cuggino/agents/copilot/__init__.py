"""GitHub Copilot, by its SDK and its CLI."""

from cuggino.agents.copilot.agent import CopilotAgent

__all__ = ["CopilotAgent"]
