"""The edges `run` and `iterate`, and the behavior that all edges share."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest
import reactivex as rx
from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable
from reactivex.scheduler.eventloop import AsyncIOScheduler

from cuggino import LoopScheduler, iterate, run
from cuggino.processes import process_lines
from cuggino.testing import VirtualClock
from tests.edge_streams import Ticks, collect, nothing_left, silent
from tests.limits import LIMIT

pytestmark = pytest.mark.usefixtures("nothing_left")
__all__ = ["nothing_left"]

CONSUMERS: dict[str, Callable[[Observable[Any]], list[Any]]] = {
    "iterate": lambda stream: list(iterate(stream)),
    "aiterate": lambda stream: asyncio.run(collect(stream)),
}


def gathered_by_run(stream: Observable[Any]) -> list[Any]:
    seen: list[Any] = []
    run(stream, seen.append)
    return seen


CONSUMERS["run"] = gathered_by_run


@pytest.mark.parametrize("consume", CONSUMERS.values(), ids=CONSUMERS)
class TestEveryEdge:
    def test_yields_all_events_in_order(self, consume: Callable[..., list[Any]]) -> None:
        """Every event arrives once and in order; None is an event like any other."""
        assert [] == consume(rx.empty())
        assert [None, 0, 1] == consume(rx.of(None, 0, 1))
        assert list(range(500)) == consume(rx.from_iterable(range(500)))

    def test_raises_the_streams_error(self, consume: Callable[..., list[Any]]) -> None:
        """The error of the stream is raised unchanged."""
        error = ZeroDivisionError("boom")
        with pytest.raises(ZeroDivisionError) as caught:
            consume(rx.concat(rx.of(1), rx.throw(error)))
        assert error is caught.value

    def test_raises_what_ends_the_lane(self, consume: Callable[..., list[Any]]) -> None:
        """`sys.exit` in the stream itself leaves the edge, instead of blocking it indefinitely."""
        order: list[str] = []
        left = rx.concat(rx.of(1), rx.defer(lambda _: sys.exit(3)))
        with pytest.raises(SystemExit) as caught:
            consume(left.pipe(ops.finally_action(lambda: order.append("released"))))
        assert (3, ["released"]) == (caught.value.code, order)

    def test_releases_the_stream_before_returning(self, consume: Callable[..., list[Any]]) -> None:
        """`finally_action` has run before the edge returns."""
        order: list[str] = []
        consume(rx.timer(0.01).pipe(ops.finally_action(lambda: order.append("released"))))
        order.append("returned")
        assert ["released", "returned"] == order

    def test_runs_processes(self, consume: Callable[..., list[Any]]) -> None:
        """A process is a stream like any other and is reaped."""
        assert [b"a", b"b"] == consume(process_lines(["printf", "a\\nb\\n"]))


class TestRun:
    def test_returns_the_last_event(self) -> None:
        """`run` returns the last event, or None."""
        assert 3 == run(rx.of(1, 2, 3))
        assert run(rx.empty()) is None

    def test_raises_the_exception_of_on_next(self) -> None:
        """An exception in `on_next` disposes the stream and is raised."""
        ticks = Ticks()

        def refuse(n: int) -> None:
            if n == 3:
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            run(ticks.stream, refuse)
        assert (4, True) == (ticks.sent, ticks.released.is_set())

    @pytest.mark.parametrize("leave", [SystemExit(3), KeyboardInterrupt()], ids=repr)
    def test_raises_base_exceptions(self, leave: BaseException) -> None:
        """`sys.exit` in `on_next` ends the run instead of blocking it indefinitely."""
        ticks = Ticks()

        def refuse(_: int) -> None:
            raise leave

        with pytest.raises(type(leave)):
            run(ticks.stream, refuse)
        assert ticks.released.is_set()

    def test_uses_the_given_scheduler(self) -> None:
        """A given scheduler delivers the events on its thread and stays open."""
        lane = LoopScheduler()
        threads: set[int] = set()
        for _ in range(2):
            run(rx.of(1, 2), lambda _: threads.add(threading.get_ident()), scheduler=lane)
        assert 1 == len(threads)
        assert threading.get_ident() not in threads
        lane.close()

    @pytest.mark.parametrize("edge", [run, lambda *args, **kw: list(iterate(*args, **kw))])
    def test_refuses_the_scheduler_of_its_thread(self, edge: Callable[..., Any]) -> None:
        """Within an event of the lane that it is given, it would wait indefinitely."""
        lane = LoopScheduler()
        with pytest.raises(RuntimeError, match="thread of its own scheduler"):
            run(rx.of(1), lambda _: edge(rx.of(2), scheduler=lane), scheduler=lane)
        lane.close()

        async def within() -> None:
            edge(rx.of(1), scheduler=AsyncIOScheduler(asyncio.get_running_loop()))

        with pytest.raises(RuntimeError, match="thread of its own scheduler"):
            asyncio.run(within())

    @pytest.mark.parametrize("edge", [run, lambda *args, **kw: list(iterate(*args, **kw))])
    def test_notices_the_end_of_its_scheduler(self, edge: Callable[..., Any]) -> None:
        """The stream of a lane that is disposed of would never end."""
        lane, released, started = LoopScheduler(), threading.Event(), threading.Event()

        def end_lane() -> None:
            started.wait(LIMIT)
            lane.dispose()

        end = threading.Thread(target=end_lane)
        end.start()
        with pytest.raises(RuntimeError, match="scheduler has ended"):
            edge(silent(released, started), scheduler=lane)
        assert released.is_set()
        end.join()

    @pytest.mark.parametrize("edge", [run, lambda *args, **kw: list(iterate(*args, **kw))])
    def test_notices_that_an_event_loop_is_closed(self, edge: Callable[..., Any]) -> None:
        """The stream of an asyncio loop that is closed would never end."""
        loop, errors = asyncio.new_event_loop(), list[Exception]()
        released, started = threading.Event(), threading.Event()

        def use() -> None:
            try:
                edge(silent(released, started), scheduler=AsyncIOScheduler(loop))
            except Exception as error:
                errors.append(error)

        user = threading.Thread(target=use)
        user.start()
        loop.run_until_complete(asyncio.to_thread(started.wait, LIMIT))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
        user.join(LIMIT)
        assert ["the scheduler has ended before the stream"] == [*map(str, errors)]
        assert released.is_set()

    @pytest.mark.parametrize("edge", [run, lambda *args, **kw: list(iterate(*args, **kw))])
    def test_refuses_virtual_time(self, edge: Callable[..., Any]) -> None:
        """Nobody advances the clock while it waits."""
        with pytest.raises(RuntimeError, match="then advance the clock"):
            edge(rx.of(1), scheduler=VirtualClock())

    def test_interrupt_disposes_first(self) -> None:
        """A signal in the main thread disposes the stream and is then raised."""
        released, started = threading.Event(), threading.Event()
        main = threading.main_thread().ident
        assert main is not None

        def interrupt() -> None:
            started.wait(LIMIT)
            signal.pthread_kill(main, signal.SIGINT)

        helper = threading.Thread(target=interrupt)
        helper.start()
        with pytest.raises(KeyboardInterrupt):
            run(silent(released, started))
        assert released.is_set()
        helper.join()

    def test_interrupt_leaves_no_process(self, tmp_path: Path) -> None:
        """A Python that gets SIGINT terminates the process it runs, then itself by the signal."""
        file = tmp_path / "pid"
        program = (
            "import cuggino; from cuggino.processes import process_lines; "
            f"cuggino.run(process_lines(['sh', '-c', 'echo $$ > {file}; echo up; exec sleep 600']),"
            "lambda line: print('up', flush=True))"
        )
        with subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            assert b"up\n" == child.stdout.readline()
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=LIMIT)
        assert -signal.SIGINT == child.returncode
        assert errors.strip().endswith(b"KeyboardInterrupt")
        pid = int(file.read_text())
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie"


class TestIterate:
    def test_two_interrupts_leave_nothing(self) -> None:
        """A second Ctrl-C during disposal still completes it and closes the lane."""
        ending, released, main = threading.Event(), threading.Event(), threading.main_thread().ident
        assert main is not None

        def slowly() -> None:
            ending.set()
            again.wait(LIMIT)  # ends only after the second interrupt
            released.set()

        def interrupt() -> None:
            started.wait(LIMIT)
            signal.pthread_kill(main, signal.SIGINT)
            ending.wait(LIMIT)
            signal.pthread_kill(main, signal.SIGINT)
            again.set()

        started, again = threading.Event(), threading.Event()

        def subscribe(*_: Any) -> abc.DisposableBase:
            started.set()
            return Disposable(slowly)

        helper = threading.Thread(target=interrupt)
        helper.start()
        with pytest.raises(KeyboardInterrupt):
            list(iterate(Observable(subscribe)))
        assert released.wait(LIMIT)
        helper.join()

    def test_leaving_early_disposes(self) -> None:
        """`break` and `close` dispose the stream before they return."""
        ticks = Ticks()
        events = iterate(ticks.stream)
        assert [0, 1, 2] == [next(events) for _ in range(3)]
        assert isinstance(events, contextlib.AbstractContextManager) is False
        events.close()
        assert ticks.released.is_set()

    def test_leaving_a_source_that_never_waits(self) -> None:
        """`break` ends a source that leaves its lane no turn for the disposal."""
        for n in iterate(rx.from_iterable(count())):
            if n == 3:
                break

    def test_consumer_exception_disposes(self) -> None:
        """An exception in the loop's body disposes the stream when the generator is closed."""
        ticks = Ticks()

        def consume() -> None:
            for n in iterate(ticks.stream):
                if n == 2:
                    raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            consume()
        gc.collect()
        assert ticks.released.wait(LIMIT)

    def test_backpressure(self) -> None:
        """While the consumer works, at most two more events are produced."""
        ticks = Ticks()
        events = iterate(ticks.stream)
        ahead = []
        for n in events:
            threading.Event().wait(0.02)  # real time in which the producer could run ahead
            ahead.append(ticks.sent - (n + 1))
            if n == 10:
                break
        events.close()
        assert max(ahead) <= 2

    def test_iterator_is_lazy(self) -> None:
        """An iterator starts nothing before its first event is requested."""
        ticks = Ticks()
        events = iterate(ticks.stream)
        assert not ticks.started.is_set()
        del events

    def test_nested_iteration(self) -> None:
        """Nested loops over the same stream and others do not deadlock."""
        pairs = [(a, b) for a in iterate(rx.of(1, 2)) for b in iterate(rx.of("x", "y"))]
        assert [(1, "x"), (1, "y"), (2, "x"), (2, "y")] == pairs
        assert [3, 3] == [run(rx.of(1, 2, 3)) for _ in iterate(rx.of(1, 2))]

    def test_run_within_on_next(self) -> None:
        """`on_next` may run another stream to completion."""
        assert [(1, 9), (2, 9)] == [*_pairs(rx.of(1, 2), rx.of(8, 9))]

    def test_given_scheduler_stays_open(self) -> None:
        """A given scheduler runs the stream and can be used again."""
        lane = LoopScheduler()
        assert [[1], [1]] == [list(iterate(rx.of(1), scheduler=lane)) for _ in range(2)]
        lane.close()


def _pairs(outer: Observable[int], inner: Observable[int]) -> Iterator[tuple[int, int | None]]:
    seen: list[tuple[int, int | None]] = []
    run(outer, lambda n: seen.append((n, run(inner))))
    yield from seen
