"""Sessions on a thread of their own, delivered on a scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest
from reactivex import abc
from reactivex.observer import Observer
from typing_extensions import override

from cuggino.agents.base.stream import HeldSession, Program, held
from cuggino.errors import AgentNotFound, LineTooLong, ProcessFailed, SpawnFailed
from cuggino.events import LlmAgentEvent
from cuggino.operators import LoopScheduler
from cuggino.testing import VirtualClock, no_leaks


class Session(HeldSession):
    """A session that records its notifications."""

    def __init__(self, lane: abc.SchedulerBase) -> None:
        self.told: list[object] = []
        observer: Observer[LlmAgentEvent] = Observer(on_error=self.told.append)
        super().__init__(Program(argv=["true"], cwd=Path(), env={}), observer, lane)

    @override
    def start(self) -> None:
        self.told.append("started")

    @override
    def dispose(self) -> None:
        self._is_over = True
        self.told.append("disposed")

    @override
    def _crashed(self, error: ProcessFailed | LineTooLong) -> None:
        self.told.append(f"crashed: {error.message}")

    def say(self) -> None:
        self.told.append("said")


@pytest.fixture
def clock() -> VirtualClock:
    """Return the scheduler, in virtual time."""
    return VirtualClock()


def test_posted_actions_run_on_the_scheduler(clock: VirtualClock) -> None:
    """A posted action waits for its turn and is dropped if the session has ended by then."""
    one, other = Session(clock), Session(clock)
    for session in (one, other):
        session._post(session.say)
    assert [] == one.told
    other.dispose()
    clock.advance_by(1)
    other._post(other.say)
    clock.advance_by(1)
    assert (["said"], ["disposed"]) == (one.told, other.told)


def test_an_exception_in_a_subscriber(clock: VirtualClock) -> None:
    """The session ends before the exception is emitted."""
    session, error = Session(clock), OSError("no")

    def refuse() -> None:
        raise error

    session._post(refuse)
    clock.advance_by(1)
    assert ["disposed", error] == session.told


def test_an_exception_that_exits(clock: VirtualClock) -> None:
    """The session ends and the exception propagates."""
    session = Session(clock)

    def leave() -> None:
        raise SystemExit(3)

    session._post(leave)
    with pytest.raises(SystemExit):
        clock.advance_by(1)
    assert ["disposed"] == session.told


def test_a_closed_scheduler() -> None:
    """Nothing is emitted or raised."""
    with no_leaks():
        lane = LoopScheduler()
        lane.close()
        session = Session(lane)
        session._post(session.say)
        assert session._is_over
    assert [] == session.told


def test_a_program_that_cannot_be_started(clock: VirtualClock) -> None:
    """The session ends with the error of a missing agent."""
    session = Session(clock)
    session._on_error(SpawnFailed("agent", OSError("there is none")))
    disposed, error = session.told
    assert "disposed" == disposed
    assert isinstance(error, AgentNotFound)
    assert "cannot start agent: there is none" == error.message
    assert "check that the program is installed" == error.hint


def test_other_errors(clock: VirtualClock) -> None:
    """The session handles a failed program; a defect ends it and is emitted."""
    session, defect = Session(clock), ZeroDivisionError()
    session._on_error(ProcessFailed("agent", 3, ""))
    assert ["crashed: "] == [str(told)[:9] for told in session.told]
    session._on_error(defect)
    assert ["disposed", defect] == session.told[1:]


def test_a_failed_start_disposes_of_the_session(clock: VirtualClock) -> None:
    """A session that cannot start is disposed of, and its exception reaches the subscriber."""
    made: list[Session] = []

    class Broken(Session):
        @override
        def start(self) -> None:
            raise OSError("no more files")

    def make(_observer: object, lane: abc.SchedulerBase) -> Session:
        made.append(Broken(lane))
        return made[0]

    with pytest.raises(OSError, match="no more files"):
        held(make).subscribe(scheduler=clock)
    assert ["disposed"] == made[0].told
