"""The search for markers in one long message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import reactivex as rx

from cuggino.events import AgentMessage, Done, Note
from cuggino.operators import extract_markers, marker_tags
from tests.benchmarks.measuring import Figure, took


def markers(*, sizes: Sequence[int] = (1, 10, 100)) -> Iterator[Figure]:
    """Measure `extract_markers` on a message of each size in MiB, with partial markers."""
    tags = marker_tags(Note, Done)
    unit = "Some words about `<NOTE>` and a <b>tag</b> in a line of text.\n" * 50
    unit += "<NOTE>something worth remembering</NOTE>\n"
    first: float | None = None
    for size in sizes:
        text = (unit * (size * 2**20 // len(unit) + 1))[: size * 2**20]
        message = rx.of(AgentMessage(text=text, message_id="m"))
        runs = [took(lambda: message.pipe(extract_markers(tags)).subscribe()) for _ in range(3)]
        each = min(run.cpu for run in runs) / size * 1e3
        yield Figure(
            key=f"markers.{size}",
            name=f"extract_markers on {size} MiB, CPU of a MiB",
            value=each,
            unit="ms",
            floor=first,
            floor_name="" if first is None else f"a MiB of {sizes[0]}",
        )
        first = first or each
