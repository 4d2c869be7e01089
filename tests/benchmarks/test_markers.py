"""The work of `extract_markers` grows with its input, measured as a ratio within one run."""

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
    """The best of some runs, undisturbed by the collector; in deltas of so many characters."""
    deltas: list[Event] = []
    if size:
        pieces = (text[at : at + size] for at in range(0, len(text), size))
        deltas = [MessageDelta(text=piece, message_id="m") for piece in pieces]
    message = rx.from_iterable([*deltas, AgentMessage(text=text, message_id="m")])
    best = float("inf")
    gc.disable()
    try:
        for _ in range(runs):
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


@pytest.mark.parametrize(
    "unit",
    [
        *("x", "<", "</NOT", "`", " ", "\n"),
        *("<NOTE>", "<NOTE><DONE>", "<NOTE>a</NOTE>", "<DONE>a<NOTE>b</NOTE>"),
        *("`<NOTE>a</NOTE>", "` <NOTE>a</NOTE>\n\n", "``` <NOTE>a</NOTE>\n", "~~~\n<NOTE>\n"),
    ],
)
def test_one_character_deltas_are_no_worse(unit: str) -> None:
    """However little of the text is there at once, and whatever it leaves open: it stays linear."""
    short = unit * (5_000 // len(unit)) + "<DONE>x</DONE>"
    long = unit * (GROWTH * 5_000 // len(unit)) + "<DONE>x</DONE>"
    ratio = seconds(long, runs=2, size=1) / seconds(short, runs=3, size=1)
    assert ratio < QUADRATIC / 2


def test_a_mebibyte_of_half_markers_in_one_character_deltas() -> None:
    """A character of a long message costs about as much as one of a short message."""
    unit = "<NOTE>a</NOT <DONE `"
    short = seconds(unit * (2**17 // len(unit)), runs=1, size=1)
    assert seconds(unit * (2**20 // len(unit)), runs=1, size=1) / short < QUADRATIC / 2
