"""Test doubles for your own loops, operators and agents: the tools that cuggino is tested with.

- `Marbles` draws streams and compares them with drawings, in virtual time
- `VirtualRuntime` runs whole loops in virtual time, in a project with real files: it returns a
  `Story`, and `VirtualClock` is its time
- `InMemoryAgent` plays an agent without a process: a session is a list of messages and actions
  (`Say`, `Think`, `Write`, `Run`, `Use`, `Wait`, `Do`), or a drawn stream
- `ScriptedAgent` plays an agent with a real process
- `InMemoryForge` holds issues and pull requests, with people and CI that act in virtual time
- `no_leaks` asserts that a block leaves nothing behind
- `AgentConformance`, `FailureConformance` and `GuardConformance` test an agent of your own by the
  rules that cuggino's agents follow
- `replay` compares a run with its recording

`cuggino.pytest_plugin` adds fixtures to pytest: `marbles`, `cuggino_runtime`, `cuggino_agent` and
others.
"""

from cuggino.testing.acts import Do, Item, Use, Wait
from cuggino.testing.agents import AgentRun, InMemoryAgent, Played, ScriptedAgent
from cuggino.testing.clock import StandsStill, VirtualClock
from cuggino.testing.conformance import (
    AgentConformance,
    FailureConformance,
    GuardConformance,
    Verdict,
    rules_of,
    try_agent,
)
from cuggino.testing.conformance.acts import (
    Act,
    Call,
    CannotPlay,
    Delegate,
    Edit,
    Fail,
    Fault,
    Meanwhile,
    ModelRequest,
    Outcome,
    Read,
    Run,
    Say,
    Think,
    Turn,
    Write,
    acts_of,
)
from cuggino.testing.conformance.arena import Arena, GuardArena, Play, PlayArena, Running
from cuggino.testing.conformance.offline import try_offline
from cuggino.testing.diagrams import Seen
from cuggino.testing.doubles import CommandResult
from cuggino.testing.forge import CiRun, ForgeCall, ForgePerson, InMemoryForge
from cuggino.testing.leaks import no_leaks
from cuggino.testing.marbles import DrawnStream, Marbles
from cuggino.testing.replays import replay
from cuggino.testing.runtime import VirtualRuntime, play
from cuggino.testing.story import Story

__all__ = [
    "Act",
    "AgentConformance",
    "AgentRun",
    "Arena",
    "Call",
    "CannotPlay",
    "CiRun",
    "CommandResult",
    "Delegate",
    "Do",
    "DrawnStream",
    "Edit",
    "Fail",
    "FailureConformance",
    "Fault",
    "ForgeCall",
    "ForgePerson",
    "GuardArena",
    "GuardConformance",
    "InMemoryAgent",
    "InMemoryForge",
    "Item",
    "Marbles",
    "Meanwhile",
    "ModelRequest",
    "Outcome",
    "Play",
    "PlayArena",
    "Played",
    "Read",
    "Run",
    "Running",
    "Say",
    "ScriptedAgent",
    "Seen",
    "StandsStill",
    "Story",
    "Think",
    "Turn",
    "Use",
    "Verdict",
    "VirtualClock",
    "VirtualRuntime",
    "Wait",
    "Write",
    "acts_of",
    "no_leaks",
    "play",
    "replay",
    "rules_of",
    "try_agent",
    "try_offline",
]
