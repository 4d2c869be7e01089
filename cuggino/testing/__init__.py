"""Doubles for tests of your own loops, policies and agents: the tools cuggino is tested with.

`Marbles` draws streams in virtual time, `InMemoryAgent` plays an agent without a process,
`ScriptedAgent` plays one with a real process, `no_leaks` proves that nothing was left behind.
`AgentConformance` holds an agent of your own to the rules that those of cuggino keep,
`replay` holds a run to its recording.
"""

from cuggino.agents.scripted import ScriptedAgent
from cuggino.testing.agents import AgentRun, InMemoryAgent
from cuggino.testing.conformance import AgentConformance, Verdict, rules_of, try_agent
from cuggino.testing.conformance_acts import (
    Act,
    CannotPlay,
    Fail,
    Fault,
    Outcome,
    Run,
    Say,
    Think,
    Told,
    Turn,
    Write,
    acts_of,
)
from cuggino.testing.conformance_arena import Arena, Play, PlayArena
from cuggino.testing.conformance_running import Running
from cuggino.testing.leaks import no_leaks
from cuggino.testing.marbles import DrawnStream, Marbles, Seen
from cuggino.testing.replays import replay

__all__ = [
    "Act",
    "AgentConformance",
    "AgentRun",
    "Arena",
    "CannotPlay",
    "DrawnStream",
    "Fail",
    "Fault",
    "InMemoryAgent",
    "Marbles",
    "Outcome",
    "Play",
    "PlayArena",
    "Run",
    "Running",
    "Say",
    "ScriptedAgent",
    "Seen",
    "Think",
    "Told",
    "Turn",
    "Verdict",
    "Write",
    "acts_of",
    "no_leaks",
    "replay",
    "rules_of",
    "try_agent",
]
