"""The start of the deliverables loop, and its use of the status file."""

from __future__ import annotations

from pathlib import Path

import pytest
from reactivex import Observable, just

from cuggino import events as ev
from cuggino.errors import ConfigError
from tests.loops.deliver_loop import DeliverLoop, Statuses, Turn, Writes, deliver_marbles

PASSED = {"a": "passed", "b": "passed"}
BLOCKED = {"a": "blocked", "b": "blocked"}


@pytest.mark.parametrize(
    ("start", "reason", "counts"),
    [
        (PASSED, "all_passed", (2, 2, 0)),
        ({"a": "passed", "b": "blocked"}, "all_passed", (1, 2, 1)),
        (BLOCKED, "all_blocked", (0, 2, 2)),
        ({"a": "passed", "b": "pending (deprecated)"}, "all_passed", (1, 1, 0)),
        ({"a": "blocked", "b": "passed (deprecated)"}, "all_blocked", (0, 1, 1)),
    ],
)
def test_nothing_is_left_to_do(
    start: Statuses, reason: str, counts: tuple[int, int, int], tmp_path: Path
) -> None:
    """No session is started; deprecated deliverables count nowhere (AUT-040, AUT-095)."""
    project = DeliverLoop(tmp_path, start=start)
    story = project.run()
    assert [ev.DeliverablesListed, ev.DeliverEnded] == [type(event) for event in story.events]
    end = story.ended
    assert (reason, 0) == (end.reason, end.sessions)
    assert counts == (end.passed, end.total, end.blocked)
    assert [] == project.agent.spawned
    assert story.error is None
    project.assert_released()


@pytest.mark.parametrize("start", [{}, {"a": "passed (deprecated)"}])
def test_nothing_was_ever_wanted(start: Statuses, tmp_path: Path) -> None:
    """A status file without a deliverable is neither all passed nor all blocked (AUT-051)."""
    project = DeliverLoop(tmp_path, [Turn()], start)
    story = project.run(max_sessions=1)
    assert ["coding"] == story.instructions
    assert ("max_iterations", 0) == (story.ended.reason, story.ended.total)


@pytest.mark.parametrize(("start", "reason"), [(PASSED, "all_passed"), (BLOCKED, "all_blocked")])
def test_recheck_forces_a_session(start: Statuses, reason: str, tmp_path: Path) -> None:
    """With `recheck` one session checks the finished work, and the loop ends when it agrees."""
    project = DeliverLoop(tmp_path, [Turn()], start)
    story = project.run(recheck=True)
    assert ["coding"] == story.instructions
    assert (reason, 1) == (story.ended.reason, story.ended.sessions)


def test_recheck_that_finds_a_fault(tmp_path: Path) -> None:
    """A deliverable that the forced session resets is worked on by the next."""
    turns = [Turn(leaves={"a": "passed", "b": "pending"}), Turn(leaves=PASSED)]
    story = DeliverLoop(tmp_path, turns, PASSED).run(recheck=True)
    assert ("all_passed", 2) == (story.ended.reason, story.ended.sessions)


def test_the_first_session_is_planned(tmp_path: Path) -> None:
    """Without a status file the first session plans; with one each session works (AUT-120)."""
    turns = [Turn(leaves={"a": "pending"}), Turn(), Turn(leaves={"a": "passed"})]
    project = DeliverLoop(tmp_path, turns)
    story = project.run(model="work", plan_model="plan", thinking=2048)
    assert ["initializer", "coding", "coding"] == story.instructions
    told = project.agent.spawned
    assert ["plan", "work", "work"] == [options.model for options in told]
    assert [1, 1, 2] == [options.turn for options in told]
    assert {2048} == {options.thinking for options in told}
    assert [1, 2, 3] == [e.session for e in story.of(ev.DeliverSessionStarted)]
    assert [1, 2, 3] == [e.session for e in story.of(ev.DeliverSessionEnded)]


def test_an_initializer_that_plans_nothing_is_repeated(tmp_path: Path) -> None:
    """Sessions plan until there is a status file."""
    story = DeliverLoop(tmp_path, [Turn(), Turn(), Turn(leaves=PASSED)]).run()
    assert ["initializer"] * 3 == story.instructions
    assert "all_passed" == story.ended.reason


@pytest.mark.parametrize("content", ["", "{", "[]", '{"deliverables": 3}', "\udcff"])
def test_a_broken_status_file_at_the_start(content: str, tmp_path: Path) -> None:
    """A broken file is reported and kept; it is neither missing nor all passed (AUT-104)."""
    project = DeliverLoop(tmp_path, [Turn()], start=PASSED)
    project.status_file.write_bytes(content.encode("utf-8", "surrogateescape"))
    before = project.status_file.read_bytes()
    story = project.run(max_sessions=1)
    assert ["coding"] == story.instructions
    assert ("max_iterations", 0, 0) == (story.ended.reason, story.ended.passed, story.ended.total)
    assert 2 == len(story.warnings)  # before the session and after it
    assert all("status.json is broken: " in warning for warning in story.warnings)
    assert [] == story.of(ev.DeliverablesListed)
    assert before == project.status_file.read_bytes()


