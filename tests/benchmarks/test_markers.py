"""The work of `extract_markers` grows with its input, measured as a ratio within one run."""

from __future__ import annotations

import gc
import time

import pytest
import reactivex as rx

from cuggino.events import AgentMessage, Done, Note
from cuggino.operators import extract_markers, marker_tags

TAGS = marker_tags(Note, Done)
GROWTH = 8
QUADRATIC = GROWTH * GROWTH


def seconds(text: str) -> float:
    """The best of five runs, undisturbed by the collector."""
    message = rx.of(AgentMessage(text=text, message_id="m"))
    best = float("inf")
    gc.disable()
    try:
        for _ in range(5):
            began = time.perf_counter()
            message.pipe(extract_markers(TAGS)).subscribe()
            best = min(best, time.perf_counter() - began)
    finally:
        gc.enable()
    return best


@pytest.mark.parametrize(
    "unit",
    [
        "x",
        "<NOTE>",
        "`<NOTE>",
        "```\n<NOTE>\n",
        "<NOTE></DONE>",
        "<NOTE>a</NOTE>",
        "` ",
        "> \n",
        "~~~\n",
    ],
)
def test_eight_times_the_text_takes_nowhere_near_64_times_as_long(unit: str) -> None:
    """Tags opened and never closed, fences and spans without end: none makes it quadratic."""
    short = unit * (100_000 // len(unit)) + "<DONE>x</DONE>"
    long = unit * (GROWTH * 100_000 // len(unit)) + "<DONE>x</DONE>"
    ratio = seconds(long) / seconds(short)
    assert ratio < QUADRATIC / 2
