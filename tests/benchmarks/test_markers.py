"""The time of `extract_markers` grows linearly, measured as a ratio within one run."""

from __future__ import annotations

import gc
import time

import pytest
import reactivex as rx

from cuggino.events import AgentMessage, Done, Event, MessageDelta, Note
from cuggino.operators import extract_markers, marker_tags

TAGS = marker_tags(Note, Done)
GROWTH = 8
QUADRATIC = GROWTH * GROWTH


def seconds(text: str, *, runs: int = 5, size: int = 0) -> float:
    """Return the best CPU time of some runs, without garbage collection; `size` makes deltas."""
    deltas: list[Event] = []
    if size:
        pieces = (text[at : at + size] for at in range(0, len(text), size))
        deltas = [MessageDelta(text=piece, message_id="m") for piece in pieces]
    message = rx.from_iterable([*deltas, AgentMessage(text=text, message_id="m")])
    best = float("inf")
    gc.disable()
    try:
        for _ in range(runs):
            began = time.thread_time()
            message.pipe(extract_markers(TAGS)).subscribe()
            best = min(best, time.thread_time() - began)
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
def test_time_grows_linearly_with_the_text(unit: str) -> None:
    """Unclosed tags, fences and spans do not make the operator quadratic."""
    short = unit * (25_000 // len(unit)) + "<DONE>x</DONE>"
    long = unit * (GROWTH * 25_000 // len(unit)) + "<DONE>x</DONE>"
    ratio = seconds(long) / seconds(short)
    assert ratio < QUADRATIC / 2


@pytest.mark.parametrize(
    "unit",
    [
        *("x", "<", "</NOT", "`", " ", "\n"),
        *("<NOTE>", "<NOTE><DONE>", "<NOTE>a</NOTE>", "<DONE>a<NOTE>b</NOTE>"),
        *("`<NOTE>a</NOTE>", "` <NOTE>a</NOTE>\n\n", "``` <NOTE>a</NOTE>\n", "~~~\n<NOTE>\n"),
        "<NOTE>a</NOT <DONE `",
    ],
)
def test_time_grows_linearly_with_one_character_deltas(unit: str) -> None:
    """Deltas of one character keep the operator linear, with any unclosed text."""
    short = unit * (3_000 // len(unit)) + "<DONE>x</DONE>"
    long = unit * (GROWTH * 3_000 // len(unit)) + "<DONE>x</DONE>"
    ratio = seconds(long, runs=3, size=1) / seconds(short, runs=8, size=1)
    assert ratio < QUADRATIC / 2
