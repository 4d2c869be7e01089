"""Public names of `cuggino.report`; written by `python -m tests.stubs`."""

from cuggino.report.fold import (
    build_report,
)
from cuggino.report.model import (
    DiffStats,
    FileChange,
    RunReport,
)
from cuggino.report.numstat import (
    NUMSTAT,
    parse_numstat,
)
from cuggino.report.page import (
    GENERATOR,
    render_report,
)
from cuggino.report.project import (
    RunPage,
    report_run,
)
from cuggino.report.times import (
    zone_at,
)

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
