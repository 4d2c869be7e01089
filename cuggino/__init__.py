"""cuggino, the cousin who can build it for you: coding agents in a loop, as Observables.

    import cuggino

    runtime = cuggino.Runtime.live(cwd=".", agent="claude")
    cuggino.run(runtime.run(focus="add a login page"), print)

Names and modules are imported on first use, so that `import cuggino` loads nothing heavy.
Everything else is imported from a public module, and from nothing below one:

- `cuggino.agents`: providers; `cuggino.agents.claude` and its siblings have their classes
- `cuggino.agents.cassettes`: recordings of agent sessions
- `cuggino.chat`: questions and reports by Telegram, ntfy or a service of your own
- `cuggino.config`: the settings of a project
- `cuggino.control`: commands to a run that works
- `cuggino.doctor`: checks that a run can work in a project
- `cuggino.edges`: `run`, `iterate` and `aiterate`
- `cuggino.errors`: the tree of errors
- `cuggino.events`: the events, one base class per category
- `cuggino.simulation`: the loops with an agent that fails by chance, in virtual time
- `cuggino.files`: atomic reading and writing of files
- `cuggino.forge`: GitHub and GitLab, trackers, and landing through pull requests
- `cuggino.gate`: what a check means: failing tests, commands that cannot fail, flaky tests
- `cuggino.git`: git in a view, the work tree, and what keeps a repository from commits
- `cuggino.guard`: the verdicts on tool calls
- `cuggino.guard_audit`: the guard asked about tool calls outside a run
- `cuggino.inert`: untrusted text made safe to display
- `cuggino.loops`: the four loops
- `cuggino.mcp_server`: the deliverable tools as an MCP server
- `cuggino.notify`: notifications
- `cuggino.operators`: operators from Observable to Observable
- `cuggino.placement`: the cluster that a watch works on
- `cuggino.prompts`: prompt templates
- `cuggino.report`: the HTML report of a run
- `cuggino.runs`: recorded runs
- `cuggino.runs.words`: the sentence of each event
- `cuggino.sandbox`: each role's view of the project, enforced by the operating system
- `cuggino.processes`: programs as Observables
- `cuggino.folders`: changes and counts of files as Observables
- `cuggino.stages`: one action each: plan, implement, review, check, commit, snapshot, undo
- `cuggino.storage`: the files of a project's workspace
- `cuggino.telemetry`: export of runs by OpenTelemetry
- `cuggino.testing`: doubles for your own tests
- `cuggino.trust`: the commands that a project brings, and those that a user has accepted
- `cuggino.web`: the live page
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cuggino._version import __version__

if TYPE_CHECKING:
    from cuggino.agents import LlmAgent, SpawnOptions, make_agent
    from cuggino.config import Config, load_config, save_config
    from cuggino.edges import aiterate, iterate, run
    from cuggino.errors import AgentFailed, AgentNotFound, ConfigError, CugginoError
    from cuggino.events import (
        DeliverEnded,
        DeliverEvent,
        Event,
        LlmAgentEvent,
        LlmMarkerEvent,
        LoopEvent,
        LoopTerminalEvent,
        PlanBuildEnded,
        PlanBuildEvent,
        RunResult,
        WatchEvent,
        dump_event,
        parse_event,
    )
    from cuggino.folders import watch_file_count
    from cuggino.loops import (
        DeliverRunOptions,
        LoopRunOptions,
        LoopService,
        PlanBuildOptions,
        WatchRunOptions,
    )
    from cuggino.operators import (
        LoopScheduler,
        Schedule,
        acquire_release,
        ask,
        emit,
        extract_markers,
        flow,
        forward,
        idle_timeout,
        interrupt_when,
        marker_tags,
        retry_session,
        until_terminal,
        wait_for_quota,
        within_budget,
    )
    from cuggino.preflight import resumed_agent
    from cuggino.runtime import Runtime

__all__ = [
    "AgentFailed",
    "AgentNotFound",
    "Config",
    "ConfigError",
    "CugginoError",
    "DeliverEnded",
    "DeliverEvent",
    "DeliverRunOptions",
    "Event",
    "LlmAgent",
    "LlmAgentEvent",
    "LlmMarkerEvent",
    "LoopEvent",
    "LoopRunOptions",
    "LoopScheduler",
    "LoopService",
    "LoopTerminalEvent",
    "PlanBuildEnded",
    "PlanBuildEvent",
    "PlanBuildOptions",
    "RunResult",
    "Runtime",
    "Schedule",
    "SpawnOptions",
    "WatchEvent",
    "WatchRunOptions",
    "__version__",
    "acquire_release",
    "aiterate",
    "ask",
    "dump_event",
    "emit",
    "extract_markers",
    "flow",
    "forward",
    "idle_timeout",
    "interrupt_when",
    "iterate",
    "load_config",
    "make_agent",
    "marker_tags",
    "parse_event",
    "resumed_agent",
    "retry_session",
    "run",
    "save_config",
    "until_terminal",
    "wait_for_quota",
    "watch_file_count",
    "within_budget",
]

_HOMES = {
    "AgentFailed": "cuggino.errors",
    "AgentNotFound": "cuggino.errors",
    "Config": "cuggino.config",
    "ConfigError": "cuggino.errors",
    "CugginoError": "cuggino.errors",
    "DeliverEnded": "cuggino.events",
    "DeliverEvent": "cuggino.events",
    "DeliverRunOptions": "cuggino.loops",
    "Event": "cuggino.events",
    "LlmAgent": "cuggino.agents",
    "LlmAgentEvent": "cuggino.events",
    "LlmMarkerEvent": "cuggino.events",
    "LoopEvent": "cuggino.events",
    "LoopRunOptions": "cuggino.loops",
    "LoopScheduler": "cuggino.operators",
    "LoopService": "cuggino.loops",
    "LoopTerminalEvent": "cuggino.events",
    "PlanBuildEnded": "cuggino.events",
    "PlanBuildEvent": "cuggino.events",
    "PlanBuildOptions": "cuggino.loops",
    "RunResult": "cuggino.events",
    "Runtime": "cuggino.runtime",
    "Schedule": "cuggino.operators",
    "SpawnOptions": "cuggino.agents",
    "WatchEvent": "cuggino.events",
    "WatchRunOptions": "cuggino.loops",
    "acquire_release": "cuggino.operators",
    "aiterate": "cuggino.edges",
    "ask": "cuggino.operators",
    "dump_event": "cuggino.events",
    "emit": "cuggino.operators",
    "extract_markers": "cuggino.operators",
    "flow": "cuggino.operators",
    "forward": "cuggino.operators",
    "idle_timeout": "cuggino.operators",
    "interrupt_when": "cuggino.operators",
    "iterate": "cuggino.edges",
    "load_config": "cuggino.config",
    "make_agent": "cuggino.agents",
    "marker_tags": "cuggino.operators",
    "parse_event": "cuggino.events",
    "resumed_agent": "cuggino.preflight",
    "retry_session": "cuggino.operators",
    "run": "cuggino.edges",
    "save_config": "cuggino.config",
    "until_terminal": "cuggino.operators",
    "wait_for_quota": "cuggino.operators",
    "watch_file_count": "cuggino.folders",
    "within_budget": "cuggino.operators",
}
"""The module of each name that is imported on first use."""


if not TYPE_CHECKING:  # or a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            value = getattr(importlib.import_module(_HOMES[name]), name)
        else:
            value = _module(name)
        globals()[name] = value
        return value


def _module(name: str) -> ModuleType:
    """Import a module of the package, as `cuggino.events` without an import of its own."""
    full_name = f"{__name__}.{name}"
    try:
        return importlib.import_module(full_name)
    except ModuleNotFoundError as error:
        if error.name != full_name:
            raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
