"""Doubles for tests of your own loops, policies and agents: the tools cuggino is tested with.

- `Marbles` draws streams, and compares them with drawings, in virtual time
- `VirtualRuntime` runs whole loops in virtual time, in a project with real files: `Story` is what
  came of one, `VirtualClock` its time
- `InMemoryAgent` plays an agent without a process: a session is a list of what it says and does
  (`Say`, `Think`, `Write`, `Run`, `Use`, `Wait`, `Do`), or a drawn stream
- `ScriptedAgent` plays one with a real process
- `no_leaks` proves that nothing was left behind
- `AgentConformance` holds an agent of your own to the rules that those of cuggino keep
- `replay` holds a run to its recording
- `plugin` brings fixtures to pytest: `marbles`, `cuggino_runtime`, `cuggino_agent` and others

Names are resolved on first use: the plugin costs nothing where it is not used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuggino.agents.scripted import ScriptedAgent
    from cuggino.testing.acts import Do, Item, Use, Wait
    from cuggino.testing.agents import AgentRun, InMemoryAgent
    from cuggino.testing.clock import StandsStill, VirtualClock
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
    from cuggino.testing.diagrams import Seen
    from cuggino.testing.doubles import CommandResult
    from cuggino.testing.leaks import no_leaks
    from cuggino.testing.marbles import DrawnStream, Marbles
    from cuggino.testing.replays import replay
    from cuggino.testing.runtime import VirtualRuntime
    from cuggino.testing.story import Story

_HOME = {
    "Act": "conformance_acts",
    "AgentConformance": "conformance",
    "AgentRun": "agents",
    "Arena": "conformance_arena",
    "CannotPlay": "conformance_acts",
    "CommandResult": "doubles",
    "Do": "acts",
    "DrawnStream": "marbles",
    "Fail": "conformance_acts",
    "Fault": "conformance_acts",
    "InMemoryAgent": "agents",
    "Item": "acts",
    "Marbles": "marbles",
    "Outcome": "conformance_acts",
    "Play": "conformance_arena",
    "PlayArena": "conformance_arena",
    "Run": "conformance_acts",
    "Running": "conformance_running",
    "Say": "conformance_acts",
    "ScriptedAgent": "agents",
    "Seen": "diagrams",
    "StandsStill": "clock",
    "Story": "story",
    "Think": "conformance_acts",
    "Told": "conformance_acts",
    "Turn": "conformance_acts",
    "Use": "acts",
    "Verdict": "conformance",
    "VirtualClock": "clock",
    "VirtualRuntime": "runtime",
    "Wait": "acts",
    "Write": "conformance_acts",
    "acts_of": "conformance_acts",
    "no_leaks": "leaks",
    "replay": "replays",
    "rules_of": "conformance",
    "try_agent": "conformance",
}
"""The file of each public name."""

__all__ = [
    "Act",
    "AgentConformance",
    "AgentRun",
    "Arena",
    "CannotPlay",
    "CommandResult",
    "Do",
    "DrawnStream",
    "Fail",
    "Fault",
    "InMemoryAgent",
    "Item",
    "Marbles",
    "Outcome",
    "Play",
    "PlayArena",
    "Run",
    "Running",
    "Say",
    "ScriptedAgent",
    "Seen",
    "StandsStill",
    "Story",
    "Think",
    "Told",
    "Turn",
    "Use",
    "Verdict",
    "VirtualClock",
    "VirtualRuntime",
    "Wait",
    "Write",
    "acts_of",
    "no_leaks",
    "replay",
    "rules_of",
    "try_agent",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
