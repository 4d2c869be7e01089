"""The deliverables loop: its start, its use of the status file, status changes, and its stalls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, just, throw

from cuggino import events as ev
from cuggino.errors import AgentFailed, ConfigError
from cuggino.events import NoProgress, SessionEnded
from tests.loops.deliver_loop import (
    DeliverLoop,
    Statuses,
    Turn,
    Writes,
    crash,
    deliver_marbles,
)

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


# -- status changes of deliverables during a session (AUT-115, AUT-116)


PENDING = {"a": "pending", "b": "pending"}
ONE = {"a": "passed", "b": "pending"}
BOTH = {"a": "passed", "b": "passed"}


def listing(statuses: Statuses) -> ev.DeliverablesListed:
    return ev.DeliverablesListed(
        deliverables=tuple(
            ev.DeliverableState.model_validate(
                {"id": name, "description": f"do {name}", "status": status}
            )
            for name, status in statuses.items()
        )
    )


def changed(name: str, previous: str, status: str) -> ev.DeliverableStatusChanged:
    return ev.DeliverableStatusChanged.model_validate(
        {
            "deliverable_id": name,
            "description": f"do {name}",
            "previous": previous,
            "status": status,
        }
    )


def test_changes_are_reported_at_once(tmp_path: Path) -> None:
    """Each change of the file is reported at once: first the changes, then the whole list."""
    t = deliver_marbles(
        s=ev.DeliverSessionStarted(session=1, instruction="coding"),
        e=ev.DeliverSessionEnded(
            session=1, outcome="completed", message="working", cost_usd=0.01, duration=6.0
        ),
        E=ev.DeliverEnded(
            reason="all_passed",
            sessions=1,
            passed=2,
            total=2,
            cost_usd=0.01,
            duration=6.0,
            max_retries=3,
        ),
        O=Writes(ONE),
        B=Writes(BOTH),
        **{"0": listing(PENDING), "1": listing(ONE), "2": listing(BOTH)},
        x=changed("a", "pending", "passed"),
        y=changed("b", "pending", "passed"),
    )
    agent = t.cold("-O-Bad|")
    watch = t.hot("--!-!----!")
    project = DeliverLoop(tmp_path, [Turn(stream=agent)], PENDING, t, watch)
    t.check(project.stream(), "(0s)-(x1)-(y2a)d(e2E|)")
    t.check_subscriptions(agent, "^-----!")
    t.check_subscriptions(watch, "^-----!")
    project.assert_released()


def test_missed_changes_are_reported_at_the_end(tmp_path: Path) -> None:
    """A change that the file watch missed is reported before the session's end."""
    t = deliver_marbles(B=Writes(BOTH))
    project = DeliverLoop(tmp_path, [Turn(stream=t.cold("--B-d|"))], PENDING, t)
    story = project.run()
    assert [(5, "a", "pending", "passed"), (5, "b", "pending", "passed")] == story.changes
    kinds = [type(event) for event in story.events[-5:]]
    assert [
        ev.DeliverableStatusChanged,
        ev.DeliverablesListed,
        ev.DeliverSessionEnded,
        ev.DeliverablesListed,
        ev.DeliverEnded,
    ] == kinds
    assert story.events[-4] == story.events[-2]


def test_two_changes_in_one_look(tmp_path: Path) -> None:
    """Two changes are reported in the order of the file, followed by one list."""
    t = deliver_marbles(W=Writes({"a": "blocked", "b": "passed", "c": "pending"}))
    start = {"c": "passed", "b": "pending", "a": "pending"}
    project = DeliverLoop(tmp_path, [Turn(stream=t.cold("-W---d|"))], start, t, t.hot("--!"))
    story = project.run(max_sessions=1)
    assert [
        (2, "a", "pending", "blocked"),
        (2, "b", "pending", "passed"),
        (2, "c", "passed", "pending"),
    ] == story.changes
    assert [0, 2, 6] == story.times(ev.DeliverablesListed)


def test_created_ones_are_listed(tmp_path: Path) -> None:
    """A new deliverable is listed without a status change; later changes are reported."""
    t = deliver_marbles(N=Writes(PENDING), O=Writes(ONE))
    project = DeliverLoop(tmp_path, [Turn(stream=t.cold("-N-O-d|"))], None, t, t.hot("--!-!"))
    story = project.run(max_sessions=1)
    assert [(4, "a", "pending", "passed")] == story.changes
    told = [(when, len(event.deliverables)) for when, event in story.timed(ev.DeliverablesListed)]
    assert [(0, 0), (2, 2), (4, 2), (6, 2)] == told


