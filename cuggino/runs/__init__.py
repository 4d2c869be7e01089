"""Recorded runs of a project: list them, find one by its id, replay its events.

    for run in Runs("my-project").all():
        print(run.short_id, run.state)

    cuggino.run(replay(Runs("my-project").find("0193b2c1").path, speed=10), print)

`Runtime.runs` and `Runtime.replay` are the same as Observables.
"""

from cuggino.domain import RunSummary
from cuggino.events import RunOutcome
from cuggino.runs.as_json import run_details_json, run_json, unreadable_json
from cuggino.runs.listing import RecordedRun, Runs, RunStatus, UnreadableRun, list_runs
from cuggino.runs.replay import replay
from cuggino.runs.stages import RecordedStage, recorded_stages
from cuggino.storage.journal import DeliverableCourse, DeliveredSession, Delivery

__all__ = [
    "DeliverableCourse",
    "DeliveredSession",
    "Delivery",
    "RecordedRun",
    "RecordedStage",
    "RunOutcome",
    "RunStatus",
    "RunSummary",
    "Runs",
    "UnreadableRun",
    "list_runs",
    "recorded_stages",
    "replay",
    "run_details_json",
    "run_json",
    "unreadable_json",
]
