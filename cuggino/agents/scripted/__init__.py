"""The scripted agent: a child process that plays a scenario, and needs no key."""

from cuggino.agents.scripted.agent import ScriptedAgent

__all__ = ["ScriptedAgent"]