def test_deprecated_ones_vanish_from_the_list(tmp_path: Path) -> None:
    """A deprecated deliverable leaves the list, without a status change."""
    t = deliver_marbles(D=Writes({"a": "passed", "b": "pending (deprecated)"}))
    project = DeliverLoop(tmp_path, [Turn(stream=t.cold("-D-d|"))], ONE, t, t.hot("--!"))
    story = project.run()
    assert [] == story.changes
    assert ["a"] == [item.id for item in story.of(ev.DeliverablesListed)[1].deliverables]
    assert ("all_passed", 1, 1) == (story.ended.reason, story.ended.passed, story.ended.total)


def test_changes_of_the_folder_that_are_none_of_the_file(tmp_path: Path) -> None:
    """An unchanged status file and other files of the folder cause no event."""
    t = deliver_marbles(W=Writes(PENDING))
    project = DeliverLoop(tmp_path, [Turn(stream=t.cold("-W-a-d|"))], PENDING, t, t.hot("!!!!!!"))
    story = project.run(max_sessions=1)
    assert [0, 6] == story.times(ev.DeliverablesListed)
    assert [] == story.changes


def test_a_status_that_comes_back(tmp_path: Path) -> None:
    """A status that is set and reset is reported twice if it was seen in between."""
    t = deliver_marbles(O=Writes(ONE), Z=Writes(PENDING))
    project = DeliverLoop(tmp_path, [Turn(stream=t.cold("-O-Z-d|"))], PENDING, t, t.hot("--!-!"))
    story = project.run(max_sessions=1)
    assert [(2, "a", "pending", "passed"), (4, "a", "passed", "pending")] == story.changes


def test_a_watch_that_errors(tmp_path: Path) -> None:
    """A failing file watch is reported, as are missed changes at the session's end."""
    t = deliver_marbles(O=Writes(ONE), B=Writes(BOTH))
    t.error = OSError("no more watches")
    agent, watch = t.cold("-O-B-d|"), t.hot("--!#")
    project = DeliverLoop(tmp_path, [Turn(stream=agent)], PENDING, t, watch)
    story = project.run()
    assert ["completed"] == story.outcomes
    (warning,) = story.warnings
    assert f"{tmp_path}/.autonoe cannot be watched: no more watches" == warning
    assert [(2, "a", "pending", "passed"), (6, "b", "pending", "passed")] == story.changes
    t.check_subscriptions(agent, "^-----!")
    t.check_subscriptions(watch, "^--!")
    assert "all_passed" == story.ended.reason


def test_a_watch_that_cannot_begin(tmp_path: Path) -> None:
    """Each session reports the failed file watch and does its work."""
    t = deliver_marbles()
    turns = [Turn(stream=t.cold("-d|")), Turn(stream=t.cold("-d|"), leaves=BOTH)]
    story = DeliverLoop(tmp_path, turns, PENDING, t, throw(OSError("no"))).run()
    assert 2 == len(story.warnings)
    assert ["completed", "completed"] == story.outcomes


def test_each_session_has_its_own_watch(tmp_path: Path) -> None:
    """The folder is watched during sessions only, not in pauses."""
    t = deliver_marbles(B=Writes(BOTH))
    watch = t.hot("- 1m !")
    turns = [Turn(stream=t.cold("--d|")), Turn(stream=t.cold("B-d|"))]
    DeliverLoop(tmp_path, turns, PENDING, t, watch).run(session_pause=5.0)
    t.check_subscriptions(watch, "^--!", "8s ^--!")


def test_the_counts_of_a_session_that_crashed(tmp_path: Path) -> None:
    """The result counts the changes of a failed session, though they decided nothing."""
    failed = crash()
    turn = Turn(events=(), error=failed.error, leaves=BOTH)
    story = DeliverLoop(tmp_path, [turn], PENDING).run(max_retries=0)
    assert ("max_retries_exceeded", 2) == (story.ended.reason, story.ended.passed)
    assert 2 == len(story.changes)


def test_the_changes_of_an_interrupted_session(tmp_path: Path) -> None:
    """Changes of an interrupted session are reported and counted."""
    t = deliver_marbles(O=Writes(ONE))
    project = DeliverLoop(tmp_path, [Turn(stream=t.cold("-aO--------"))], PENDING, t)
    story = project.run(interrupt=t.hot("-----S"))
    assert [(5, "a", "pending", "passed")] == story.changes
    assert ("interrupted", 1) == (story.ended.reason, story.ended.passed)


def test_a_crash_that_has_passed_all(tmp_path: Path) -> None:
    """After a failed session the deliverables decide nothing: another one follows (AUT-058)."""
    failed = Turn(events=(), leaves={"a": "passed"}, error=crash().error)
    story = DeliverLoop(tmp_path, [failed, Turn()], {"a": "pending"}).run()
    assert ["error", "completed"] == story.outcomes
    assert "all_passed" == story.ended.reason


