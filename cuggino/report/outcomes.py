"""The outcomes of backlog items and of their landings, in words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cuggino.report.model import Tone
from cuggino.runs.state import ItemState, LandingEnd
from cuggino.runs.words import Tone as SpokenTone

TONES: Final[dict[SpokenTone, Tone]] = {
    "success": "good",
    "caution": "warning",
    "warning": "warning",
    "failure": "bad",
    "problem": "bad",
    "error": "bad",
}
"""The tone of a sentence in a report; the others are `neutral`."""

OUTCOMES: Final[Mapping[ItemState, tuple[str, Tone]]] = MappingProxyType(
    {
        "working": ("at work", "neutral"),
        "landing": ("landing", "neutral"),
        "approved": ("done", "good"),
        "unchecked": ("done, unchecked", "warning"),
        "landed": ("landed", "good"),
        "queued": ("waits to land", "neutral"),
        "proposed": ("proposed", "neutral"),
        "max_iterations": ("iterations used up", "warning"),
        "sent_back": ("sent back", "warning"),
        "spec_issue": ("spec issue", "warning"),
        "held": ("held", "warning"),
        "stalled": ("stalled", "bad"),
        "parked": ("parked", "bad"),
        "edited": ("edited meanwhile", "warning"),
        "failed": ("failed, to be retried", "warning"),
        "skipped": ("skipped", "warning"),
        "interrupted": ("interrupted", "warning"),
        "lost": ("lost", "neutral"),
    }
)
"""The label and tone of each state of an item."""

LANDINGS: Final[Mapping[LandingEnd, tuple[str, Tone]]] = MappingProxyType(
    {
        "landed": ("landed", "good"),
        "nothing": ("nothing to do", "good"),
        "proposed": ("proposed", "good"),
        "conflict": ("conflict", "warning"),
        "check": ("check failed", "warning"),
        "setup": ("setup failed", "warning"),
        "changed-files": ("check changes files", "warning"),
        "ci": ("job failed", "warning"),
        "review": ("changes asked for", "warning"),
        "running": ("landing", "neutral"),
        "cut off": ("cut off", "warning"),
    }
)
"""The label and tone of each outcome of a landing."""
