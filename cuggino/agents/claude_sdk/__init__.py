"""Claude Code, by the Claude Agent SDK."""

from cuggino.agents.claude_sdk.agent import ClaudeSdkAgent

__all__ = ["ClaudeSdkAgent"]
