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
- `plugin` adds fixtures to pytest: `marbles`, `cuggino_runtime`, `cuggino_agent` and others

Names are resolved on first use, so the plugin costs nothing where it is not used.
"""

from cuggino._lazy import lazy

NAMES = {
    "acts": "Do Item Use Wait",
    "agents": "AgentRun InMemoryAgent ScriptedAgent",
    "clock": "StandsStill VirtualClock",
    "conformance": (
        "AgentConformance FailureConformance GuardConformance Verdict rules_of try_agent"
    ),
    "conformance.acts": (
        "Act Call CannotPlay Delegate Edit Fail Fault Meanwhile ModelRequest Outcome "
        "Read Run Say Think Turn Write acts_of"
    ),
    "conformance.offline": "try_offline",
    "conformance.arena": "Arena GuardArena Play PlayArena Running",
    "diagrams": "Seen",
    "doubles": "CommandResult",
    "forge": "CiRun ForgeCall ForgePerson InMemoryForge",
    "leaks": "no_leaks",
    "marbles": "DrawnStream Marbles",
    "replays": "replay",
    "runtime": "VirtualRuntime",
    "story": "Story",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
