"""Public names of `cuggino.config`; written by `python -m tests.stubs`."""

from cuggino.config.agent_file import (
    AGENT_FILE,
    AgentFile,
    AgentSettings,
    change_note,
    joined_settings,
    missing_programs,
    parse_agent_file,
    read_agent_file,
)
from cuggino.config.agents import (
    FallbackAgent,
    RoleAgent,
)
from cuggino.config.file import (
    CONFIG_FILE,
    changed_config,
    config_path,
    load_config,
    parse_config,
    save_config,
)
from cuggino.config.guarding import (
    configured_policy,
    configured_sandbox,
)
from cuggino.config.model import (
    CommandSettings,
    Config,
    GuardSettings,
    JournalSettings,
    LoopSettings,
    ReviewSettings,
    RunSettings,
    SupervisionSettings,
    WatchSettings,
)
from cuggino.config.plan_build import (
    PLAN_BUILD_CONFIG_FILE,
    LogLevel,
    PlanBuildConfig,
    PlanBuildSettings,
    change_plan_build_config,
    chosen_agent,
    chosen_options,
    load_plan_build_config,
    reset_plan_build_config,
)

__all__ = [
    "AGENT_FILE",
    "CONFIG_FILE",
    "PLAN_BUILD_CONFIG_FILE",
    "AgentFile",
    "AgentSettings",
    "CommandSettings",
    "Config",
    "FallbackAgent",
    "GuardSettings",
    "JournalSettings",
    "LogLevel",
    "LoopSettings",
    "PlanBuildConfig",
    "PlanBuildSettings",
    "ReviewSettings",
    "RoleAgent",
    "RunSettings",
    "SupervisionSettings",
    "WatchSettings",
    "change_note",
    "change_plan_build_config",
    "changed_config",
    "chosen_agent",
    "chosen_options",
    "config_path",
    "configured_policy",
    "configured_sandbox",
    "joined_settings",
    "load_config",
    "load_plan_build_config",
    "missing_programs",
    "parse_agent_file",
    "parse_config",
    "read_agent_file",
    "reset_plan_build_config",
    "save_config",
]
