"""The deliverables and the plan/build loop with random sessions and verifications."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino import events as ev
from cuggino.domain.deliverables import Deliverable, Deliverables, Verification
from cuggino.domain.termination import DeliverProgress, Terminate, decide_delivery
from cuggino.errors import AgentFailed, BudgetExceeded, ConfigError, QuotaExceeded
from tests.loops.deliver_loop import DeliverLoop, RecordedDelivery, Turn
from tests.loops.plan_build_loop import (
    DONE_FILE,
    JOBS,
    Does,
    Files,
    PlanBuildLoop,
    RecordedBuild,
    Turn as Build,
    jobs,
    verdict,
)
from tests.loops.session_loop import DONE

DELIVERABLES = ("a", "b", "c")
DELIVERY_STATUS = st.sampled_from(
    ["pending", "passed", "passed", "passed", "blocked", "passed (deprecated)"]
)
STATUS_FILES = st.one_of(
    st.none(),
    st.dictionaries(st.sampled_from(DELIVERABLES), DELIVERY_STATUS, max_size=3),
    st.sampled_from(["{", ""]),
)


def failed(reason: Any) -> tuple[tuple[Any, ...], Exception]:
    return (), AgentFailed("oh", reason=reason)


ENDINGS: list[tuple[tuple[Any, ...], Exception | None]] = [
    ((ev.AgentMessage(text="done"), DONE), None),
    ((ev.AgentMessage(text="done"), DONE), None),
    ((ev.AgentMessage(text="done"), DONE), AgentFailed("behind", reason="crash")),
    ((ev.AgentMessage(text="no result"),), None),
    failed("crash"),
    failed("overloaded"),
    ((), ValueError("own")),
    ((ev.SessionEnded(outcome="failed", cost_usd=0.01, num_turns=1),), failed("unknown")[1]),
    ((ev.SessionEnded(outcome="max_turns", cost_usd=0.01),), failed("max_turns")[1]),
]
ENDINGS_OF_ALL: list[tuple[tuple[Any, ...], Exception | None]] = [
    ((ev.SessionEnded(outcome="quota"),), QuotaExceeded("limit")),
    ((ev.SessionEnded(outcome="budget"),), BudgetExceeded("spent")),
    failed("auth"),
]
DELIVERIES = st.builds(
    lambda end, leaves, verifies: Turn(end[0], leaves, end[1], None, verifies),
    st.sampled_from(ENDINGS * 3 + ENDINGS_OF_ALL),
    STATUS_FILES,
    st.sets(st.sampled_from(DELIVERABLES)).map(sorted),
)
DELIVERY_OPTIONS = st.fixed_dictionaries(
    {
        "max_sessions": st.integers(1, 8),
        "max_retries": st.integers(0, 3),
        "verify": st.booleans(),
        "workflow": st.sampled_from(["run", "run", "run", "sync"]),
        "recheck": st.booleans(),
        "progress_patience": st.sampled_from([None, 1, 3]),
        "review_patience": st.sampled_from([None, 1, 2]),
        "budget": st.sampled_from([None, None, 0.03]),
        "session_pause": st.sampled_from([0.0, 1.0]),
        "retry_pause": st.just(0.0),
    }
)


@given(st.lists(DELIVERIES, max_size=10), DELIVERY_OPTIONS, STATUS_FILES, st.booleans())
def test_random_deliveries(
    turns: list[Turn], options: dict[str, Any], start: Any, progress: bool
) -> None:
    """The loop ends once, within its limits and by the rules, with the counts of the file."""
    with tempfile.TemporaryDirectory() as folder:
        states = None if progress else ["same"] * 20
        project = DeliverLoop(Path(folder), turns, start, fingerprints=states)
        project.agent.spare = Turn()
        story = project.run(**options)
        project.assert_released()
        assert_delivered(story, options)
        assert_counts(story, project)


def assert_delivered(story: RecordedDelivery, options: dict[str, Any]) -> None:
    end = story.ended
    started, over = story.of(ev.DeliverSessionStarted), story.of(ev.DeliverSessionEnded)
    assert end.sessions == len(started) == len(over) <= options["max_sessions"]
    assert list(range(1, end.sessions + 1)) == [event.session for event in over]
    outcomes = story.outcomes
    errors = 0
    for outcome in outcomes:
        errors = errors + 1 if outcome in ("error", "execution_error") else 0
        assert errors <= options["max_retries"] + 1
    if end.reason in ("stalled", "failed"):
        assert end.error
        assert (story.error is not None) == (end.reason == "failed")
        return
    if end.reason in ("quota_exceeded", "budget_exceeded"):
        expected = QuotaExceeded if end.reason == "quota_exceeded" else BudgetExceeded
        assert isinstance(story.error, expected)
        return
    assert story.error is None
    blind = outcomes[-1:] == ["error"]
    verifies = end.verified is not None
    decision = decide_delivery(
        DeliverProgress(
            outcome=None,
            deliverables=None if blind else _known(story),
            iterations=end.sessions,
            max_iterations=options["max_sessions"],
            consecutive_errors=errors,
            max_retries=options["max_retries"],
            sync=options["workflow"] == "sync" or (verifies and end.reason != "all_blocked"),
            verification=_verification(story) if verifies and not blind else None,
        )
    )
    assert isinstance(decision, Terminate)
    assert end.reason == decision.reason


def _last(story: RecordedDelivery) -> ev.DeliverablesListed | None:
    """The deliverables as they were looked at last; None when their file was broken then."""
    events = story.events
    n = max(
        (n for n, event in enumerate(events) if isinstance(event, ev.DeliverSessionEnded)),
        default=0,
    )
    listed = [event for event in events[n:] if isinstance(event, ev.DeliverablesListed)]
    return listed[-1] if listed else None


def _known(story: RecordedDelivery) -> Deliverables | None:
    last = _last(story)
    if last is None:
        return None
    items = tuple(
        Deliverable(id=x.id, description="", acceptance_criteria=(), status=x.status)
        for x in last.deliverables
    )
    return Deliverables(created_at="", updated_at="", items=items)


def _verification(story: RecordedDelivery) -> Verification | None:
    last = _last(story)
    if last is None:
        return None
    done = [f"v{n}" for n in range(story.ended.verified or 0)]
    left = [f"x{n}" for n in range(story.ended.to_verify - len(done))]
    return Verification(all=(*done, *left), verified=frozenset(done))


def assert_counts(story: RecordedDelivery, project: DeliverLoop) -> None:
    """Assert that the result has the counts of the file, without deprecated deliverables."""
    end, file = story.ended, project.status_file
    try:
        items = json.loads(file.read_text())["deliverables"]
    except (FileNotFoundError, ValueError):
        items = []
        if file.exists() and end.reason in ("failed", "quota_exceeded", "budget_exceeded"):
            return  # the last that was known
    active = [item for item in items if "deprecatedAt" not in item]
    counts = (sum(i["passed"] for i in active), sum(i["blocked"] for i in active), len(active))
    assert counts == (end.passed, end.blocked, end.total)
    if end.reason in ("all_passed", "all_blocked"):
        wanted = len(active) - end.blocked if end.reason == "all_passed" else 0
        assert wanted == end.passed
    assert end.success == (end.reason in ("all_passed", "all_verified"))


# -- the plan/build loop with random sessions and verifications


IDS = ("J1", "J2", "J99")
STATUS = st.sampled_from(["open", "in-progress", "done", "done", "Completed", "blocked"])
CONTENT = st.one_of(
    st.dictionaries(st.sampled_from(IDS), STATUS, max_size=3).map(lambda found: jobs(**found)),
    st.sampled_from([None, "{", "[]"]),
)
FILES: st.SearchStrategy[Files] = st.one_of(
    st.just({}),
    st.fixed_dictionaries({JOBS: CONTENT}),
    st.fixed_dictionaries({JOBS: CONTENT, DONE_FILE: st.sampled_from(["done", None])}),
    st.fixed_dictionaries({DONE_FILE: st.just("done")}),
)


GOOD: list[tuple[tuple[Any, ...], Exception | None]] = [
    ((ev.AgentMessage(text="done"), DONE), None),
    ((ev.AgentMessage(text="no result"),), None),
    ((DONE,), AgentFailed("behind", reason="crash")),
]
BAD: list[tuple[tuple[Any, ...], Exception | None]] = [
    failed("crash"),
    failed("overloaded"),
    ((), ValueError("own")),
    ((ev.SessionEnded(outcome="failed", cost_usd=0.01, num_turns=1),), None),
    ((ev.SessionEnded(outcome="max_turns", cost_usd=0.01),), failed("max_turns")[1]),
]
ENDS_ALL: list[tuple[tuple[Any, ...], Exception | None]] = [
    ((ev.SessionEnded(outcome="quota"),), QuotaExceeded("limit")),
    failed("auth"),
]
TURNS = st.builds(
    lambda end, early, late: Build(early, (Does(late), *end[0]), end[1]),
    st.sampled_from(GOOD * 6 + BAD * 2 + ENDS_ALL),
    FILES,
    FILES,
)
JUDGES = st.one_of(st.just(verdict()), st.just(verdict()), st.just(verdict(False, "no")), TURNS)
OPTIONS = st.fixed_dictionaries(
    {
        "start": st.sampled_from(["plan", "build"]),
        "plan_only": st.booleans(),
        "max_sessions": st.integers(1, 8),
        "max_retries": st.integers(0, 3),
        "verify_after_iteration": st.booleans(),
        "verify_test": st.sampled_from([None, "good", "bad"]),
        "fresh": st.booleans(),
        "auto_commit": st.booleans(),
        "progress_patience": st.sampled_from([None, 1, 3]),
        "budget": st.sampled_from([None, None, 0.05]),
        "iteration_pause": st.sampled_from([0.0, 1.0]),
        "retry_pause": st.just(0.0),
    }
)
RESUMABLE = ("quota_exceeded", "budget_exceeded", "failed")


@pytest.mark.real_agent
@given(st.lists(TURNS, max_size=8), st.lists(JUDGES, max_size=12), OPTIONS, FILES, st.booleans())
def test_random_builds(
    turns: list[Build], judges: list[Build], options: dict[str, Any], start: Files, progress: bool
) -> None:
    """The loop ends once and within its limits; each done job was done before or is verified."""
    with tempfile.TemporaryDirectory() as folder:
        project = PlanBuildLoop(
            Path(folder),
            turns[1:],
            judges,
            turns[:1],
            start,
            spare=Build(),
            shells={"good": 0, "bad": 1},
            fingerprints=None if progress else ["same"] * 50,
        )
        before = done_of(Path(folder))
        story = project.run(**options)
        project.assert_released()
        assert_by_the_rules(story, options)
        assert_proven(project, story, before)


def done_of(folder: Path) -> set[str]:
    """The ids of the jobs that are done; of a broken file none."""
    try:
        found = json.loads((folder / JOBS).read_text())
    except (FileNotFoundError, ValueError):
        return set()
    items = found["jobs"] if isinstance(found, dict) else found
    return {job["id"] for job in items if job["status"].lower() in ("done", "completed")}


def assert_by_the_rules(story: RecordedBuild, options: dict[str, Any]) -> None:
    end = story.ended
    sessions = story.of(ev.PlanBuildSessionEnded)
    assert end.iterations == len(sessions) <= options["max_sessions"]
    assert list(range(1, end.iterations + 1)) == [event.iteration for event in sessions]
    iterations = [event.iteration for event in story.of(ev.PlanBuildIterationEnded)]
    assert sorted(set(iterations)) == iterations
    errors = 0
    for event in sessions:
        errors = errors + 1 if event.outcome in ("error", "execution_error") else 0
        assert errors <= options["max_retries"] + 1
    assert (story.error is not None) == (end.reason in RESUMABLE)
    match end.reason:
        case "complete":
            # Without any verification the done file is believed, also while jobs are open.
            is_believed = not (options["verify_after_iteration"] or options["verify_test"])
            assert is_believed or 0 == end.open == end.blocked
            is_told = any("ends the loop without" in said for said in story.warnings)
            assert is_told or 0 == end.open == end.blocked
        case "blocked":
            assert (0, True) == (end.open, end.blocked > 0)
        case "max_iterations":
            assert options["max_sessions"] == end.iterations
        case "max_retries_exceeded":
            assert errors == options["max_retries"] + 1
        case "planned":
            assert options["plan_only"]
        case "stalled":
            assert end.error
        case "quota_exceeded":
            assert isinstance(story.error, QuotaExceeded)
        case "budget_exceeded":
            assert isinstance(story.error, BudgetExceeded)
        case _:
            assert isinstance(story.error, AgentFailed | ConfigError)


def assert_proven(project: PlanBuildLoop, story: RecordedBuild, before: set[str]) -> None:
    """Assert that each job done by a finished run is proven."""
    if story.ended.reason in RESUMABLE:
        return
    done = done_of(project.folder)
    verified = {event.job_id for event in story.of(ev.JobVerified) if event.passed}
    assert done <= before | verified
    if story.ended.reason == "complete":
        assert project.is_done
        assert len(done) == story.ended.done
