"""Stories of deliverables runs that are cut and gone on with."""

from __future__ import annotations

from typing import Any

from cuggino.errors import AgentFailed
from cuggino.events import AgentMessage, DeliverSessionStarted, RunResumed
from cuggino.storage import run_totals
from tests.loops.delivered import Turn, crash
from tests.loops.delivered_runs import Process, Turns, Undisturbed, go_on, works

NONE = {"a": "pending", "b": "pending"}
ONE = {"a": "passed", "b": "pending"}
BOTH = {"a": "passed", "b": "passed"}
HALF = Turn(
    (AgentMessage(text="hm"),),
    {"a": "pending", "b": "blocked"},
    AgentFailed("it crashed", reason="crash"),
)
REFUTES = works(ONE, verifies="ab")

WHOLE: Turns = {
    "initializer": [works(NONE)],
    "coding": [HALF, works(ONE), works(BOTH), works(BOTH)],
    "verify": [REFUTES, works(BOTH, verifies="a"), works(BOTH, verifies="b")],
}
STALLED: Turns = {
    "initializer": [works(NONE)],
    "coding": [works(), works(ONE), works(), works(), works()],
}
RETRIES: Turns = {"initializer": [works(NONE)], "coding": [crash()] * 4}
REFUTED: Turns = {
    "initializer": [works(BOTH)],
    "verify": [REFUTES, REFUTES],
    "coding": [works(BOTH)],
}
SYNC: Turns = {"sync": [crash(), works(ONE)], "verify": [works(verifies="a"), works(verifies="b")]}
STORIES: dict[str, tuple[Turns, dict[str, Any], str, int]] = {
    "whole": (WHOLE, {}, "all_verified", 8),
    "stalled": (STALLED, {}, "stalled", 6),
    "retries": (RETRIES, {}, "max_retries_exceeded", 5),
    "refuted": (REFUTED, {}, "stalled", 4),
    "sync": (SYNC, {"workflow": "sync"}, "all_verified", 4),
    "limit": (WHOLE, {"max_sessions": 3}, "max_iterations", 3),
}


def assert_resumed(story: Undisturbed, process: Process, **given: Any) -> None:
    """Go on, and assert that it comes to the same end with nothing done twice."""
    before = process.journal if process.has_begun else None
    seen, done = go_on(process, **story.options, **given)
    story.assert_equals(process)
    assert seen.error is None
    assert story.story.ended.reason == seen.ended.reason
    assert story.story.ended.sessions == seen.ended.sessions
    left = [turn for turn in story.process.agent.begun if turn not in done]
    assert left == process.agent.begun
    if before is not None:
        (resumed,) = [event for _, event in seen.of(RunResumed)]
        assert run_totals(before) == resumed
        numbers = [event.session for _, event in seen.of(DeliverSessionStarted)]
        assert list(range(len(done) + 1, seen.ended.sessions + 1)) == numbers
