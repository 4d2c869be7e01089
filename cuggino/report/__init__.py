"""HTML reports: a run's journal folded into a `RunReport` and rendered as one page.

`RunFold` folds a journal entry by entry, so that the live page can keep one for each open run;
`render_part` renders a part of its `RunReport` with the templates and the style sheet that reports
and the live page share. `report_run` reports a run of a project, a watch with all its items.
"""

from cuggino._lazy import lazy

NAMES = {
    "as_json": "report_json",
    "fold": "OF_AGENTS Changed RunFold build_report",
    "model": (
        "CommitDiff Diffs FileChange Plan PlanTask ReportCommit Row RunReport StageTry Transcript "
        "WatchedItem"
    ),
    "page": "GENERATOR render_report",
    "night": "Decision NightItem NightReport build_night",
    "night_page": "render_night",
    "project": "RunPage commit_diffs load_report report_run slot_of worker_of",
    "prose": "diff markdown",
    "rendering": "View environment render_part stylesheet view",
    "times": "zone_at",
    "wording": "often",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
