"""Recorded runs of a project: list them, find one by its id, replay its events.

    for run in Runs("my-project").all():
        print(run.short_id, run.state)

    cuggino.run(replay(Runs("my-project").find("0193b2c1").path, speed=10), print)

`Runtime.runs` and `Runtime.replay` are the same as Observables.
"""

from cuggino._lazy import lazy

NAMES = {
    "activity": "Activity ActivityState ItemPlace RunningTool Wait tool_target",
    "as_json": "run_details_json run_json unreadable_json",
    "following": "follow",
    "listing": "RecordedRun Runs RunStatus UnreadableRun working_process",
    "pace": "Pace read_pace",
    "stages": "RecordedStage recorded_stages",
    "status": "LastRun ProjectState ProjectStatus Waiting last_journal project_status status_json",
    "streaming": "list_runs replay TimedEvent replay_timed",
    "tails": "JournalNews RunTail live_journals",
    "cuggino.domain": "RunSummary without_file",
    "cuggino.events": "RunOutcome",
    "cuggino.storage.journal": "DeliverableCourse DeliveredSession Delivery",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
