"""cuggino, the cousin who can build it for you: coding agents in a loop, as Observables.

    agent stdout - sources - agents - operators.extract_markers - stages - loops - your subscriber

- `events`: what is said; frozen models, one base class per category
- `errors`: what can go wrong, as one tree
- `config`: the project's `.cuggino.json`
- `domain`: what is true, without time or disk
- `prompts`: what an agent is told
- `operators`: Observable to Observable, `flow` and `extract_markers` among them
- `sources`: where the operating system becomes an Observable
- `storage`: what survives a stage
- `agents`: providers; a CLI in, events out
- `stages`: one act each, whose last event is its outcome
- `loops`: stories made of stages
- `preflight`: whether a loop can work in a folder
- `runtime`: builds the services for a folder
- `edges`: `run`, `iterate`, `aiterate`
- `notify`: how a person is called
- `testing`: doubles for your own tests

Start with::

    import cuggino

    runtime = cuggino.Runtime.live(cwd=".", agent="claude")
    cuggino.run(runtime.run(focus="add a login page"), print)

Names are resolved on first use: `import cuggino` imports nothing heavy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cuggino._version import __version__

if TYPE_CHECKING:
    from cuggino.agents import (
        Candidate,
        InteractiveOptions,
        LlmAgent,
        RoutedAgent,
        SpawnOptions,
        configured_agent,
        make_agent,
    )
    from cuggino.agents.cassettes import ReplayAgent, record_to, replay_of
    from cuggino.agents.claude import ClaudeAgent
    from cuggino.agents.claude_sdk import ClaudeSdkAgent
    from cuggino.agents.codex import CodexAgent
    from cuggino.agents.copilot import CopilotAgent
    from cuggino.agents.gemini import GeminiAgent
    from cuggino.agents.opencode import OpenCodeAgent
    from cuggino.agents.scripted import ScriptedAgent
    from cuggino.config import Config, load_config, save_config
    from cuggino.domain.run_summary import RunSummary
    from cuggino.edges import aiterate, iterate, run
    from cuggino.errors import (
        AgentFailed,
        AgentNotFound,
        AgentTooOld,
        ConfigError,
        CugginoError,
        GuardNotLive,
        LlmSessionError,
        LoopError,
        QuotaExceeded,
        ReplayDiverged,
    )
    from cuggino.events import (
        DeliverEnded,
        DeliverEvent,
        Event,
        LlmAgentEvent,
        LlmMarkerEvent,
        LoopEvent,
        LoopPhaseEvent,
        LoopTerminalEvent,
        PlanBuildEnded,
        PlanBuildEvent,
        WatchEvent,
        dump_event,
        is_deliver_event,
        is_llm_agent_event,
        is_llm_marker_event,
        is_llm_terminal_marker_event,
        is_loop_event,
        is_loop_phase_event,
        is_loop_terminal_event,
        is_plan_build_event,
        is_watch_loop_event,
        parse_event,
    )
    from cuggino.loops import (
        DeliverRunOptions,
        DeliverService,
        LoopRunOptions,
        LoopService,
        PlanBuildOptions,
        PlanBuildService,
        WatchRunOptions,
        WatchService,
    )
    from cuggino.operators import (
        LoopScheduler,
        ask,
        emit,
        extract_markers,
        flow,
        forward,
        marker_tags,
    )
    from cuggino.preflight import resumed_agent
    from cuggino.runtime import Runtime

_HOMES = {
    "agents": (
        "Candidate",
        "InteractiveOptions",
        "LlmAgent",
        "RoutedAgent",
        "SpawnOptions",
        "configured_agent",
        "make_agent",
    ),
    "agents.claude": ("ClaudeAgent",),
    "agents.copilot": ("CopilotAgent",),
    "agents.claude_sdk": ("ClaudeSdkAgent",),
    "agents.codex": ("CodexAgent",),
    "agents.gemini": ("GeminiAgent",),
    "agents.opencode": ("OpenCodeAgent",),
    "agents.cassettes": ("ReplayAgent", "record_to", "replay_of"),
    "agents.scripted": ("ScriptedAgent",),
    "config": ("Config", "load_config", "save_config"),
    "domain.run_summary": ("RunSummary",),
    "edges": ("aiterate", "iterate", "run"),
    "errors": (
        "AgentFailed",
        "AgentNotFound",
        "AgentTooOld",
        "ConfigError",
        "CugginoError",
        "GuardNotLive",
        "LlmSessionError",
        "LoopError",
        "QuotaExceeded",
        "ReplayDiverged",
    ),
    "events": (
        "DeliverEnded",
        "DeliverEvent",
        "Event",
        "LlmAgentEvent",
        "LlmMarkerEvent",
        "LoopEvent",
        "LoopPhaseEvent",
        "LoopTerminalEvent",
        "PlanBuildEnded",
        "PlanBuildEvent",
        "WatchEvent",
        "dump_event",
        "is_deliver_event",
        "is_llm_agent_event",
        "is_llm_marker_event",
        "is_llm_terminal_marker_event",
        "is_loop_event",
        "is_loop_phase_event",
        "is_loop_terminal_event",
        "is_plan_build_event",
        "is_watch_loop_event",
        "parse_event",
    ),
    "loops": (
        "DeliverRunOptions",
        "DeliverService",
        "LoopRunOptions",
        "LoopService",
        "PlanBuildOptions",
        "PlanBuildService",
        "WatchRunOptions",
        "WatchService",
    ),
    "operators": (
        "LoopScheduler",
        "ask",
        "emit",
        "extract_markers",
        "flow",
        "forward",
        "marker_tags",
    ),
    "preflight": ("resumed_agent",),
    "runtime": ("Runtime",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AgentFailed",
    "AgentNotFound",
    "AgentTooOld",
    "Candidate",
    "ClaudeAgent",
    "ClaudeSdkAgent",
    "CodexAgent",
    "Config",
    "ConfigError",
    "CopilotAgent",
    "CugginoError",
    "DeliverEnded",
    "DeliverEvent",
    "DeliverRunOptions",
    "DeliverService",
    "Event",
    "GeminiAgent",
    "GuardNotLive",
    "InteractiveOptions",
    "LlmAgent",
    "LlmAgentEvent",
    "LlmMarkerEvent",
    "LlmSessionError",
    "LoopError",
    "LoopEvent",
    "LoopPhaseEvent",
    "LoopRunOptions",
    "LoopScheduler",
    "LoopService",
    "LoopTerminalEvent",
    "OpenCodeAgent",
    "PlanBuildEnded",
    "PlanBuildEvent",
    "PlanBuildOptions",
    "PlanBuildService",
    "QuotaExceeded",
    "ReplayAgent",
    "ReplayDiverged",
    "RoutedAgent",
    "RunSummary",
    "Runtime",
    "ScriptedAgent",
    "SpawnOptions",
    "WatchEvent",
    "WatchRunOptions",
    "WatchService",
    "__version__",
    "aiterate",
    "ask",
    "configured_agent",
    "dump_event",
    "emit",
    "extract_markers",
    "flow",
    "forward",
    "is_deliver_event",
    "is_llm_agent_event",
    "is_llm_marker_event",
    "is_llm_terminal_marker_event",
    "is_loop_event",
    "is_loop_phase_event",
    "is_loop_terminal_event",
    "is_plan_build_event",
    "is_watch_loop_event",
    "iterate",
    "load_config",
    "make_agent",
    "marker_tags",
    "parse_event",
    "record_to",
    "replay_of",
    "resumed_agent",
    "run",
    "save_config",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'cuggino' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"cuggino.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
