"""HTML reports: a run's journal folded into a `RunReport` and rendered as one page.

Pure: journal entries in, a string out. The only files read are the page's script and style, and the
chart library.
"""

from cuggino._lazy import lazy

NAMES = {
    "fold": "build_report",
    "model": "DiffStats FileChange RunReport",
    "numstat": "NUMSTAT parse_numstat",
    "page": "GENERATOR render_report",
    "project": "RunPage report_run",
    "times": "zone_at",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
