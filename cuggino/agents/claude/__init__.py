"""Claude Code, by its CLI."""

from cuggino.agents.claude.agent import ClaudeAgent

__all__ = ["ClaudeAgent"]
