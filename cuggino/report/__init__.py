"""HTML reports: a run's journal folded into a `RunReport` and rendered as one page.

Pure: journal entries in, a string out. The only files read are the page's script and style, and the
chart library.
"""

from __future__ import annotations

from cuggino.report.fold import build_report
from cuggino.report.model import DiffStats, FileChange, RunReport
from cuggino.report.numstat import NUMSTAT, parse_numstat
from cuggino.report.page import GENERATOR, render_report
from cuggino.report.project import RunPage, report_run
from cuggino.report.times import zone_at

__all__ = [
    "GENERATOR",
    "NUMSTAT",
    "DiffStats",
    "FileChange",
    "RunPage",
    "RunReport",
    "build_report",
    "parse_numstat",
    "render_report",
    "report_run",
    "zone_at",
]
