"""What a tool of a test has started: whether it runs, and whether it is gone.

A file of tests has words of its own (`sleep 31416`), so that its processes are known by them.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil
import pytest
from reactivex import Observable

from cuggino.events import Event, LlmAgentEvent, SessionEnded
from cuggino.operators import LoopScheduler


def running(command: str) -> list[int]:
    """The processes that run these words."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cmdline() == command.split():
                found.append(process.pid)
    return found


def wait_for(what: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until it is so; fails when it does not come about."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come about"
        threading.Event().wait(0.02)


def none_left(command: str) -> Callable[[], Iterator[None]]:
    """A fixture for every test of a file: nothing runs these words before and after it."""

    @pytest.fixture(autouse=True)
    def no_sleepers() -> Iterator[None]:
        assert [] == running(command)
        yield
        wait_for(lambda: not running(command), 5.0)

    return no_sleepers


def stubborn(command: str) -> str:
    """These words three times: in a session of its own, deaf to signals, and as they are."""
    return f"setsid {command} & (trap '' INT TERM; {command}) & {command}"


def disposed_in_a_tool(session: Observable[LlmAgentEvent], command: str) -> None:
    """Dispose of a session whose tool runs the `stubborn` words.

    They are gone when disposal returns, and nothing is told after it, no end of the session.
    """
    lane = LoopScheduler()
    seen: list[Event] = []
    held = session.subscribe(seen.append, scheduler=lane)
    wait_for(lambda: len(running(command)) == 3)
    held.dispose()
    assert [] == running(command)
    count = len(seen)
    lane.close()
    assert count == len(seen)
    assert not [event for event in seen if isinstance(event, SessionEnded)]


def killed_in_a_tool(
    session: Observable[LlmAgentEvent],
    command: str,
    *,
    is_program: Callable[[psutil.Process], bool],
    tools: int = 1,
) -> Exception:
    """Kill a session's program while `tools` processes of its tool run these words.

    The session ends with `SessionEnded` and the error that is returned, and the words are gone.
    """
    lane = LoopScheduler()
    events: list[Event] = []
    errors: list[Exception] = []
    ended = threading.Event()

    def fail(error: Exception) -> None:
        errors.append(error)
        ended.set()

    session.subscribe(events.append, fail, ended.set, scheduler=lane)
    wait_for(lambda: len(running(command)) == tools)
    (program,) = filter(is_program, psutil.Process().children(recursive=True))
    program.send_signal(signal.SIGKILL)
    assert ended.wait(60)
    lane.close()
    assert isinstance(events[-1], SessionEnded)
    assert [] == running(command)
    (error,) = errors
    return error
