"""Help pages that are generated from the code: `python -m tests.documents` writes them.

`DOCUMENTS` maps each generated file to the function that makes it; a test fails when one is stale.
The pictures of the demo and of the live page are not among them, because no two runs are identical:
`python -m tests.documents picture` and `python -m tests.documents page` record new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from tests.documents.config import config
from tests.documents.events import events
from tests.documents.markers import markers
from tests.documents.operators import operators
from tests.documents.refusals import refusals

ROOT = Path(__file__).parents[2]

DOCUMENTS: Mapping[str, Callable[[], str]] = MappingProxyType(
    {
        "cuggino_cli/help/config.md": config,
        "cuggino_cli/help/events.md": events,
        "cuggino_cli/help/markers.md": markers,
        "cuggino_cli/help/operators.md": operators,
        "cuggino_cli/help/refusals.md": refusals,
    }
)
