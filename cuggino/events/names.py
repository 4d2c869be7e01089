"""The public names of the events by module, so that a module is imported on first use."""

from collections.abc import Mapping
from types import MappingProxyType

NAMES: Mapping[str, str] = MappingProxyType(
    {
        "agent": (
            "AgentMessage GuardDenied LlmAgentEvent McpServerFailed MessageDelta PingEvent "
            "RateLimited SessionEnded SessionOutcome SystemMessage Thinking ToolCall ToolResult "
            "Steered UsageUpdate UserMessage is_llm_agent_event"
        ),
        "base": "Event UnknownEvent",
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
            "ApprovalBlocked CheckCommandOutput CheckCommandStarted CommandOutputEvent "
            "CommandStartedEvent CommitFailed CommitPerformed GateChanged "
            "ImplementingStart IterationStart LoopApproved LoopEvent LoopMaxIterations "
            "LoopPhaseEvent LoopSpecIssue LoopStalled LoopTerminalEvent PlanWritten PlanningStart "
            "PushFailed PushPerformed ReviewingStart SetupCommandOutput SetupCommandStarted "
            "SpecsChanged TaskLimitReached "
            "is_command_output_event is_loop_phase_event is_loop_terminal_event"
        ),
        "marker": (
            "Approved Done LlmMarkerEvent LlmTerminalMarkerEvent NoMoreWork Note PlanComplete "
            "Progress RequestChanges SpecIssue ToBeDiscussed is_llm_marker_event "
            "is_llm_terminal_marker_event"
        ),
        "plan_build": (
            "BuildVerified CommitSeen DoneFileRejected FileTouched JobBlocked JobsCounted "
            "JobVerified PlanBuildEnded PlanBuildEvent PlanBuildExit PlanBuildIterationEnded "
            "PlanBuildPhase PlanBuildPhaseStarted PlanBuildSessionEnded PlanBuildSessionRetry "
            "PlanBuildStreamEvent PlanBuildWarning SubAgentEnded SubAgentStarted "
            "VerificationEnded is_plan_build_event"
        ),
        "result": "KnownState RunOutcome RunResult RunState is_resumable",
        "resumed": "RunResumed SupervisionEvent",
        "supervision": (
            "AgentFellBack AgentNudged AgentReplaced AgentRetry BudgetKind BudgetWarning "
            "ContradictoryMarkers DirtyFilesCommitted DirtyFilesKept HistoryRewritten NoProgress "
            "ProtectedChanged QuotaLifted QuotaWaiting "
            "RoleViolated SandboxChosen SnapshotFailed SnapshotTaken StageCost is_supervision_event"
        ),
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
"""The public names of `cuggino.events` by module."""

HOMES: Mapping[str, str] = MappingProxyType(
    {name: module for module, names in NAMES.items() for name in names.split()}
)
"""The module of each public name."""
