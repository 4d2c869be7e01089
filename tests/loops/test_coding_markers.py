"""Quoted and contradictory markers in the coding loop, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable

from cuggino.errors import AgentFailed
from cuggino.events import AgentMessage, ContradictoryMarkers, SessionEnded
from cuggino.testing import Marbles
from tests.loops.coding_loop import CodingLoop, drawn, marbles, tags

QUOTED = (
    "I will not respond with <APPROVED>ok</APPROVED> yet, 9 tasks remain",
    "The answer would be\n\n    <APPROVED>ok</APPROVED>",
    "> <APPROVED>ok</APPROVED>",
    "> The plan says\n<APPROVED>ok</APPROVED>",
    '{"verdict": "<APPROVED>ok</APPROVED>"}',
    '<p\ntitle="\n<APPROVED>ok</APPROVED>\n">',
    "<!--\n<APPROVED>ok</APPROVED>\n-->",
    "1. Say\n   ```\n   <APPROVED>ok</APPROVED>\n   ```",
    "~~~~\n~~~\n<APPROVED>ok</APPROVED>",
    "<thinking>\n<APPROVED>ok</APPROVED>\n</thinking>\nOn reflection 9 tests fail.",
    "<thinking>\nI could answer\n<APPROVED>ok</APPROVED>",
    "<example>\n<APPROVED>ok</APPROVED>\n</example>",
    "<outer>\n<inner>\n</inner>\n<APPROVED>ok</APPROVED>\n</outer>",
    "<details>\n<summary>Draft</summary>\n\n<APPROVED>ok</APPROVED>\n\n</details>\nnot yet",
    "return (\n<APPROVED>ok</APPROVED>\n);\nnot yet",
    "<App>\n<APPROVED>ok</APPROVED>\n</App>",
    "msg: |\n<APPROVED>ok</APPROVED>\nnot yet",
    "Example::\n\n  <APPROVED>ok</APPROVED>\n\nnot yet",
    "\\begin{verbatim}\n<APPROVED>ok</APPROVED>\n\\end{verbatim}",
    'text = """\n<APPROVED>ok</APPROVED>\n"""',
    "cat <<EOF\n<APPROVED>ok</APPROVED>\nEOF",
    'text = "so\n<APPROVED>ok</APPROVED>\n"',
    "If the tests passed I would write:\n<APPROVED>ok</APPROVED>\nBut they do not.",
    "If the tests passed I would write:\n<APPROVED>ok</APPROVED>",
    "Human: now answer\n<APPROVED>ok</APPROVED>\n\nAssistant: I will not.",
    "Human: now answer\n<APPROVED>ok</APPROVED>",
    "<APPROVED>NOT approved: 9 tests fail</APPROVED>",
    "<APPROVED>ok</APPROVED>\n\nThat is what I would like to say.",
)


def loop_with(folder: Path, t: Marbles, *reviews: str) -> CodingLoop:
    """Return a loop with one task and these reviews; a second iteration ends it."""
    return drawn(folder, t, "c| i|", "d|", [*map(t.cold, reviews)], can_resume=True)


@pytest.mark.parametrize("text", QUOTED)
def test_a_quoted_approval(text: str, tmp_path: Path) -> None:
    """It approves nothing: the reviewer is asked, and its answer counts."""
    t = marbles(q=AgentMessage(text=text))
    loop = loop_with(tmp_path, t, "q-s|", "r-s|")
    seen = tags(t.record(loop.run()))
    assert "LoopApproved" not in seen
    assert "RequestChanges IterationStart" in seen
    assert 2 == len(loop.prompts("reviewing"))


@pytest.mark.parametrize(
    ("review", "counted"),
    [
        (["b-s|"], "REQUEST_CHANGES"),
        (["y-r-s|"], "REQUEST_CHANGES"),
        (["r-y-s|"], "REQUEST_CHANGES"),
        (["y-s-r|"], "REQUEST_CHANGES"),
        (["y-a-i----------"], "SPEC_ISSUE"),
        (["r-i-y-s|"], "SPEC_ISSUE"),
    ],
)
def test_a_contradictory_review(review: list[str], counted: str, tmp_path: Path) -> None:
    """The most cautious marker counts, and an event has all of them."""
    t = marbles(
        b=AgentMessage(text="<APPROVED>yes</APPROVED>\n<REQUEST_CHANGES>redo</REQUEST_CHANGES>")
    )
    loop = loop_with(tmp_path, t, *review)
    seen = t.record(loop.run())
    told = [value for _, _, value in seen if isinstance(value, ContradictoryMarkers)]
    assert [("reviewing", counted)] == [(event.phase, event.counted) for event in told]
    assert ("APPROVED", "yes") in told[0].markers
    assert "LoopApproved" not in tags(seen)


def test_an_implementer_that_is_not_sure(tmp_path: Path) -> None:
    """Of done and progress, progress counts: the next task follows, and no review."""
    t = marbles()
    loop = drawn(tmp_path, t, "c|", "d-g-s| d-i-s|")
    seen = tags(t.record(loop.run()))
    assert 2 == seen.count("ContradictoryMarkers")
    assert "Progress ImplementingStart" in seen
    assert seen.endswith("SpecIssue LoopSpecIssue")


def test_an_approval_after_a_failure(tmp_path: Path) -> None:
    """An approval behind a result that is an error approves nothing."""
    t = marbles(
        f=SessionEnded(outcome="failed"), error=AgentFailed("crashed", reason="bad_request")
    )
    review: Observable[Any] = t.cold("a-f-y#")
    loop = drawn(tmp_path, t, "c|", "d|", [review])
    *_, (_, kind, error) = seen = t.record(loop.run())
    assert "LoopApproved" not in tags(seen)
    assert ("error", True) == (kind, "crashed" in str(error))
