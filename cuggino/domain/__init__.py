"""Pure rules: deliverables, jobs, findings, spending, termination, order of backlog and landing.

Time is always an argument.
"""

from cuggino._lazy import lazy

NAMES = {
    "attempts": "Attempts hits_every_item is_full_disk needs_login",
    "caution": "most_cautious",
    "ci_files": "touches_ci",
    "deliverable_tools": (
        "DeliverableChange LISTED_BY_DEFAULT TOOLS TOOLS_OF TOOL_SERVER ToolAnswer ToolName "
        "agent_tool perform_tool tool_named"
    ),
    "deliverables": (
        "DELIVERABLE_STATUSES Deliverable DeliverableStatus Deliverables Verification"
    ),
    "fallback": (
        "AgentCooldown Roster cooldown_end fallback_reason recorded_cooldowns when_to_fall_back"
    ),
    "findings": "Finding ReviewLedger files_named finding_as_markdown parse_findings",
    "front_matter": (
        "after_of held_of is_marked_imported needs_of quoted_value split_front_matter with_held"
    ),
    "gate_files": (
        "PathChange PathState begins_test files_of_command has_test_name is_named is_test_file "
        "path_changes skips_tests"
    ),
    "job_verification": (
        "CommandCheck CommandRun FailureCounts JobFacts VerificationResult failure_note "
        "parse_check_answer parse_job_answer with_facts with_findings"
    ),
    "jobs": "BLOCKED IN_PROGRESS Jobs jobs_of",
    "landing_queue": "LandingQueue",
    "progress": "ProgressWatch",
    "quota": "QUOTA_SCHEDULE is_quota_answer is_quota_text parse_reset",
    "ready": "ReadyOrder ready_order",
    "repetition": "RepetitionWatch",
    "run_summary": "RunSummary",
    "schedule": "Duration Schedule parse_duration",
    "slot_limit": "SlotLimit is_overload",
    "spending": "Budget BudgetLevel SESSION_BEGINS Spending begins_session budget_exceeded",
    "termination": "DeliverProgress Terminate decide_delivery",
    "titles": "task_titles title_of without_file",
    "untrusted": (
        "LONGEST_FOREIGN cleaned defused limited safe_title shown_to_agents without_markers"
    ),
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
