"""Pure rules: deliverables, jobs, findings, spending, termination, order of backlog and landing.

Time is always an argument.
"""

from cuggino.domain.attempts import Attempts, hits_every_item, is_full_disk, needs_login
from cuggino.domain.caution import most_cautious
from cuggino.domain.ci_files import touches_ci
from cuggino.domain.deliverable_tools import (
    LISTED_BY_DEFAULT,
    TOOL_SERVER,
    TOOLS,
    TOOLS_OF,
    DeliverableChange,
    ToolAnswer,
    ToolName,
    agent_tool,
    perform_tool,
    tool_named,
)
from cuggino.domain.deliverables import (
    DELIVERABLE_STATUSES,
    Deliverable,
    Deliverables,
    DeliverableStatus,
    Verification,
)
from cuggino.domain.fallback import (
    AgentCooldown,
    Roster,
    cooldown_end,
    fallback_reason,
    recorded_cooldowns,
    when_to_fall_back,
)
from cuggino.domain.findings import Finding, finding_as_markdown, parse_findings
from cuggino.domain.front_matter import (
    after_of,
    held_of,
    is_marked_imported,
    needs_of,
    quoted_value,
    split_front_matter,
    with_held,
)
from cuggino.domain.job_verification import (
    CommandCheck,
    CommandRun,
    FailureCounts,
    JobFacts,
    VerificationResult,
    failure_note,
    parse_check_answer,
    parse_job_answer,
    with_facts,
    with_findings,
)
from cuggino.domain.jobs import BLOCKED, IN_PROGRESS, MOST_JOBS, PARTIAL, Job, Jobs
from cuggino.domain.landing_queue import LandingQueue
from cuggino.domain.money import HasCost, cost_of, money
from cuggino.domain.prices import TOKEN_WEIGHTS, Pricing, Rates, TokenCount, count_tokens, rates_of
from cuggino.domain.progress import ProgressWatch
from cuggino.domain.project_paths import (
    PathChange,
    PathState,
    is_cache,
    is_test_file,
    path_changes,
)
from cuggino.domain.quota import QUOTA_SCHEDULE, is_quota_answer, is_quota_text, parse_reset
from cuggino.domain.ready import ReadyOrder, ready_order
from cuggino.domain.repetition import RepetitionWatch
from cuggino.domain.review_ledger import (
    Judgment,
    LedgerEntry,
    NamedFiles,
    ReviewLedger,
    files_named,
    judged,
)
from cuggino.domain.run_summary import RunSummary
from cuggino.domain.schedule import Duration, Schedule, parse_duration
from cuggino.domain.slot_limit import SlotLimit, is_overload
from cuggino.domain.spending import (
    PRICE_HINT,
    SESSION_BEGINS,
    Budget,
    BudgetLevel,
    Spending,
    begins_session,
    budget_exceeded,
    budget_unenforceable,
    cost_unknown,
)
from cuggino.domain.termination import DeliverProgress, Terminate, decide_delivery
from cuggino.domain.titles import task_titles, title_of, unticked_tasks, without_file
from cuggino.domain.untrusted import (
    LONGEST_FOREIGN,
    cleaned,
    defused,
    limited,
    safe_title,
    shown_to_agents,
    without_markers,
)

__all__ = [
    "BLOCKED",
    "DELIVERABLE_STATUSES",
    "IN_PROGRESS",
    "LISTED_BY_DEFAULT",
    "LONGEST_FOREIGN",
    "MOST_JOBS",
    "PARTIAL",
    "PRICE_HINT",
    "QUOTA_SCHEDULE",
    "SESSION_BEGINS",
    "TOKEN_WEIGHTS",
    "TOOLS",
    "TOOLS_OF",
    "TOOL_SERVER",
    "AgentCooldown",
    "Attempts",
    "Budget",
    "BudgetLevel",
    "CommandCheck",
    "CommandRun",
    "DeliverProgress",
    "Deliverable",
    "DeliverableChange",
    "DeliverableStatus",
    "Deliverables",
    "Duration",
    "FailureCounts",
    "Finding",
    "HasCost",
    "Job",
    "JobFacts",
    "Jobs",
    "Judgment",
    "LandingQueue",
    "LedgerEntry",
    "NamedFiles",
    "PathChange",
    "PathState",
    "Pricing",
    "ProgressWatch",
    "Rates",
    "ReadyOrder",
    "RepetitionWatch",
    "ReviewLedger",
    "Roster",
    "RunSummary",
    "Schedule",
    "SlotLimit",
    "Spending",
    "Terminate",
    "TokenCount",
    "ToolAnswer",
    "ToolName",
    "Verification",
    "VerificationResult",
    "after_of",
    "agent_tool",
    "begins_session",
    "budget_exceeded",
    "budget_unenforceable",
    "cleaned",
    "cooldown_end",
    "cost_of",
    "cost_unknown",
    "count_tokens",
    "decide_delivery",
    "defused",
    "failure_note",
    "fallback_reason",
    "files_named",
    "finding_as_markdown",
    "held_of",
    "hits_every_item",
    "is_cache",
    "is_full_disk",
    "is_marked_imported",
    "is_overload",
    "is_quota_answer",
    "is_quota_text",
    "is_test_file",
    "judged",
    "limited",
    "money",
    "most_cautious",
    "needs_login",
    "needs_of",
    "parse_check_answer",
    "parse_duration",
    "parse_findings",
    "parse_job_answer",
    "parse_reset",
    "path_changes",
    "perform_tool",
    "quoted_value",
    "rates_of",
    "ready_order",
    "recorded_cooldowns",
    "safe_title",
    "shown_to_agents",
    "split_front_matter",
    "task_titles",
    "title_of",
    "tool_named",
    "touches_ci",
    "unticked_tasks",
    "when_to_fall_back",
    "with_facts",
    "with_findings",
    "with_held",
    "without_file",
    "without_markers",
]
