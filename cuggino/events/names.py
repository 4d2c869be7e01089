"""The public names of the events by module, so that a module is imported on first use."""

from collections.abc import Mapping
from types import MappingProxyType

NAMES: Mapping[str, str] = MappingProxyType(
    {
        "agent": "LlmAgentEvent is_llm_agent_event",
        "message": (
            "AgentMessage MessageDelta PingEvent SystemMessage Thinking UsageUpdate UserMessage"
        ),
        "tool": "GuardDenied ToolCall ToolResult",
        "session": ("McpServerFailed RateLimited SessionEnded SessionOutcome Steered"),
        "base": "Event UnknownEvent kind_of",
        "control": (
            "ContinueAsked ControlEvent ControlIgnored PauseAsked PauseEnded RunPaused SkipAsked "
            "SteerAsked StopAsked is_control_event"
        ),
        "deliver": (
            "DeliverablesListed DeliverableState DeliverableStatusChanged DeliverEnded "
            "DeliverEvent DeliverExit DeliverInstruction DeliverOutcome DeliverSessionEnded "
            "DeliverSessionRetry DeliverSessionStarted DeliverStatus DeliverStreamEvent "
            "DeliverWarning is_deliver_event"
        ),
        "forge": (
            "HookFailed WatchForgeWaiting WatchIssueAnswered WatchIssueReported WatchItemImported "
            "WatchProposal WatchProposed WatchReportFailed WatchSourceFailed"
        ),
        "journal": (
            "JournalEvent RunContinued RunEnded RunStarted StageFinished StageStarted "
            "is_journal_event"
        ),
        "loop": (
            "ImplementingStart IterationStart LoopPhaseEvent PlanningStart ReviewingStart "
            "is_loop_phase_event"
        ),
        "plan": "PlanWritten SpecsChanged TaskLimitReached",
        "command": (
            "CheckCommandOutput CheckCommandStarted CommandOutputEvent CommandStartedEvent "
            "SetupCommandOutput SetupCommandStarted is_command_output_event"
        ),
        "commit": "CommitFailed CommitPerformed PushFailed PushPerformed",
        "gate": "ApprovalBlocked GateChanged",
        "loop_end": (
            "LoopApproved LoopMaxIterations LoopSpecIssue LoopStalled LoopTerminalEvent "
            "is_loop_terminal_event"
        ),
        "loop_event": "LoopEvent",
        "marker": (
            "LlmMarkerEvent LlmTerminalMarkerEvent is_llm_marker_event is_llm_terminal_marker_event"
        ),
        "planning_markers": "PlanComplete SpecIssue",
        "implementing_markers": "Done NoMoreWork Note Progress",
        "reviewing_markers": "Approved RequestChanges ToBeDiscussed",
        "plan_build": (
            "BuildVerified CommitSeen DoneFileRejected FileTouched JobBlocked JobsCounted "
            "JobVerified PlanBuildEnded PlanBuildEvent PlanBuildExit PlanBuildIterationEnded "
            "PlanBuildPhase PlanBuildPhaseStarted PlanBuildSessionEnded PlanBuildSessionRetry "
            "PlanBuildStreamEvent PlanBuildWarning SubAgentEnded SubAgentStarted "
            "VerificationEnded is_plan_build_event"
        ),
        "result": "KnownState RunOutcome RunResult RunState is_resumable",
        "resumed": "RunResumed",
        "supervision": "SupervisionEvent is_supervision_event",
        "retry": "AgentFellBack AgentRetry QuotaLifted QuotaWaiting",
        "spending": "BudgetKind BudgetWarning StageCost",
        "stall": "AgentNudged AgentReplaced ContradictoryMarkers NoProgress",
        "role": "ProtectedChanged RoleViolated SandboxChosen",
        "snapshot": "SnapshotFailed SnapshotTaken",
        "repository": "DirtyFilesCommitted DirtyFilesKept HistoryRewritten",
        "usage": "Usage",
        "watch": (
            "ClusterWorker NotificationFailed WatchAuditEnded WatchAuditFailed "
            "WatchAuditInterrupted WatchAuditStarted WatchBacklogWaiting WatchCandidate "
            "WatchDiskFull WatchEvent WatchFollowDelayed WatchFollowHealed WatchFollowed "
            "WatchItemCompleted "
            "WatchItemHeld WatchItemParked WatchItemRetained WatchItemRetry WatchItemSkipped "
            "WatchLanded WatchLanding WatchLoopEvent WatchPlaceGone WatchPlaced WatchPolling "
            "WatchProcessingItem WatchSentBack WatchSlotPrepared WatchSlotsChanged "
            "WatchSpecIssueWaiting WatchTbdItemFound WatchTrunkMoved WatchWorkKept WatchWorkers "
            "is_watch_loop_event"
        ),
        "wire": "dump_event dump_event_bytes event_type event_types parse_event",
    }
)
"""The public names of `cuggino.events` by module, in the order of `event_types`."""

HOMES: Mapping[str, str] = MappingProxyType(
    {name: module for module, names in NAMES.items() for name in names.split()}
)
"""The module of each public name."""
