"""Test doubles for your own loops, operators and agents: the tools that cuggino is tested with.

- `Marbles` draws streams and compares them with drawings, in virtual time
- `VirtualRuntime` runs whole loops in virtual time, in a project with real files: it returns a
  `Story`, and `VirtualClock` is its time
- `InMemoryAgent` plays an agent without a process: a session is a list of messages and actions
  (`Say`, `Think`, `Write`, `Run`, `Use`, `Wait`, `Do`), or a drawn stream
- `ScriptedAgent` plays an agent with a real process
- `no_leaks` asserts that a block leaves nothing behind
- `AgentConformance`, `FailureConformance` and `GuardConformance` test an agent of your own by the
  rules that cuggino's agents follow
- `replay` compares a run with its recording
- `plugin` adds fixtures to pytest: `marbles`, `cuggino_runtime`, `cuggino_agent` and others

Names are resolved on first use, so the plugin costs nothing where it is not used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuggino.agents.scripted import ScriptedAgent
    from cuggino.testing.acts import Do, Item, Use, Wait
    from cuggino.testing.agents import AgentRun, InMemoryAgent
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
    from cuggino.testing.diagrams import Seen
    from cuggino.testing.doubles import CommandResult
    from cuggino.testing.leaks import no_leaks
    from cuggino.testing.marbles import DrawnStream, Marbles
    from cuggino.testing.replays import replay
    from cuggino.testing.runtime import VirtualRuntime
    from cuggino.testing.story import Story

_HOME = {
    "Act": "conformance.acts",
    "AgentConformance": "conformance",
    "AgentRun": "agents",
    "Arena": "conformance.arena",
    "Call": "conformance.acts",
    "CannotPlay": "conformance.acts",
    "CommandResult": "doubles",
    "Delegate": "conformance.acts",
    "Do": "acts",
    "DrawnStream": "marbles",
    "Edit": "conformance.acts",
    "Fail": "conformance.acts",
    "FailureConformance": "conformance",
    "Fault": "conformance.acts",
    "GuardArena": "conformance.arena",
    "GuardConformance": "conformance",
    "InMemoryAgent": "agents",
    "Item": "acts",
    "Marbles": "marbles",
    "Meanwhile": "conformance.acts",
    "ModelRequest": "conformance.acts",
    "Outcome": "conformance.acts",
    "Play": "conformance.arena",
    "PlayArena": "conformance.arena",
    "Read": "conformance.acts",
    "Run": "conformance.acts",
    "Running": "conformance.arena",
    "Say": "conformance.acts",
    "ScriptedAgent": "agents",
    "Seen": "diagrams",
    "StandsStill": "clock",
    "Story": "story",
    "Think": "conformance.acts",
    "Turn": "conformance.acts",
    "Use": "acts",
    "Verdict": "conformance",
    "VirtualClock": "clock",
    "VirtualRuntime": "runtime",
    "Wait": "acts",
    "Write": "conformance.acts",
    "acts_of": "conformance.acts",
    "no_leaks": "leaks",
    "replay": "replays",
    "rules_of": "conformance",
    "try_agent": "conformance",
}
"""Modules of the public names."""

__all__ = [
    "Act",
    "AgentConformance",
    "AgentRun",
    "Arena",
    "Call",
    "CannotPlay",
    "CommandResult",
    "Delegate",
    "Do",
    "DrawnStream",
    "Edit",
    "Fail",
    "FailureConformance",
    "Fault",
    "GuardArena",
    "GuardConformance",
    "InMemoryAgent",
    "Item",
    "Marbles",
    "Meanwhile",
    "ModelRequest",
    "Outcome",
    "Play",
    "PlayArena",
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
