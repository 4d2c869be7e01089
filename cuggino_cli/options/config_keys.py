"""The keys of `.cuggino.json` by topic, with the commands that use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

_CODING = ("run", "watch")
_LOOPS = (*_CODING, "deliver", "loop")
_WATCH = ("watch",)

GROUPS: Mapping[str, Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "The work": {
            "specs_path": (*_CODING, "plan"),
            "max_iterations": _CODING,
            "max_tasks_per_plan": _CODING,
            "setup_command": _CODING,
            "setup_strict": _CODING,
            "check_command": _CODING,
            "gate": _CODING,
            "command_timeout": (*_CODING, "loop"),
            "commit": _CODING,
            "commit_timeout": (*_CODING, "loop"),
            "push": _CODING,
        },
        "Agents": {
            "agent": (*_LOOPS, "plan"),
            "agent_path": (*_LOOPS, "plan"),
            "model": _LOOPS,
            "agents": _LOOPS,
            "fallback": _LOOPS,
        },
        "Limits, waits and retries": {
            "budget": _LOOPS,
            "max_tokens": _LOOPS,
            "max_duration": _LOOPS,
            "wait_for_quota": _LOOPS,
            "max_retries": _LOOPS,
            "idle_timeout": _LOOPS,
            "tool_timeout": _LOOPS,
            "stage_timeout": _LOOPS,
            "progress_patience": _LOOPS,
            "review_patience": (*_CODING, "deliver"),
        },
        "What agents may do": {
            "guard": (*_LOOPS, "plan"),
            "profile": (*_LOOPS, "plan"),
            "allow_commands": (*_LOOPS, "plan"),
            "allow_pkill_targets": (*_LOOPS, "plan"),
            "allow_destructive": (*_LOOPS, "plan"),
            "sandbox": _LOOPS,
            "sandbox_domains": _LOOPS,
        },
        "What is written down": {
            "journal": _LOOPS,
            "journal_days": _LOOPS,
            "journal_runs": _LOOPS,
        },
        "The watch": {
            "audit": _WATCH,
            "settle_seconds": _WATCH,
            "max_attempts": _WATCH,
            "retry_seconds": _WATCH,
            "on_max_iterations": _WATCH,
            "notify": _WATCH,
        },
    }
)
"""Each field of `Config` by group, with the commands that use it."""
