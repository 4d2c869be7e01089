"""The agent of backlog items, slow enough to be caught at work; loaded on workers."""

from __future__ import annotations

from tests.endurance import agent

agent.PAUSE = 0.5


class SlowItemAgent(agent.ItemAgent):
    """Pauses for half a second before each step."""
