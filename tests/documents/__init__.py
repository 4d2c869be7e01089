"""What is written from the code itself: `python -m tests.documents` writes it anew.

Each of `DOCUMENTS` is a file of the repository with the function that makes it; a test fails when
one of them is stale. The picture of a run is not among them, as no two runs are the same:
`python -m tests.documents picture` records a new one, and a test compares its words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from tests.documents.configuration import configuration
from tests.documents.events import events

ROOT = Path(__file__).parents[2]

DOCUMENTS: Mapping[str, Callable[[], str]] = MappingProxyType(
    {"docs/configuration.md": configuration, "docs/events.md": events}
)
