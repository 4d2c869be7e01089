"""Every event of cuggino, by category.

An event's base class is its category, and each category has a guard (`is_llm_agent_event`, ...). On
the wire an event is one JSON object with its class name under `_tag`: `dump_event` writes it,
`parse_event` reads it.
"""

from __future__ import annotations

from types import ModuleType
from typing import TypeAlias

from cuggino.events.agent import (
    AgentMessage as AgentMessage,
    GuardDenied as GuardDenied,
    LlmAgentEvent as LlmAgentEvent,
    MessageDelta as MessageDelta,
    PingEvent as PingEvent,
    RateLimited as RateLimited,
    SessionEnded as SessionEnded,
    SessionOutcome as SessionOutcome,
    SystemMessage as SystemMessage,
    Thinking as Thinking,
    ToolCall as ToolCall,
    ToolResult as ToolResult,
    Usage as Usage,
    UsageUpdate as UsageUpdate,
    UserMessage as UserMessage,
)
from cuggino.events.base import Event as Event, UnknownEvent as UnknownEvent
from cuggino.events.deliver import (
    DeliverablesListed as DeliverablesListed,
    DeliverableState as DeliverableState,
    DeliverableStatusChanged as DeliverableStatusChanged,
    DeliverEnded as DeliverEnded,
    DeliverEvent as DeliverEvent,
    DeliverExit as DeliverExit,
    DeliverInstruction as DeliverInstruction,
    DeliverOutcome as DeliverOutcome,
    DeliverSessionEnded as DeliverSessionEnded,
    DeliverSessionRetry as DeliverSessionRetry,
    DeliverSessionStarted as DeliverSessionStarted,
    DeliverStatus as DeliverStatus,
    DeliverWarning as DeliverWarning,
)
from cuggino.events.guards import (
    is_command_output_event as is_command_output_event,
    is_deliver_event as is_deliver_event,
    is_journal_event as is_journal_event,
    is_llm_agent_event as is_llm_agent_event,
    is_llm_marker_event as is_llm_marker_event,
    is_llm_terminal_marker_event as is_llm_terminal_marker_event,
    is_loop_phase_event as is_loop_phase_event,
    is_loop_terminal_event as is_loop_terminal_event,
    is_plan_build_event as is_plan_build_event,
    is_supervision_event as is_supervision_event,
    is_watch_loop_event as is_watch_loop_event,
)
from cuggino.events.journal import (
    JournalEvent as JournalEvent,
    RunContinued as RunContinued,
    RunEnded as RunEnded,
    RunStarted as RunStarted,
    StageFinished as StageFinished,
    StageStarted as StageStarted,
)
from cuggino.events.loop import (
    ApprovalBlocked as ApprovalBlocked,
    CheckCommandOutput as CheckCommandOutput,
    CommandOutputEvent as CommandOutputEvent,
    CommitFailed as CommitFailed,
    CommitPerformed as CommitPerformed,
    ImplementingStart as ImplementingStart,
    IterationStart as IterationStart,
    LoopApproved as LoopApproved,
    LoopMaxIterations as LoopMaxIterations,
    LoopPhaseEvent as LoopPhaseEvent,
    LoopSpecIssue as LoopSpecIssue,
    LoopStalled as LoopStalled,
    LoopTerminalEvent as LoopTerminalEvent,
    PlanningStart as PlanningStart,
    PushFailed as PushFailed,
    PushPerformed as PushPerformed,
    ReviewingStart as ReviewingStart,
    SetupCommandOutput as SetupCommandOutput,
    TaskLimitReached as TaskLimitReached,
)
from cuggino.events.marker import (
    Approved as Approved,
    Done as Done,
    LlmMarkerEvent as LlmMarkerEvent,
    LlmTerminalMarkerEvent as LlmTerminalMarkerEvent,
    NoMoreWork as NoMoreWork,
    Note as Note,
    PlanComplete as PlanComplete,
    Progress as Progress,
    RequestChanges as RequestChanges,
    SpecIssue as SpecIssue,
    ToBeDiscussed as ToBeDiscussed,
)
from cuggino.events.plan_build import (
    BuildVerified as BuildVerified,
    CommitSeen as CommitSeen,
    DoneFileRejected as DoneFileRejected,
    FileTouched as FileTouched,
    JobBlocked as JobBlocked,
    JobsCounted as JobsCounted,
    JobVerified as JobVerified,
    PlanBuildEnded as PlanBuildEnded,
    PlanBuildEvent as PlanBuildEvent,
    PlanBuildExit as PlanBuildExit,
    PlanBuildIterationEnded as PlanBuildIterationEnded,
    PlanBuildPhase as PlanBuildPhase,
    PlanBuildPhaseStarted as PlanBuildPhaseStarted,
    PlanBuildSessionEnded as PlanBuildSessionEnded,
    PlanBuildSessionRetry as PlanBuildSessionRetry,
    PlanBuildWarning as PlanBuildWarning,
    SubAgentEnded as SubAgentEnded,
    SubAgentStarted as SubAgentStarted,
    VerificationEnded as VerificationEnded,
)
from cuggino.events.result import (
    KnownState as KnownState,
    RunOutcome as RunOutcome,
    RunResult as RunResult,
    RunState as RunState,
    is_resumable as is_resumable,
)
from cuggino.events.supervision import (
    AgentFellBack as AgentFellBack,
    AgentNudged as AgentNudged,
    AgentReplaced as AgentReplaced,
    AgentRetry as AgentRetry,
    BudgetKind as BudgetKind,
    BudgetWarning as BudgetWarning,
    NoProgress as NoProgress,
    QuotaLifted as QuotaLifted,
    QuotaWaiting as QuotaWaiting,
    RunResumed as RunResumed,
    StageCost as StageCost,
    SupervisionEvent as SupervisionEvent,
)
from cuggino.events.watch import (
    NotificationFailed as NotificationFailed,
    WatchAuditEnded as WatchAuditEnded,
    WatchAuditFailed as WatchAuditFailed,
    WatchAuditInterrupted as WatchAuditInterrupted,
    WatchAuditStarted as WatchAuditStarted,
    WatchBacklogWaiting as WatchBacklogWaiting,
    WatchItemCompleted as WatchItemCompleted,
    WatchItemParked as WatchItemParked,
    WatchItemRetained as WatchItemRetained,
    WatchItemRetry as WatchItemRetry,
    WatchItemSkipped as WatchItemSkipped,
    WatchLoopEvent as WatchLoopEvent,
    WatchPolling as WatchPolling,
    WatchProcessingItem as WatchProcessingItem,
    WatchSpecIssueWaiting as WatchSpecIssueWaiting,
    WatchTbdItemFound as WatchTbdItemFound,
)
from cuggino.events.wire import (
    dump_event as dump_event,
    dump_event_bytes as dump_event_bytes,
    event_types as event_types,
    parse_event as parse_event,
)

LoopEvent: TypeAlias = LlmAgentEvent | LlmMarkerEvent | LoopPhaseEvent | SupervisionEvent
"""The events of the coding loop (CUG-024)."""

WatchEvent: TypeAlias = LoopEvent | WatchLoopEvent
"""The events of the watch."""

DeliverStreamEvent: TypeAlias = DeliverEvent | LlmAgentEvent | SupervisionEvent
"""The events of the deliverables loop."""

PlanBuildStreamEvent: TypeAlias = PlanBuildEvent | LlmAgentEvent | SupervisionEvent
"""The events of the plan/build loop."""

__all__ = sorted(
    name
    for name, value in globals().items()
    if name[0] != "_" and name not in ("annotations", "ModuleType", "TypeAlias")
    if not isinstance(value, ModuleType)
)
