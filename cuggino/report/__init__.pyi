"""Public names of `cuggino.report`; written by `python -m tests.stubs`."""

from cuggino.report.as_json import (
    report_json,
)
from cuggino.report.diffs import (
    parse_diffs,
)
from cuggino.report.fold import (
    Changed,
    RunFold,
    build_report,
)
from cuggino.report.model import (
    CommitDiff,
    Diffs,
    FileChange,
    Plan,
    PlanTask,
    ReportCommit,
    Row,
    RunReport,
    StageTry,
    Transcript,
    WatchedItem,
)
from cuggino.report.night import (
    Decision,
    NightItem,
    NightReport,
    build_night,
)
from cuggino.report.night_page import (
    render_night,
)
from cuggino.report.page import (
    GENERATOR,
    render_report,
)
from cuggino.report.project import (
    RunPage,
    commit_diffs,
    load_report,
    report_run,
    slot_of,
    worker_of,
)
from cuggino.report.prose import (
    diff,
    markdown,
)
from cuggino.report.rendering import (
    PARTS,
    View,
    environment,
    render_part,
    render_row,
    render_stage,
    stylesheet,
    view,
)
from cuggino.report.times import (
    zone_at,
)
from cuggino.report.titles import (
    title_of,
)
from cuggino.report.wording import (
    often,
)

__all__ = [
    "GENERATOR",
    "PARTS",
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
    "often",
    "parse_diffs",
    "render_night",
    "render_part",
    "render_report",
    "render_row",
    "render_stage",
    "report_json",
    "report_run",
    "slot_of",
    "stylesheet",
    "title_of",
    "view",
    "worker_of",
    "zone_at",
]
