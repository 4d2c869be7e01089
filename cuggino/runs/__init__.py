"""Recorded runs of a project: list them, find one by its id, replay its events.

    for run in Runs("my-project").all():
        if isinstance(run, RecordedRun):
            print(run.short_id, run.state)

    cuggino.run(replay(Runs("my-project").find("0193b2c1").path, speed=10), print)

`Runtime.runs` and `Runtime.replay` are the same as Observables.
"""

from cuggino.domain import (
    BudgetLevel,
    cost_of,
    cost_unknown,
    item_name,
    money,
    title_of,
    window_text,
)
from cuggino.events import RunOutcome
from cuggino.runs.as_json import run_details_json, run_json, unreadable_json
from cuggino.runs.digests import DIGESTED, DigestFold, digest_of, past_digests
from cuggino.runs.following import follow
from cuggino.runs.listing import (
    RecordedRun,
    Runs,
    UnreadableRun,
    resume_command,
    short_ids,
    working_process,
)
from cuggino.runs.pace import Pace, read_pace
from cuggino.runs.state import (
    DeliverableCourse,
    DeliveredSession,
    Delivery,
    ItemEnd,
    ItemPlace,
    Question,
    RunningTool,
    RunState,
    RunStatus,
    StageTry,
    StateWord,
    Wait,
    with_state,
)
from cuggino.runs.stats import RunStats, StatsGroup, StatsRow, run_stats, stats_json
from cuggino.runs.status import (
    LastRun,
    ProjectState,
    ProjectStatus,
    Waiting,
    last_journal,
    project_status,
    status_json,
    waiting_runs,
    windows_json,
)
from cuggino.runs.statuses import GrowingRun, follow_statuses
from cuggino.runs.streaming import TimedEvent, list_runs, replay, replay_timed
from cuggino.runs.tails import JournalNews, RunTail, live_journals
from cuggino.runs.tools import tool_target

__all__ = [
    "DIGESTED",
    "BudgetLevel",
    "DeliverableCourse",
    "DeliveredSession",
    "Delivery",
    "DigestFold",
    "GrowingRun",
    "ItemEnd",
    "ItemPlace",
    "JournalNews",
    "LastRun",
    "Pace",
    "ProjectState",
    "ProjectStatus",
    "Question",
    "RecordedRun",
    "RunOutcome",
    "RunState",
    "RunStats",
    "RunStatus",
    "RunTail",
    "RunningTool",
    "Runs",
    "StageTry",
    "StateWord",
    "StatsGroup",
    "StatsRow",
    "TimedEvent",
    "UnreadableRun",
    "Wait",
    "Waiting",
    "cost_of",
    "cost_unknown",
    "digest_of",
    "follow",
    "follow_statuses",
    "item_name",
    "last_journal",
    "list_runs",
    "live_journals",
    "money",
    "past_digests",
    "project_status",
    "read_pace",
    "replay",
    "replay_timed",
    "resume_command",
    "run_details_json",
    "run_json",
    "run_stats",
    "short_ids",
    "stats_json",
    "status_json",
    "title_of",
    "tool_target",
    "unreadable_json",
    "waiting_runs",
    "window_text",
    "windows_json",
    "with_state",
    "working_process",
]
