"""The Codex CLI of OpenAI."""

from cuggino.agents.codex.agent import CodexAgent

__all__ = ["CodexAgent"]
