"""HTML reports: a run's journal folded into a `RunReport` and rendered as one page.

`RunFold` folds a journal entry by entry, so that the live page can keep one for each open run;
`render_part` renders a part of its `RunReport` with the templates and the style sheet that reports
and the live page share. `report_run` reports a run of a project, a watch with all its items.
"""

from cuggino.report.as_json import report_json
from cuggino.report.decisions import text_or_problem, without_title
from cuggino.report.fold import OF_AGENTS, Changed, RunFold, build_report
from cuggino.report.model import (
    CommitDiff,
    Decision,
    Diffs,
    FileChange,
    Plan,
    PlanTask,
    ReportCommit,
    Row,
    RunReport,
    Transcript,
)
from cuggino.report.night import NightItem, NightReport, build_night
from cuggino.report.night_page import render_night
from cuggino.report.page import GENERATOR, render_report
from cuggino.report.project import (
    RunPage,
    commit_diffs,
    load_report,
    report_run,
    slot_of,
    watch_of,
    worker_of,
)
from cuggino.report.prose import diff, markdown
from cuggino.report.rendering import View, environment, render_part, stylesheet, view
from cuggino.report.times import zone_at
from cuggino.runs.state import StageTry, WatchedItem

__all__ = [
    "GENERATOR",
    "OF_AGENTS",
    "Changed",
    "CommitDiff",
    "Decision",
    "Diffs",
    "FileChange",
    "NightItem",
    "NightReport",
    "Plan",
    "PlanTask",
    "ReportCommit",
    "Row",
    "RunFold",
    "RunPage",
    "RunReport",
    "StageTry",
    "Transcript",
    "View",
    "WatchedItem",
    "build_night",
    "build_report",
    "commit_diffs",
    "diff",
    "environment",
    "load_report",
    "markdown",
    "render_night",
    "render_part",
    "render_report",
    "report_json",
    "report_run",
    "slot_of",
    "stylesheet",
    "text_or_problem",
    "view",
    "watch_of",
    "without_title",
    "worker_of",
    "zone_at",
]
