"""The thread on which `process_lines` emits, and running it to its end."""

from __future__ import annotations

import asyncio

import pytest
from reactivex import operators as ops
from reactivex.scheduler import EventLoopScheduler, NewThreadScheduler

from cuggino.processes import process_lines
from tests.processes.subscribers import Recorder

pytestmark = pytest.mark.usefixtures("enclosed")


def test_all_is_told_on_the_scheduler_of_the_subscription() -> None:
    """Every line comes on the thread of the scheduler that was given, which stays open."""
    lane = EventLoopScheduler()
    recorder = Recorder(process_lines(["seq", "1000"]), scheduler=lane).wait()
    again = Recorder(process_lines(["seq", "1000"]), scheduler=lane).wait()
    try:
        assert len(recorder.items) == 1000
        assert len(recorder.threads | again.threads) == 1
    finally:
        lane.dispose()


def test_a_scheduler_of_many_threads_does_not_mix_lines_up() -> None:
    """A scheduler that is not serial is replaced by a private thread."""
    recorder = Recorder(process_lines(["seq", "20000"]), scheduler=NewThreadScheduler()).wait()
    assert [b"%d" % number for number in range(1, 20001)] == recorder.items
    assert len(recorder.threads) == 1


def test_blocking_run_gives_the_last_line() -> None:
    """`Observable.run()` works as for any other stream."""
    assert process_lines(["seq", "3"]).run() == b"3"


def test_await_gives_the_list_on_the_event_loop() -> None:
    """`await` in an asyncio program gets its result without another timer waking the loop."""

    async def main() -> list[bytes]:
        return await asyncio.wait_for(process_lines(["seq", "3"]).pipe(ops.to_list()), 10)

    assert asyncio.run(main()) == [b"1", b"2", b"3"]
