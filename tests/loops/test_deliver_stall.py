"""Sessions that get nowhere end the deliverables loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reactivex import Observable, just

from cuggino.agents.base import SpawnOptions
from cuggino.edges import run
from cuggino.events import DeliverEnded, NoProgress, SessionEnded
from cuggino.stages import fingerprint_stage
from tests.loops.deliver_loop import DeliverLoop, Sessions, Turn, crash

START = {"a": "pending", "b": "pending"}
ONE = {"a": "passed", "b": "pending"}


def test_a_change_of_a_status_is_progress(tmp_path: Path) -> None:
    """A changed status or file resets the count."""
    turns = [Turn(), Turn(leaves=ONE), Turn(), Turn(), Turn(), Turn()]
    states = ["s", "s", "s", "s", "t", "t", "t"]
    story = DeliverLoop(tmp_path, turns, START, fingerprints=states).run(progress_patience=2)
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
    story = DeliverLoop(tmp_path, [Turn()] * 5, START, fingerprints=states).run(progress_patience=3)
    assert ("stalled", "oscillating") == (story.ended.reason, story.of(NoProgress)[0].kind)
    assert "came back to the same state" in story.ended.error


def test_without_patience(tmp_path: Path) -> None:
    """Without patience the project is not fingerprinted, and the session limit ends the loop."""
    project = DeliverLoop(tmp_path, [Turn()] * 9, START, fingerprints=[])
    story = project.run(progress_patience=None, max_sessions=9)
    assert "max_iterations" == story.ended.reason


def test_failures_have_a_count_of_their_own(tmp_path: Path) -> None:
    """A failed session does not count as one without progress."""
    failed = Turn((SessionEnded(outcome="failed", num_turns=1),))
    turns = [crash(), failed, crash(), Turn(), Turn()]
    story = DeliverLoop(tmp_path, turns, START, fingerprints=["s"] * 3).run(progress_patience=2)
    assert ("stalled", 5) == (story.ended.reason, story.ended.sessions)


def test_a_limit_comes_before_a_stall(tmp_path: Path) -> None:
    """A termination rule takes precedence over a stall."""
    story = DeliverLoop(tmp_path, [Turn()] * 2, START, fingerprints=["s"] * 3).run(
        progress_patience=2, max_sessions=2
    )
    assert "max_iterations" == story.ended.reason
    assert [] == story.of(NoProgress)


def test_files_that_are_no_progress(tmp_path: Path) -> None:
    """Changes of notes, of the status file and of `.cuggino` are no progress."""
    project = DeliverLoop(tmp_path, [Turn()], START)
    looked: list[dict[str, Any]] = []

    def look(cwd: Path, **options: Any) -> Observable[str]:
        looked.append({"cwd": cwd, **options})
        return just("s")

    project.replace(fingerprint=look)
    project.run(progress_patience=1)
    excluded = (Path(".autonoe-note.md"), Path(".autonoe"), Path(".cuggino"))
    assert [{"cwd": tmp_path, "exclude": excluded, "plan": None}] * 2 == looked


class Writing(Sessions):
    """Writes notes in every session, and code in the first."""

    def turn(self, options: SpawnOptions) -> Turn:
        number = len(self.spawned)
        (self.project / ".autonoe-note.md").write_text(f"note {number}")
        if number == 0:
            (self.project / "code.py").write_text("print()")
        return super().turn(options)


def test_notes_alone_in_a_real_project(tmp_path: Path) -> None:
    """In real files, rewritten notes and statuses are no progress, and code is."""
    project = DeliverLoop(tmp_path, [Turn()] * 4, START, sessions=Writing)
    project.replace(fingerprint=fingerprint_stage)
    seen: list[Any] = []
    run(project.stream(progress_patience=2), seen.append)
    assert isinstance(seen[-1], DeliverEnded)
    assert ("stalled", 3) == (seen[-1].reason, seen[-1].sessions)
