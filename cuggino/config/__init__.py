"""`.cuggino.json`: its settings, and reading and writing them.

An unusable file is an error with the place and a suggestion, never a silent default: a run with
other settings than the user believes costs a night.
"""

from cuggino._lazy import lazy

NAMES = {
    "agent_file": (
        "AgentFile AgentSettings change_note missing_programs parse_agent_file read_agent_file"
    ),
    "agents": "AcpProgram FallbackAgent RoleAgent",
    "cluster": "RESOURCE ClusterSettings",
    "file": (
        "AGENT_FILE CONFIG_FILE PLAN_BUILD_CONFIG_FILE changed_config config_path load_config "
        "parse_config save_config"
    ),
    "forges": "BacklogSource HookName ReportState",
    "guarding": "configured_policy configured_sandbox deliver_policy policy_of_run",
    "model": (
        "CommandSettings CommitSettings Config GuardSettings JournalSettings LoopSettings "
        "ReviewSettings RunSettings SnapshotSettings SupervisionSettings WatchSettings"
    ),
    "notifying": "OCCASIONS USUAL NotifySettings Occasion",
    "plan_build": (
        "LogLevel PlanBuildConfig PlanBuildSettings change_plan_build_config chosen_agent "
        "chosen_options load_plan_build_config reset_plan_build_config"
    ),
    "pull_requests": "ForgeKind PullRequestSettings",
    "user": "UserConfig load_user_config",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
