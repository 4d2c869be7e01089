"""The link of a live page that was started into a pipe."""

from __future__ import annotations

import json
from pathlib import Path


def link_in(line: str) -> str | None:
    """Return the link in the file that a printed line names; None for another line."""
    if not line.startswith("Serving http"):
        return None
    named = line.rpartition("; the link is in ")[2].strip()
    return str(json.loads(Path(named).read_text())["url"])
