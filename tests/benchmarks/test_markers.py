"""The time of `extract_markers` grows linearly, measured as a ratio within one run."""

from __future__ import annotations

import gc
import time
from collections.abc import Collection

import pytest
import reactivex as rx

from cuggino.events import AgentMessage, Done, Event, MessageDelta, Note
from cuggino.operators import extract_markers, marker_tags

TAGS = marker_tags(Note, Done)
GROWTH = 8
LIMIT = 2.5 * GROWTH
"""Times the short text's time: a quadratic part that is a third of that is found."""


def seconds(text: str, *, runs: int, size: int = 0, at_line_start: Collection[str] = ()) -> float:
    """Return the best CPU time of some runs, without garbage collection; `size` makes deltas."""
    operator = extract_markers(TAGS, at_line_start=at_line_start)
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
            message.pipe(operator).subscribe()
            best = min(best, time.thread_time() - began)
    finally:
        gc.enable()
    return best


def is_linear(short: str, long: str, *, size: int = 0, at_line_start: Collection[str] = ()) -> bool:
    """Return whether the long text takes about as many times longer as it is longer.

    A measurement that something else has disturbed is repeated.
    """
    for _ in range(4):
        brief = seconds(short, runs=3, size=size, at_line_start=at_line_start)
        if seconds(long, runs=1, size=size, at_line_start=at_line_start) < brief * LIMIT:
            return True
    return False


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
    short = unit * (10_000 // len(unit)) + "<DONE>x</DONE>"
    long = unit * (GROWTH * 10_000 // len(unit)) + "<DONE>x</DONE>"
    assert is_linear(short, long)


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
    short = unit * (600 // len(unit)) + "<DONE>x</DONE>"
    long = unit * (GROWTH * 600 // len(unit)) + "<DONE>x</DONE>"
    assert is_linear(short, long, size=1)


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize(
    "unit",
    [
        *("x", "x\n", " ", "> ", "> x\n", "- ", "- x\n", "1. x\n  y\n", "\n```\n", "` `` \n"),
        *("\n<DONE>", "</DONE>", "\n\n<DONE>a</DONE>", "\n<DON", "`<DONE>a\n</DONE>"),
        *("<!--", "<a b='", '<a b="\n', "<a b c ", "\n<div>"),
    ],
)
def test_time_grows_linearly_with_tags_at_line_starts(unit: str, size: int) -> None:
    """Reading the lines of a text is linear too, in one message and in one-character deltas."""
    length = 600 if size else 4_000
    begin, end = "<DONE>a</DONE>\n\n", "\n\n<DONE>x</DONE>"
    short = begin + unit * (length // len(unit)) + end
    long = begin + unit * (GROWTH * length // len(unit)) + end
    assert is_linear(short, long, size=size, at_line_start=("DONE",))
