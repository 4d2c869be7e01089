"""Providers: a CLI or an SDK in, `LlmAgentEvent`s out."""

from cuggino._lazy import lazy

NAMES = {
    "base": (
        "AgentLike Capabilities DelegatingAgent InteractiveOptions LlmAgent LoginCheck Role "
        "SpawnOptions adopt is_guarded"
    ),
    "base.guard": "find_bash",
    "choosing.registry": "AgentEntry agent_entries configured_agent is_import_path make_agent",
    "choosing.routing": "Candidate RoutedAgent",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
