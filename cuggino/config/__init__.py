"""`.cuggino.json`: its settings, and reading and writing them.

An unusable file is an error with the place and a suggestion, never a silent default: a run with
other settings than the user believes costs a night.
"""

from cuggino.config.agent_file import (
    AgentFile,
    AgentSettings,
    change_note,
    missing_programs,
    read_agent_file,
)
from cuggino.config.agents import (
    AcpProgram,
    AttemptChoice,
    FallbackAgent,
    RoleAgent,
)
from cuggino.config.chatting import (
    ChatSettings,
    NtfySettings,
    OwnChannelSettings,
    TelegramSettings,
    is_reference,
)
from cuggino.config.cluster import RESOURCE, ClusterSettings
from cuggino.config.file import (
    AGENT_FILE,
    CONFIG_FILE,
    PLAN_BUILD_CONFIG_FILE,
    changed_config,
    config_path,
    load_config,
    parse_config,
    save_config,
)
from cuggino.config.forges import BacklogSource, HookName, ReportState
from cuggino.config.guarding import (
    configured_policy,
    configured_sandbox,
    deliver_policy,
    policy_of_run,
)
from cuggino.config.model import (
    CommandSettings,
    CommitSettings,
    Config,
    GuardSettings,
    HandsSettings,
    JournalSettings,
    LoopSettings,
    ReviewSettings,
    RunSettings,
    SnapshotSettings,
    SupervisionSettings,
    WatchSettings,
)
from cuggino.config.notifying import OCCASIONS, USUAL, NotifySettings, Occasion
from cuggino.config.plan_build import (
    LoadedPlanBuildConfig,
    LogLevel,
    PlanBuildConfig,
    PlanBuildSettings,
    change_plan_build_config,
    chosen_agent,
    chosen_options,
    load_plan_build_config,
    reset_plan_build_config,
)
from cuggino.config.pull_requests import ForgeKind, PullRequestSettings
from cuggino.config.user import UserConfig, load_user_config

__all__ = [
    "AGENT_FILE",
    "CONFIG_FILE",
    "OCCASIONS",
    "PLAN_BUILD_CONFIG_FILE",
    "RESOURCE",
    "USUAL",
    "AcpProgram",
    "AgentFile",
    "AgentSettings",
    "AttemptChoice",
    "BacklogSource",
    "ChatSettings",
    "ClusterSettings",
    "CommandSettings",
    "CommitSettings",
    "Config",
    "FallbackAgent",
    "ForgeKind",
    "GuardSettings",
    "HandsSettings",
    "HookName",
    "JournalSettings",
    "LoadedPlanBuildConfig",
    "LogLevel",
    "LoopSettings",
    "NotifySettings",
    "NtfySettings",
    "Occasion",
    "OwnChannelSettings",
    "PlanBuildConfig",
    "PlanBuildSettings",
    "PullRequestSettings",
    "ReportState",
    "ReviewSettings",
    "RoleAgent",
    "RunSettings",
    "SnapshotSettings",
    "SupervisionSettings",
    "TelegramSettings",
    "UserConfig",
    "WatchSettings",
    "change_note",
    "change_plan_build_config",
    "changed_config",
    "chosen_agent",
    "chosen_options",
    "config_path",
    "configured_policy",
    "configured_sandbox",
    "deliver_policy",
    "is_reference",
    "load_config",
    "load_plan_build_config",
    "load_user_config",
    "missing_programs",
    "parse_config",
    "policy_of_run",
    "read_agent_file",
    "reset_plan_build_config",
    "save_config",
]
