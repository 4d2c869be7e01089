"""Status changes of deliverables during a session (AUT-115, AUT-116)."""

from __future__ import annotations

from pathlib import Path

from reactivex import throw

from cuggino import events as ev
from cuggino.errors import AgentFailed
from tests.loops.deliver_loop import DeliverLoop, Statuses, Turn, Writes, crash, deliver_marbles

START = {"a": "pending", "b": "pending"}
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
        **{"0": listing(START), "1": listing(ONE), "2": listing(BOTH)},
        x=changed("a", "pending", "passed"),
        y=changed("b", "pending", "passed"),
    )
    agent = t.cold("-O-Bad|")
    watch = t.hot("--!-!----!")
    project = DeliverLoop(tmp_path, [Turn(stream=agent)], START, t, watch)
    t.check(project.stream(), "(0s)-(x1)-(y2a)d(e2E|)")
    t.check_subscriptions(agent, "^-----!")
    t.check_subscriptions(watch, "^-----!")
    project.assert_released()


def test_missed_changes_are_reported_at_the_end(tmp_path: Path) -> None:
    """A change that the file watch missed is reported before the session's end."""
    t = deliver_marbles(B=Writes(BOTH))
    project = DeliverLoop(tmp_path, [Turn(stream=t.cold("--B-d|"))], START, t)
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
    t = deliver_marbles(N=Writes(START), O=Writes(ONE))
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
    t = deliver_marbles(W=Writes(START))
    project = DeliverLoop(tmp_path, [Turn(stream=t.cold("-W-a-d|"))], START, t, t.hot("!!!!!!"))
    story = project.run(max_sessions=1)
    assert [0, 6] == story.times(ev.DeliverablesListed)
    assert [] == story.changes


def test_a_status_that_comes_back(tmp_path: Path) -> None:
    """A status that is set and reset is reported twice if it was seen in between."""
    t = deliver_marbles(O=Writes(ONE), Z=Writes(START))
    project = DeliverLoop(tmp_path, [Turn(stream=t.cold("-O-Z-d|"))], START, t, t.hot("--!-!"))
    story = project.run(max_sessions=1)
    assert [(2, "a", "pending", "passed"), (4, "a", "passed", "pending")] == story.changes


def test_a_watch_that_errors(tmp_path: Path) -> None:
    """A failing file watch is reported, as are missed changes at the session's end."""
    t = deliver_marbles(O=Writes(ONE), B=Writes(BOTH))
    t.error = OSError("no more watches")
    agent, watch = t.cold("-O-B-d|"), t.hot("--!#")
    project = DeliverLoop(tmp_path, [Turn(stream=agent)], START, t, watch)
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
    story = DeliverLoop(tmp_path, turns, START, t, throw(OSError("no"))).run()
    assert 2 == len(story.warnings)
    assert ["completed", "completed"] == story.outcomes


def test_each_session_has_its_own_watch(tmp_path: Path) -> None:
    """The folder is watched during sessions only, not in pauses."""
    t = deliver_marbles(B=Writes(BOTH))
    watch = t.hot("- 1m !")
    turns = [Turn(stream=t.cold("--d|")), Turn(stream=t.cold("B-d|"))]
    DeliverLoop(tmp_path, turns, START, t, watch).run(session_pause=5.0)
    t.check_subscriptions(watch, "^--!", "8s ^--!")


def test_the_counts_of_a_session_that_crashed(tmp_path: Path) -> None:
    """The result counts the changes of a failed session, though they decided nothing."""
    failed = crash()
    turn = Turn(events=(), error=failed.error, leaves=BOTH)
    story = DeliverLoop(tmp_path, [turn], START).run(max_retries=0)
    assert ("max_retries_exceeded", 2) == (story.ended.reason, story.ended.passed)
    assert 2 == len(story.changes)


def test_the_changes_of_an_interrupted_session(tmp_path: Path) -> None:
    """Changes of an interrupted session are reported and counted."""
    t = deliver_marbles(O=Writes(ONE))
    project = DeliverLoop(tmp_path, [Turn(stream=t.cold("-aO--------"))], START, t)
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
