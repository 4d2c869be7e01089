"""What is said: every event of cuggino, by category.

An event's base class is its category, and each category has a guard (`is_llm_agent_event`, ...).
On the wire an event is one JSON object with its class name under `_tag`; `dump_event` writes that
line and `parse_event` reads it.
"""

from __future__ import annotations

from typing import TypeAlias

from cuggino.events.agent import (
    AgentMessage,
    LlmAgentEvent,
    PingEvent,
    RateLimited,
    SessionEnded,
    SessionOutcome,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from cuggino.events.base import Event, UnknownEvent
from cuggino.events.guards import (
    is_command_output_event,
    is_llm_agent_event,
    is_llm_marker_event,
    is_llm_terminal_marker_event,
    is_loop_event,
    is_loop_phase_event,
    is_loop_terminal_event,
    is_printable_event,
    is_watch_event,
    is_watch_loop_event,
)
from cuggino.events.loop import (
    ApprovalBlocked,
    CheckCommandOutput,
    CommandOutputEvent,
    CommitFailed,
    CommitPerformed,
    ImplementingStart,
    IterationStart,
    LoopApproved,
    LoopMaxIterations,
    LoopPhaseEvent,
    LoopSpecIssue,
    LoopTerminalEvent,
    PlanningStart,
    PushFailed,
    PushPerformed,
    ReviewingStart,
    SetupCommandOutput,
    TaskLimitReached,
)
from cuggino.events.marker import (
    Approved,
    Done,
    LlmMarkerEvent,
    LlmTerminalMarkerEvent,
    NoMoreWork,
    Note,
    PlanComplete,
    Progress,
    RequestChanges,
    SpecIssue,
    ToBeDiscussed,
)
from cuggino.events.watch import (
    NotificationFailed,
    WatchAuditEnded,
    WatchAuditFailed,
    WatchAuditInterrupted,
    WatchAuditStarted,
    WatchBacklogWaiting,
    WatchItemCompleted,
    WatchItemParked,
    WatchItemRetained,
    WatchItemRetry,
    WatchItemSkipped,
    WatchLoopEvent,
    WatchPolling,
    WatchProcessingItem,
    WatchSpecIssueWaiting,
    WatchTbdItemFound,
)
from cuggino.events.wire import dump_event, event_types, parse_event

LoopEvent: TypeAlias = LlmAgentEvent | LlmMarkerEvent | LoopPhaseEvent
"""What the coding loop emits (CUG-024)."""

WatchEvent: TypeAlias = LoopEvent | WatchLoopEvent
"""What the watch emits."""

PrintableEvent: TypeAlias = LoopEvent | WatchLoopEvent
"""What a formatter must know how to show."""

__all__ = [
    "AgentMessage",
    "ApprovalBlocked",
    "Approved",
    "CheckCommandOutput",
    "CommandOutputEvent",
    "CommitFailed",
    "CommitPerformed",
    "Done",
    "Event",
    "ImplementingStart",
    "IterationStart",
    "LlmAgentEvent",
    "LlmMarkerEvent",
    "LlmTerminalMarkerEvent",
    "LoopApproved",
    "LoopEvent",
    "LoopMaxIterations",
    "LoopPhaseEvent",
    "LoopSpecIssue",
    "LoopTerminalEvent",
    "NoMoreWork",
    "Note",
    "NotificationFailed",
    "PingEvent",
    "PlanComplete",
    "PlanningStart",
    "PrintableEvent",
    "Progress",
    "PushFailed",
    "PushPerformed",
    "RateLimited",
    "RequestChanges",
    "ReviewingStart",
    "SessionEnded",
    "SessionOutcome",
    "SetupCommandOutput",
    "SpecIssue",
    "SystemMessage",
    "TaskLimitReached",
    "Thinking",
    "ToBeDiscussed",
    "ToolCall",
    "ToolResult",
    "UnknownEvent",
    "Usage",
    "UserMessage",
    "WatchAuditEnded",
    "WatchAuditFailed",
    "WatchAuditInterrupted",
    "WatchAuditStarted",
    "WatchBacklogWaiting",
    "WatchEvent",
    "WatchItemCompleted",
    "WatchItemParked",
    "WatchItemRetained",
    "WatchItemRetry",
    "WatchItemSkipped",
    "WatchLoopEvent",
    "WatchPolling",
    "WatchProcessingItem",
    "WatchSpecIssueWaiting",
    "WatchTbdItemFound",
    "dump_event",
    "event_types",
    "is_command_output_event",
    "is_llm_agent_event",
    "is_llm_marker_event",
    "is_llm_terminal_marker_event",
    "is_loop_event",
    "is_loop_phase_event",
    "is_loop_terminal_event",
    "is_printable_event",
    "is_watch_event",
    "is_watch_loop_event",
    "parse_event",
]