def test_a_status_file_that_breaks_on_the_way(tmp_path: Path) -> None:
    """A broken file decides nothing until it is repaired."""
    t = deliver_marbles(B=Writes("{"), P=Writes(PASSED))
    turns = [
        Turn(stream=t.cold("-B-d|")),
        Turn(stream=t.cold("-a-d|")),
        Turn(stream=t.cold("-Pd|")),
    ]
    project = DeliverLoop(tmp_path, turns, {"a": "passed", "b": "pending"}, t, t.hot("--!--"))
    story = project.run()
    assert ["coding"] * 3 == story.instructions
    assert ["completed"] * 3 == story.outcomes
    assert [4, 8] == story.times(ev.DeliverWarning)
    assert [] == story.changes  # to what is not known there is no change
    assert [0, 11, 11] == story.times(ev.DeliverablesListed)
    assert "all_passed" == story.ended.reason


def test_a_broken_file_between_sessions_hides_no_change(tmp_path: Path) -> None:
    """Changes are found by comparing a repaired file with the last readable one."""
    t = deliver_marbles(B=Writes("{"), P=Writes({"a": "passed"}))
    project = DeliverLoop(
        tmp_path, [Turn(stream=t.cold("-B--P-d|"))], {"a": "pending"}, t, t.hot("--!--!-")
    )
    story = project.run()
    assert [(5, "a", "pending", "passed")] == story.changes
    assert [] == story.warnings


def test_irregular_status_files_are_reported(tmp_path: Path) -> None:
    """Each irregularity of a usable file is a warning, every time it is read."""
    project = DeliverLoop(tmp_path, start=PASSED)
    text = project.status_file.read_text()
    project.status_file.write_text(text.replace('"blocked": false', '"blocked": true', 1))
    story = project.run()
    assert "all_passed" == story.ended.reason
    assert 1 == len(story.warnings)


def test_pauses_lie_between_sessions(tmp_path: Path) -> None:
    """There is a pause between sessions, but not before the first and after the last (AUT-033)."""
    t = deliver_marbles()
    streams = [t.cold("--d|") for _ in range(3)]
    turns = [Turn(stream=stream) for stream in streams]
    turns[2] = Turn(stream=streams[2], leaves=PASSED)
    story = DeliverLoop(tmp_path, turns, {"a": "pending"}, t).run(session_pause=10.0)
    assert [0, 13, 26] == story.times(ev.DeliverSessionStarted)
    assert [3, 16, 29] == story.times(ev.DeliverSessionEnded)
    assert [29] == story.times(ev.DeliverEnded)
    assert (29, 3.0) == (story.ended.duration, story.of(ev.DeliverSessionEnded)[0].duration)
    assert 0.03 == pytest.approx(story.ended.cost_usd)


def test_there_is_no_pause_by_default_of_zero(tmp_path: Path) -> None:
    """A pause of zero sets no timer."""
    project = DeliverLoop(tmp_path, [Turn(), Turn(), Turn(leaves=PASSED)], {"a": "pending"})
    story = project.run(session_pause=0.0)
    assert {0} == set(story.times(ev.DeliverSessionStarted))


def test_all_events_of_an_agent_are_emitted(tmp_path: Path) -> None:
    """The events of an agent are emitted as they arrive, between the session's start and end."""
    t = deliver_marbles(
        L=ev.DeliverablesListed(),
        s=ev.DeliverSessionStarted(session=1, instruction="initializer"),
        e=ev.DeliverSessionEnded(
            session=1, outcome="completed", message="working", cost_usd=0.01, duration=3.0
        ),
        E=ev.DeliverEnded(
            reason="max_iterations",
            sessions=1,
            cost_usd=0.01,
            duration=3.0,
            max_iterations=1,
            max_retries=3,
        ),
    )
    agent = t.cold("-ad|")
    watch = t.hot("-----")
    project = DeliverLoop(tmp_path, [Turn(stream=agent)], None, t, watch)
    t.check(project.stream(max_sessions=1), "(Ls)ad(eLE|)")
    t.check_subscriptions(agent, "^--!")
    t.check_subscriptions(watch, "^--!")
    project.assert_released()


def test_a_project_without_a_specification(tmp_path: Path) -> None:
    """The check before the loop reports the missing specification."""
    project = DeliverLoop(tmp_path)
    with pytest.raises(ConfigError, match=r"SPEC\.md not found"):
        project.service.check()
    (tmp_path / "SPEC.md").write_text("Do it.")
    project.service.check()


def test_the_interruption_comes_first(tmp_path: Path) -> None:
    """A run interrupted before its start ends as interrupted (AUT-050)."""
    stop: Observable[object] = just("stop")
    story = DeliverLoop(tmp_path, start=PASSED).run(interrupt=stop)
    assert ("interrupted", 2) == (story.ended.reason, story.ended.passed)
    assert story.error is None
