"""A page about a run: its journal folded into a `RunReport`, and that rendered as HTML.

Pure: entries of a journal in, one string out. Nothing is read but the page's own script and
style, and the chart library.
"""

from __future__ import annotations

from cuggino.report.fold import build_report
from cuggino.report.model import DiffStats, FileChange, RunReport
from cuggino.report.numstat import NUMSTAT, parse_numstat
from cuggino.report.page import GENERATOR, render_report
from cuggino.report.times import zone_at

__all__ = [
    "GENERATOR",
    "NUMSTAT",
    "DiffStats",
    "FileChange",
    "RunReport",
    "build_report",
    "parse_numstat",
    "render_report",
    "zone_at",
]
