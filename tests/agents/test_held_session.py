"""A session that is spoken with from a thread beside the lane: how it is told to the lane."""

from __future__ import annotations

import pytest
from reactivex import abc
from reactivex.observer import Observer
from typing_extensions import override

from cuggino.agents.held_session import HeldSession
from cuggino.errors import AgentNotFound, LineTooLong, ProcessFailed, SpawnFailed
from cuggino.events import LlmAgentEvent
from cuggino.operators import LoopScheduler
from cuggino.testing import VirtualClock, no_leaks


class Session(HeldSession):
    """Notes what becomes of it."""

    def __init__(self, lane: abc.SchedulerBase) -> None:
        self.told: list[object] = []
        observer: Observer[LlmAgentEvent] = Observer(on_error=self.told.append)
        super().__init__(observer, lane)

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
    """The lane, in virtual time."""
    return VirtualClock()


def test_what_is_posted_happens_on_the_lane(clock: VirtualClock) -> None:
    """It waits for its turn, and comes to nothing when the session has ended by then."""
    one, other = Session(clock), Session(clock)
    for session in (one, other):
        session._post(session.say)
    assert [] == one.told
    other.dispose()
    clock.advance_by(1)
    other._post(other.say)
    clock.advance_by(1)
    assert (["said"], ["disposed"]) == (one.told, other.told)


def test_what_a_subscriber_raises(clock: VirtualClock) -> None:
    """It ends the session first, and is told then."""
    session, error = Session(clock), OSError("no")

    def refuse() -> None:
        raise error

    session._post(refuse)
    clock.advance_by(1)
    assert ["disposed", error] == session.told


def test_what_is_to_end_the_thread(clock: VirtualClock) -> None:
    """It ends the session as well, and goes on its way."""
    session = Session(clock)

    def leave() -> None:
        raise SystemExit(3)

    session._post(leave)
    with pytest.raises(SystemExit):
        clock.advance_by(1)
    assert ["disposed"] == session.told


def test_a_lane_that_is_closed() -> None:
    """Nobody is left to be told, and nothing is raised."""
    with no_leaks():
        lane = LoopScheduler()
        lane.close()
        session = Session(lane)
        session._post(session.say)
        assert session._is_over
    assert [] == session.told


def test_a_program_that_cannot_be_started(clock: VirtualClock) -> None:
    """It is told as an agent that is not there, when the session has ended."""
    session = Session(clock)
    session._on_error(SpawnFailed("agent", OSError("there is none")))
    disposed, error = session.told
    assert "disposed" == disposed
    assert isinstance(error, AgentNotFound)
    assert "cannot start agent: there is none" == error.message
    assert "check that the program is installed" == error.hint


def test_other_errors(clock: VirtualClock) -> None:
    """A program that failed is for the session to judge; a defect ends it, and is told."""
    session, defect = Session(clock), ZeroDivisionError()
    session._on_error(ProcessFailed("agent", 3, ""))
    assert ["crashed: "] == [str(told)[:9] for told in session.told]
    session._on_error(defect)
    assert ["disposed", defect] == session.told[1:]
