"""Public names of `cuggino.runs`; written by `python -m tests.stubs`."""

from cuggino.domain import (
    RunSummary,
)
from cuggino.events import (
    RunOutcome,
)
from cuggino.runs.activity import (
    Activity,
    ActivityState,
    RunningTool,
    Wait,
    plan_titles,
    tool_target,
)
from cuggino.runs.as_json import (
    run_details_json,
    run_json,
    unreadable_json,
)
from cuggino.runs.listing import (
    RecordedRun,
    Runs,
    RunStatus,
    UnreadableRun,
    working_process,
)
from cuggino.runs.stages import (
    RecordedStage,
    recorded_stages,
)
from cuggino.runs.streaming import (
    TimedEvent,
    list_runs,
    replay,
    replay_timed,
)
from cuggino.storage.journal import (
    DeliverableCourse,
    DeliveredSession,
    Delivery,
)

__all__ = [
    "Activity",
    "ActivityState",
    "DeliverableCourse",
    "DeliveredSession",
    "Delivery",
    "RecordedRun",
    "RecordedStage",
    "RunOutcome",
    "RunStatus",
    "RunSummary",
    "RunningTool",
    "Runs",
    "TimedEvent",
    "UnreadableRun",
    "Wait",
    "list_runs",
    "plan_titles",
    "recorded_stages",
    "replay",
    "replay_timed",
    "run_details_json",
    "run_json",
    "tool_target",
    "unreadable_json",
    "working_process",
]
