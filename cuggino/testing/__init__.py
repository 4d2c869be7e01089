"""Doubles for tests of your own loops, policies and agents: the tools cuggino is tested with.

`Marbles` draws streams in virtual time, `InMemoryAgent` plays an agent without a process,
`ScriptedAgent` plays one with a real process, `no_leaks` proves that nothing was left behind.
"""

from cuggino.agents.scripted import ScriptedAgent
from cuggino.testing.agents import AgentRun, InMemoryAgent
from cuggino.testing.leaks import no_leaks
from cuggino.testing.marbles import DrawnStream, Marbles, Seen

__all__ = [
    "AgentRun",
    "DrawnStream",
    "InMemoryAgent",
    "Marbles",
    "ScriptedAgent",
    "Seen",
    "no_leaks",
]