def test_an_execution_error_that_has_passed_all(tmp_path: Path) -> None:
    """After an execution error, which has a result, passed deliverables end the loop."""
    ended = ev.SessionEnded(outcome="failed", cost_usd=0.5, num_turns=3)
    error = AgentFailed("oh", reason="unknown")
    story = DeliverLoop(tmp_path, [Turn((ended,), {"a": "passed"}, error)], {"a": "pending"}).run()
    assert ("all_passed", 1) == (story.ended.reason, story.ended.sessions)


def test_a_stream_without_a_result(tmp_path: Path) -> None:
    """A session without a result completes at no cost, with a warning (AUT-026)."""
    story = DeliverLoop(
        tmp_path,
        [Turn((ev.AgentMessage(text="hm"),)), Turn(leaves={"a": "passed"})],
        {"a": "pending"},
    ).run()
    assert ["completed", "completed"] == story.outcomes
    assert ["session 1 reported no result"] == story.warnings
    first = story.of(ev.DeliverSessionEnded)[0]
    assert (None, "hm") == (first.cost_usd, first.message)
    assert ev.DeliverWarning in [type(event) for event in story.events[:4]]


# -- sessions that get nowhere end the deliverables loop


def test_a_change_of_a_status_is_progress(tmp_path: Path) -> None:
    """A changed status or file resets the count."""
    turns = [Turn(), Turn(leaves=ONE), Turn(), Turn(), Turn(), Turn()]
    states = ["s", "s", "s", "s", "t", "t", "t"]
    story = DeliverLoop(tmp_path, turns, PENDING, fingerprints=states).run(progress_patience=2)
    assert ("stalled", 6) == (story.ended.reason, story.ended.sessions)


def test_marks_are_progress(tmp_path: Path) -> None:
    """A session that verified a deliverable made progress."""
    start = dict.fromkeys("abcd", "passed")
    turns = [Turn(verifies=[name]) for name in start]
    story = DeliverLoop(tmp_path, turns, start, fingerprints=["s"] * 9).run(
        verify=True, progress_patience=1
    )
    assert ("all_verified", 4) == (story.ended.reason, story.ended.sessions)


def test_sessions_that_undo_each_other(tmp_path: Path) -> None:
    """Returning to an earlier state is not progress."""
    states = ["s", "t", "s", "t", "s", "t"]
    story = DeliverLoop(tmp_path, [Turn()] * 5, PENDING, fingerprints=states).run(
        progress_patience=3
    )
    assert ("stalled", "oscillating") == (story.ended.reason, story.of(NoProgress)[0].kind)
    assert "came back to the same state" in story.ended.error


def test_without_patience(tmp_path: Path) -> None:
    """Without patience the project is not fingerprinted, and the session limit ends the loop."""
    project = DeliverLoop(tmp_path, [Turn()] * 9, PENDING, fingerprints=[])
    story = project.run(progress_patience=None, max_sessions=9)
    assert "max_iterations" == story.ended.reason


def test_failures_have_a_count_of_their_own(tmp_path: Path) -> None:
    """A failed session does not count as one without progress."""
    failed = Turn((SessionEnded(outcome="failed", num_turns=1),))
    turns = [crash(), failed, crash(), Turn(), Turn()]
    story = DeliverLoop(tmp_path, turns, PENDING, fingerprints=["s"] * 3).run(progress_patience=2)
    assert ("stalled", 5) == (story.ended.reason, story.ended.sessions)


def test_a_limit_comes_before_a_stall(tmp_path: Path) -> None:
    """A termination rule takes precedence over a stall."""
    story = DeliverLoop(tmp_path, [Turn()] * 2, PENDING, fingerprints=["s"] * 3).run(
        progress_patience=2, max_sessions=2
    )
    assert "max_iterations" == story.ended.reason
    assert [] == story.of(NoProgress)


def test_files_that_are_no_progress(tmp_path: Path) -> None:
    """Changes of notes, of the status file and of `.cuggino` are no progress."""
    project = DeliverLoop(tmp_path, [Turn()], PENDING)
    looked: list[dict[str, Any]] = []

    def look(cwd: Path, **options: Any) -> Observable[str]:
        looked.append({"cwd": cwd, **options})
        return just("s")

    project.replace(fingerprint=look)
    project.run(progress_patience=1)
    excluded = (Path(".autonoe-note.md"), Path(".autonoe"), Path(".cuggino"))
    assert [{"cwd": tmp_path, "exclude": excluded, "plan": None}] * 2 == looked
