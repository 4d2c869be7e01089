"""The Gemini CLI of Google."""

from cuggino.agents.gemini.agent import GeminiAgent

__all__ = ["GeminiAgent"]
