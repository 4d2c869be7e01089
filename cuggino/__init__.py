"""cuggino, the cousin who can build it for you: coding agents in a loop, as Observables.

    import cuggino

    runtime = cuggino.Runtime.live(cwd=".", agent="claude")
    cuggino.run(runtime.run(focus="add a login page"), print)

Names are imported on first use: `import cuggino` loads nothing heavy. What has no place here is
imported from a public module, and from nothing below one:

- `cuggino.agents`: providers; `cuggino.agents.claude` and its siblings have their classes
- `cuggino.agents.cassettes`: recordings of agent sessions
- `cuggino.config`: the settings of a project
- `cuggino.control`: commands to a run that works
- `cuggino.doctor`: checks that a run can work in a project
- `cuggino.edges`: `run`, `iterate` and `aiterate`
- `cuggino.errors`: the tree of errors
- `cuggino.events`: the events, one base class per category
- `cuggino.files`: atomic reading and writing of files
- `cuggino.forge`: GitHub and GitLab, trackers, and landing through pull requests
- `cuggino.guard`: the verdicts on tool calls
- `cuggino.guard_audit`: the guard asked about tool calls outside a run
- `cuggino.loops`: the four loops
- `cuggino.mcp_server`: the deliverable tools as an MCP server
- `cuggino.notify`: notifications
- `cuggino.operators`: operators from Observable to Observable
- `cuggino.placement`: the cluster that a watch works on
- `cuggino.prompts`: prompt templates
- `cuggino.report`: the HTML report of a run
- `cuggino.runs`: recorded runs
- `cuggino.sandbox`: each role's view of the project, enforced by the operating system
- `cuggino.sources`: processes, folders and git as Observables
- `cuggino.stages`: one action each: agent, command, commit, fingerprint, snapshot, undo
- `cuggino.storage`: the files of a project's workspace
- `cuggino.telemetry`: export of runs by OpenTelemetry
- `cuggino.testing`: doubles for your own tests
- `cuggino.trust`: the commands that a project brings, and those that a user has accepted
- `cuggino.web`: the live page
"""

from cuggino._lazy import lazy
from cuggino._version import __version__ as __version__

NAMES = {
    "_version": "__version__",
    "agents": "LlmAgent SpawnOptions make_agent",
    "config": "Config load_config save_config",
    "edges": "aiterate iterate run",
    "errors": "AgentFailed AgentNotFound ConfigError CugginoError",
    "events": (
        "DeliverEnded DeliverEvent Event LlmAgentEvent LlmMarkerEvent LoopEvent LoopTerminalEvent "
        "PlanBuildEnded PlanBuildEvent RunResult WatchEvent dump_event parse_event"
    ),
    "loops": "DeliverRunOptions LoopRunOptions LoopService PlanBuildOptions WatchRunOptions",
    "operators": (
        "LoopScheduler Schedule acquire_release ask emit extract_markers flow forward "
        "idle_timeout interrupt_when marker_tags retry_session until_terminal wait_for_quota "
        "within_budget"
    ),
    "preflight": "resumed_agent",
    "runtime": "Runtime",
    "sources": "watch_file_count",
}
"""The public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
