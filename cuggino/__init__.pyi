"""Public names of `cuggino`; written by `python -m tests.stubs`."""

from cuggino._version import (
    __version__,
)
from cuggino.agents import (
    LlmAgent,
    SpawnOptions,
    make_agent,
)
from cuggino.config import (
    Config,
    load_config,
    save_config,
)
from cuggino.edges import (
    aiterate,
    iterate,
    run,
)
from cuggino.errors import (
    AgentFailed,
    AgentNotFound,
    ConfigError,
    CugginoError,
)
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
from cuggino.preflight import (
    resumed_agent,
)
from cuggino.runtime import (
    Runtime,
)
from cuggino.sources import (
    watch_file_count,
)

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
