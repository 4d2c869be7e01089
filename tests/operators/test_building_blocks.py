"""The small operators that RxPY's own cannot serve, and `StateRef`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, assert_type
from zoneinfo import ZoneInfo

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import Observable, abc, concat, just, operators as ops, throw
from reactivex.disposable import Disposable
from reactivex.subject import Subject

from cuggino.errors import AgentFailed, QuotaExceeded
from cuggino.events import AgentMessage, AgentRetry, Done, Event, LlmAgentEvent, Note
from cuggino.operators import (
    LoopScheduler,
    Schedule,
    Scope,
    acquire_release,
    catch_tag,
    interrupt_when,
    merge_at_most,
    on_loop,
    race_until,
    repeat_on,
    retry_session,
    until_terminal,
)
from cuggino.operators.alongside import alongside
from cuggino.operators.mapcat import mapcat
from cuggino.operators.merge_now import merge_now
from cuggino.operators.only import only
from cuggino.operators.state_ref import StateRef
from cuggino.testing import Marbles, VirtualClock
from tests.limits import LIMIT


class TestMapcat:
    def test_an_exception_of_the_function_is_the_streams_error(self) -> None:
        """The error comes at the value that caused it, and the source is released."""
        t = Marbles(a=1, b=0, error=ZeroDivisionError())
        source = t.cold("a-b-a|")

        def by_itself(n: int) -> list[int]:
            return [n // n]

        seen = t.record(source.pipe(mapcat(by_itself)))
        assert [
            (kind, type(value).__name__ if kind == "error" else value) for _, kind, value in seen
        ] == [("next", 1), ("error", "ZeroDivisionError")]
        t.check_subscriptions(source, "^-!")

    def test_nothing_is_emitted_after_disposal(self) -> None:
        """A subscriber that leaves in the middle of a list stops the list."""
        pulled: list[int] = []

        def numbers(_: Any) -> Any:
            for n in range(5):
                pulled.append(n)
                yield n

        t = Marbles(a=1)
        seen = t.record(t.cold("-a|").pipe(mapcat(numbers), ops.take(2)))
        assert [value for _, kind, value in seen if kind == "next"] == [0, 1]
        assert len(pulled) <= 3


class TestMergeNow:
    def test_the_first_error_ends_all(self) -> None:
        """An error releases the other sources and is the stream's error."""
        t = Marbles(a="a")
        one, two = t.cold("a------"), t.cold("--#")
        t.check(merge_now(one, two), "a-#")
        t.check_subscriptions(one, "^-!")

    def test_serves_the_first_value_inside_publish(self) -> None:
        """The value that `reactivex.merge` loses inside `publish` is there."""
        t = Marbles(a=1, b=2)

        def with_next(shared: rx.Observable[int]) -> rx.Observable[int]:
            next_one: Callable[[rx.Observable[int]], rx.Observable[int]] = ops.map(lambda n: n + 1)
            return merge_now(shared, shared.pipe(next_one))

        both = ops.publish(with_next)
        t.check(t.cold("(a|)").pipe(both), "(ab|)")

    def test_nothing_to_merge_completes(self) -> None:
        """Without sources it completes at once."""
        Marbles().check(merge_now(), "|")


class TestMergeAtMost:
    def streams(self, t: Marbles, *diagrams: str) -> list[Any]:
        return [t.cold(diagram) for diagram in diagrams]

    def merged(self, t: Marbles, when: str, streams: list[Any], n: int, **options: Any) -> Any:
        """Return the merge of streams that come at each letter of `when`."""
        upcoming = iter(streams)
        return t.cold(when).pipe(ops.map(lambda _: next(upcoming)), merge_at_most(n, **options))

    def test_one_at_a_time_is_concatenation(self) -> None:
        """With `n` of 1 each stream follows the one before it."""
        t = Marbles(a="a", b="b")
        t.check(self.merged(t, "aa|", self.streams(t, "a--b|", "-a|"), 1), "a--b-a|")

    def test_it_waits_for_its_source(self) -> None:
        """The merge completes when source and streams have, whichever is last."""
        t = Marbles(a="a")
        t.check(self.merged(t, "a----|", self.streams(t, "a|"), 2), "a----|")
        t.check(t.cold("--|").pipe(merge_at_most(2)), "--|")

    @pytest.mark.parametrize("n", [1, 3])
    def test_the_first_error_ends_all(self, n: int) -> None:
        """An error releases what runs, and what waits is never started."""
        t = Marbles(a="a")
        streams = self.streams(t, "a-#", *["a----"] * 4)
        t.check(self.merged(t, "(aaaaa)", streams, n), "a-#" if n == 1 else "(aaa)-#")
        for stream in streams[1:n]:
            t.check_subscriptions(stream, "^-!")
        assert [[]] * (5 - n) == [stream.subscriptions for stream in streams[n:]]

    def test_an_error_of_the_source_ends_all(self) -> None:
        """It releases the running streams."""
        t = Marbles(a="a")
        (stream,) = streams = self.streams(t, "a------")
        t.check(self.merged(t, "a--#", streams, 2), "a--#")
        t.check_subscriptions(stream, "^--!")

    def test_a_stream_is_released_before_the_next_one_starts(self) -> None:
        """Resources of a finished stream are free for its successor."""
        t = Marbles(a="a")
        held: list[str] = []

        def exclusive(_: Any) -> rx.Observable[Any]:
            return acquire_release(
                lambda: held.append("slot"), lambda _: t.cold("a-|"), lambda _: held.remove("slot")
            ).pipe(ops.do_action(lambda _: seen.append(len(held))))

        seen: list[int] = []
        t.check(t.cold("(aaa|)").pipe(ops.map(exclusive), merge_at_most(1)), "a-a-a-|")
        assert [1, 1, 1] == seen
        assert [] == held

    def test_many_streams_that_complete_at_once(self) -> None:
        """The stack stays constant over any number of streams."""
        many = rx.from_iterable(range(1_500)).pipe(ops.map(rx.just), merge_at_most(1))
        seen: list[int] = []
        many.subscribe(seen.append)
        assert list(range(1_500)) == seen

    def test_many_streams_that_complete_within_their_subscription(self) -> None:
        """The stack stays constant when all of them wait for one before them."""

        def at_once(observer: abc.ObserverBase[int], _: object = None) -> abc.DisposableBase:
            observer.on_next(1)
            observer.on_completed()
            return Disposable()

        first: Subject[int] = Subject()
        waiting = [first, *[Observable(at_once)] * 1_500]
        seen: list[int] = []
        rx.from_iterable(waiting).pipe(merge_at_most(1)).subscribe(seen.append)
        first.on_completed()
        assert [1] * 1_500 == seen

    def test_nothing_starts_after_a_failure(self) -> None:
        """A source that emits within its subscription may not have been released yet."""
        started: list[str] = []

        def failing(observer: abc.ObserverBase[str], _: object = None) -> abc.DisposableBase:
            observer.on_error(LookupError())
            return Disposable()

        def late(_observer: abc.ObserverBase[str], _: object = None) -> abc.DisposableBase:
            started.append("late")
            return Disposable()

        def two(
            observer: abc.ObserverBase[Observable[str]], _: object = None
        ) -> abc.DisposableBase:
            observer.on_next(Observable(failing))
            observer.on_next(Observable(late))
            return Disposable()

        ends: list[Exception] = []
        Observable(two).pipe(merge_at_most(2)).subscribe(on_error=ends.append)
        assert [LookupError] == [type(end) for end in ends]
        assert [] == started

    def test_everything_is_announced_then_released(self) -> None:
        """Disposal calls `on_release` once, and then releases all in order."""
        t = Marbles(a="a")
        order: list[str] = []
        streams = [
            t.cold("-----").pipe(ops.finally_action(partial(order.append, name)))
            for name in ("first", "second", "third", "never started")
        ]
        merged = self.merged(t, "(aaaa)", streams, 3, on_release=lambda: order.append("announced"))
        t.check(merged, "-", dispose_at=2)
        assert ["announced", "first", "second", "third"] == order

    def test_nothing_is_announced_when_nothing_runs(self) -> None:
        """A merge that completes has nothing to release."""
        t = Marbles(a="a")
        announced: list[bool] = []
        streams = self.streams(t, "a|", "a|")
        merged = self.merged(t, "aa|", streams, 1, on_release=lambda: announced.append(True))
        t.check(merged, "aa|")
        assert [] == announced

    @pytest.mark.parametrize("failing", ["first", "announcement"])
    def test_an_error_of_a_release_does_not_stop_the_others(self, failing: str) -> None:
        """All streams are released even if one of them, or `on_release`, raises."""
        released: list[str] = []

        def stream(name: str) -> rx.Observable[Any]:
            def release() -> None:
                released.append(name)
                if name == failing:
                    raise OSError(name)

            return acquire_release(lambda: None, lambda _: rx.never(), lambda _: release())

        def announce() -> None:
            if failing == "announcement":
                raise OSError(failing)

        source = rx.from_iterable([stream("first"), stream("second")])
        held = source.pipe(merge_at_most(2, on_release=announce)).subscribe()
        with pytest.raises(OSError, match=failing):
            held.dispose()
        assert ["first", "second"] == released

    def test_streams_that_cross_to_a_lane(self) -> None:
        """Whole runs can be merged, and disposed from another thread."""
        lane = LoopScheduler()
        released: list[str] = []
        begun = threading.Barrier(2)

        def run(name: str) -> rx.Observable[Any]:
            never: rx.Observable[Any] = rx.just(name).pipe(ops.concat(rx.never()))
            return on_loop(never.pipe(ops.finally_action(lambda: released.append(name))))

        def note(name: str) -> None:
            if name == "second":
                begun.wait(LIMIT)

        runs = rx.from_iterable([run("first"), run("second"), run("third")])
        merged = on_loop(runs.pipe(merge_at_most(2)))
        held = merged.subscribe(note, scheduler=lane)
        begun.wait(LIMIT)
        held.dispose()
        lane.close()
        assert ["first", "second"] == released

    def test_at_least_one_must_run(self) -> None:
        """A limit below one is a mistake of the caller."""
        with pytest.raises(ValueError, match="n is 0"):
            merge_at_most(0)


class TestRaceUntil:
    def race(self, t: Marbles, *streams: Any, **options: Any) -> Any:
        """Return the race of the streams until one of them emits `W`."""
        return rx.from_iterable(streams).pipe(race_until(lambda event: event == "W", **options))

    def test_all_fail(self) -> None:
        """Without a winner it completes with the last stream."""
        t = Marbles(x="x")
        one, two = t.cold("-x|"), t.cold("---x--|")
        t.check(self.race(t, one, two), "-x-x--|")
        t.check_subscriptions(one, "^-!")
        t.check_subscriptions(two, "^-----!")

    def test_the_error_of_one_ends_all(self) -> None:
        """An error before there is a winner releases all streams and is the error of the race."""
        t = Marbles(x="x")
        one, two = t.cold("-x------"), t.cold("---#")
        t.check(self.race(t, one, two), "-x-#")
        t.check_subscriptions(one, "^--!")

    def test_disposal_releases_all(self) -> None:
        """Who leaves the race ends every stream, after the announcement."""
        order: list[str] = []
        t = Marbles(x="x")
        one, two = t.cold("-x----"), t.cold("------")
        race = self.race(t, one, two, on_release=lambda: order.append("announced"))
        t.check(race, "-x", dispose_at=3)
        t.check_subscriptions(one, "^--!")
        t.check_subscriptions(two, "^--!")
        assert order == ["announced"]

    def test_losers_are_announced_before_they_are_released(self) -> None:
        """`on_release` comes after the winning event and before the first release."""
        order: list[str] = []
        t = Marbles(W="W")
        loser = t.cold("-----").pipe(ops.finally_action(lambda: order.append("released")))
        race = self.race(t, loser, t.cold("-W|"), on_release=lambda: order.append("announced"))
        t.check(race.pipe(ops.do_action(order.append)), "-W|")
        assert order == ["W", "announced", "released"]

    def test_a_winner_that_wins_again(self) -> None:
        """The release of the losers is announced once."""
        order: list[str] = []
        t = Marbles(W="W")
        race = self.race(
            t, t.cold("-----"), t.cold("-W-W|"), on_release=lambda: order.append("announced")
        )
        t.check(race, "-W-W|")
        assert order == ["announced"]

    def test_nothing_starts_after_a_winner(self) -> None:
        """Streams of a source that goes on are not started, and its end is not waited for."""
        t = Marbles(W="W", x="x")
        upcoming = iter([t.cold("-W-x|"), late := t.cold("x|")])
        source = t.cold("x--x---x")
        race = source.pipe(
            ops.map(lambda _: next(upcoming)), race_until(lambda event: event == "W")
        )
        t.check(race, "-W-x|")
        t.check_subscriptions(late)
        t.check_subscriptions(source, "^!")
        t.check(self.race(t), "|")

    def test_a_winner_at_once(self) -> None:
        """The first of several that win in the same instant is the only one."""
        t = Marbles(W="W")
        t.check(self.race(t, rx.just("W"), rx.just("W")), "(W|)")

    def test_an_error_of_the_function(self) -> None:
        """An exception of `wins` is the error of the race."""
        t = Marbles(a=0)

        def by_itself(n: int) -> bool:
            return n // n > 0

        seen = t.record(t.cold("(a|)").pipe(ops.map(rx.just), race_until(by_itself)))
        assert [kind for _, kind, _ in seen] == ["next", "error"]


class TestInterruptWhen:
    def test_ends_the_source_before_the_farewell(self) -> None:
        """The source is released, then the farewell is emitted, then the stream completes."""
        t = Marbles(a="a", b="b", X="X", n=0)
        order: list[str] = []
        source, notifier = t.cold("a--b--a--a"), t.hot("-----n")
        stream = source.pipe(
            ops.finally_action(lambda: order.append("released")),
            interrupt_when(notifier, "X"),
            ops.do_action(order.append),
        )
        t.check(stream, "a--b-(X|)")
        assert order == ["a", "b", "released", "X"]
        t.check_subscriptions(source, "^----!")
        t.check_subscriptions(notifier, "^----!")

    def test_an_error_of_the_release_is_the_streams_error(self) -> None:
        """A source that cannot be released fails the stream, without a farewell."""

        def fail() -> None:
            raise t.error

        t = Marbles(n=0)
        source: Observable[str] = rx.never().pipe(ops.finally_action(fail))
        t.check(source.pipe(interrupt_when(t.hot("--n"), "X")), "--#")

    def test_a_source_that_ends_first_is_not_interrupted(self) -> None:
        """Completion and error of the source release the notifier, without a farewell."""
        t = Marbles(a="a", n=0)
        notifier = t.hot("---------n")
        t.check(t.cold("a-|").pipe(interrupt_when(notifier, "X")), "a-|")
        t.check_subscriptions(notifier, "^-!")
        other = Marbles(a="a", n=0)
        other.check(other.cold("a-#").pipe(interrupt_when(other.hot("-----n"), "X")), "a-#")

    def test_the_notifier_is_subscribed_first(self) -> None:
        """A notifier that fires in its subscription keeps the source from being started."""
        t = Marbles(a="a", X="X")
        source = t.cold("a-a|")

        def at_once(observer: Any, _scheduler: Any = None) -> Any:
            observer.on_next(1)
            return Disposable()

        t.check(source.pipe(interrupt_when(rx.create(at_once), "X")), "(X|)")
        assert source.subscriptions == []

    def test_a_notifier_that_only_completes_interrupts_nothing(self) -> None:
        """Completion of the notifier does not interrupt; its error is the stream's error."""
        t = Marbles(a="a", b="b")
        t.check(t.cold("a--b|").pipe(interrupt_when(t.hot("-|"), "X")), "a--b|")
        other = Marbles(a="a", b="b")
        source = other.cold("a--b|")
        order: list[str] = []
        released = source.pipe(ops.finally_action(lambda: order.append("released")))
        stream: rx.Observable[Any] = released.pipe(interrupt_when(other.hot("-#"), "X"))
        watched = stream.pipe(ops.do_action(order.append, lambda _: order.append("failed")))
        other.check(watched, "a#")
        other.check_subscriptions(source, "^!")
        assert ["a", "released", "failed"] == order


class TestUntilTerminal:
    def operator(self) -> Any:
        return until_terminal(str.isupper, linger=5, settle=lambda event: event == "s")

    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            ("a-T-x-s|", "a-----s(T|)"),
            # A second terminal event, and an error after the first one, do not count.
            ("T-U|", "---(T|)"),
            ("T-#", "--(T|)"),
            # A source without one ends as it does.
            ("a-|", "a-|"),
            ("a-#", "a-#"),
        ],
    )
    def test_the_terminal_event_comes_last(self, source: str, expected: str) -> None:
        """Settling events pass, others are dropped, and the terminal event ends the stream."""
        t = Marbles(a="a", T="T", U="U", s="s", x="x")
        played = t.cold(source)
        t.check(played.pipe(self.operator()), expected)
        assert [(0, len(source) - 1)] == played.subscriptions

    def test_a_source_that_lingers_is_ended(self) -> None:
        """After `linger` seconds the source is released, before the terminal event is emitted."""
        t = Marbles(a="a", T="T", x="x")
        order: list[str] = []
        source = t.cold("a-T-x-x-x-x-x-x")
        stream = source.pipe(
            ops.finally_action(lambda: order.append("released")),
            self.operator(),
            ops.do_action(order.append),
        )
        t.check(stream, "a------(T|)")
        assert order == ["a", "released", "T"]
        t.check_subscriptions(source, "^------!")

    def test_a_second_terminal_event_does_not_prolong_the_wait(self) -> None:
        """The time to linger counts from the first one."""
        t = Marbles(T="T", U="U")
        t.check(t.cold("T--U--------").pipe(self.operator()), "-----(T|)")

    def test_a_reopened_source_goes_on(self) -> None:
        """An event that `reopen` accepts voids earlier terminal events and the time to linger."""
        t = Marbles(a="a", T="T", U="U", r="r", x="x")
        operator = until_terminal(
            str.isupper, linger=5, choose=lambda told: told[-1], reopen=lambda event: event == "r"
        )
        source = t.cold("a-T-U-r-x----x-U-------")
        t.check(source.pipe(operator), "a-----r-x----x------(U|)")
        t.check_subscriptions(source, "^-------------------!")
        t = Marbles(T="T", r="r")
        t.check(t.cold("r-T-r|").pipe(operator), "r---r|")


class TestAcquireRelease:
    def play(self, use: Any, **kwargs: Any) -> tuple[list[str], list[Any]]:
        order: list[str] = []
        t = Marbles(a="a")

        def acquire() -> str:
            order.append("acquired")
            return "resource"

        stream = acquire_release(
            acquire,
            lambda resource: use(t, resource),
            lambda resource: order.append(f"released {resource}"),
        )
        return order, t.record(stream, **kwargs)

    def test_releases_on_completion_error_and_disposal(self) -> None:
        """However the stream ends, the resource is released once."""
        for diagram, dispose_at in (("a-|", None), ("a-#", None), ("a----", 2)):
            order, _ = self.play(lambda t, _r, d=diagram: t.cold(d), dispose_at=dispose_at)
            assert order == ["acquired", "released resource"]

    def test_releases_when_use_raises(self) -> None:
        """An exception in `use` is the stream's error, after the release."""

        def use(_t: Any, _resource: Any) -> Any:
            raise ValueError("use")

        order, seen = self.play(use)
        assert order == ["acquired", "released resource"]
        assert [(when, kind, str(value)) for when, kind, value in seen] == [(0, "error", "use")]

    def test_releases_when_the_subscription_raises(self) -> None:
        """An exception while subscribing releases the resource."""

        def subscribe(_observer: Any, _scheduler: Any = None) -> Any:
            raise ValueError("subscribe")

        order, seen = self.play(lambda _t, _r: rx.create(subscribe))
        assert order == ["acquired", "released resource"]
        assert [kind for _, kind, _ in seen] == ["error"]

    def test_each_subscription_has_its_own_resource(self) -> None:
        """Two subscriptions acquire and release twice."""
        order: list[str] = []
        stream = acquire_release(
            lambda: order.append("acquired"), lambda _: rx.of(1), lambda _: order.append("released")
        )
        stream.subscribe()
        stream.subscribe()
        assert order == ["acquired", "released"] * 2

    def test_the_stream_is_released_before_the_resource(self) -> None:
        """A disposal releases in the reverse order, as the end of the stream does."""
        order: list[str] = []
        for end in (None, 2):
            order.clear()
            t = Marbles(a="a")
            source = t.cold("a-|" if end is None else "a---")
            stream = acquire_release(
                lambda: "resource",
                lambda _: source.pipe(ops.finally_action(lambda: order.append("stream"))),
                order.append,
            )
            t.record(stream, dispose_at=end)
            assert order == ["stream", "resource"]


class TestScope:
    def test_releases_what_it_acquired_in_reverse_order(self) -> None:
        """Each resource is released once, with itself, the last one first."""
        order: list[str] = []
        with Scope() as scope:
            assert "lock" == scope.acquire(lambda: "lock", order.append)
            scope.acquire(lambda: "folder", order.append)
            assert [] == order
        scope.close()
        assert ["folder", "lock"] == order

    def test_an_error_of_a_release_does_not_stop_the_others(self) -> None:
        """All are released, and the first error is raised."""
        order: list[str] = []

        def fail(resource: str) -> None:
            order.append(resource)
            raise OSError(resource)

        scope = Scope()
        scope.acquire(lambda: "a", order.append)
        scope.acquire(lambda: "b", fail)
        scope.acquire(lambda: "c", fail)
        with pytest.raises(OSError, match="c"):
            scope.close()
        assert ["c", "b", "a"] == order

    def test_an_interruption_of_a_release_does_not_stop_the_others(self) -> None:
        """Ctrl-C during a release is raised when all others have been released, too."""
        order: list[str] = []

        def fail(resource: str) -> None:
            order.append(resource)
            raise KeyboardInterrupt if resource == "b" else OSError

        scope = Scope()
        scope.acquire(lambda: "a", fail)
        scope.acquire(lambda: "b", fail)
        scope.acquire(lambda: "c", fail)
        with pytest.raises(KeyboardInterrupt):
            scope.close()
        assert ["c", "b", "a"] == order


class TestCatchTag:
    def test_an_error_of_the_release_is_the_streams_error(self) -> None:
        """A source that cannot be released is not succeeded by another one."""
        failure = OSError("still busy")

        def fail() -> None:
            raise failure

        def subscribe(observer: abc.ObserverBase[str], _: object = None) -> abc.DisposableBase:
            failing.append(observer)
            return Disposable(fail)

        def handled(_: QuotaExceeded) -> Observable[str]:
            return rx.of("handled")

        failing, ends = list[abc.ObserverBase[str]](), list[Exception]()
        stream = Observable(subscribe).pipe(catch_tag(QuotaExceeded, handled))
        stream.subscribe(on_next=pytest.fail, on_error=ends.append)
        failing[0].on_error(QuotaExceeded("limit"))
        assert ends == [failure]

    def test_an_error_of_the_handler_is_the_streams_error(self) -> None:
        """The source is released by then; errors of other classes never reach the handler."""
        t = Marbles(q=QuotaExceeded("limit"), f=AgentFailed("x", reason="crash"))

        def handle(error: QuotaExceeded) -> rx.Observable[Any]:
            raise t.events["f"] from error

        source = t.cold("-q")
        t.check(source.pipe(catch_tag(QuotaExceeded, handle)), "-f")
        t.check_subscriptions(source, "^!")


def letters() -> Marbles:
    return Marbles(a="a", b="b", x="x", y="y", z="z")


@pytest.mark.parametrize(
    ("source", "other", "expected", "ends"),
    [
        ("-a--b--|", "--x--y--z--", "-ax-by-|", [7, 7]),
        ("-a---b|", "--x|", "-ax--b|", [6, 3]),
        ("-a---b|", "--#", "-a#", [2, 2]),
        ("-a#", "x--y", "xa#", [2, 2]),
        ("(a|)", "x-x", "(xa|)", [0, 0]),
    ],
    ids=["the source ends", "the other ends", "the other fails", "the source fails", "at once"],
)
def test_both_are_heard_while_the_source_lasts(
    source: str, other: str, expected: str, ends: list[float]
) -> None:
    """The end of the source, and any error, ends both, before it is passed on.

    The end of the other changes nothing. The other is subscribed first.
    """
    t = letters()
    both = [t.cold(source), t.cold(other)]
    seen: list[float | None] = []

    def look(_: object = None) -> None:
        seen.extend(stream.subscriptions[0][1] for stream in both)

    t.check(both[0].pipe(alongside(both[1]), ops.do_action(None, look, look)), expected)
    assert ends == seen


def test_the_others_are_subscribed_in_order() -> None:
    """Immediate events of the others precede those of the source."""
    t = letters()
    t.check(t.cold("(a|)").pipe(alongside(t.cold("x-x"), t.cold("(y|)"))), "(xya|)")


def test_a_source_that_ends_at_once() -> None:
    """It completes within `subscribe`, and leaves nothing subscribed."""
    t = letters()
    other = t.hot("-x")

    def subscribe(
        observer: abc.ObserverBase[object], _scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        observer.on_completed()
        return Disposable()

    t.check(Observable(subscribe).pipe(alongside(other)), "|")
    assert [(0, 0)] == other.subscriptions


def test_it_can_be_subscribed_again() -> None:
    """Each subscription has its own end."""
    t = letters()
    stream = just("a").pipe(alongside(throw(t.error).pipe(ops.delay_subscription(5))))
    t.check(concat(stream, stream), "(aa|)")


EVENTS: dict[str, Any] = {
    "m": AgentMessage(text="m"),
    "d": Done(content="d"),
    "n": Note(content="n"),
    "x": "text",
}


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((Done,), "--d-|"),
        ((Done, Note), "--dn|"),
        ((LlmAgentEvent,), "-m--|"),
        ((Event,), "-mdn|"),
        ((Done | Note,), "--dn|"),
        ((Done | Note, str), "x-dn|"),
    ],
)
def test_events_of_these_classes_pass(kinds: tuple[Any, ...], expected: str) -> None:
    """A subclass passes as its base, and whatever is no event is dropped like any other value."""
    t = Marbles(**EVENTS)
    t.check(t.cold("xmdn|").pipe(only(*kinds)), expected)


def test_classes_are_required() -> None:
    """Nothing, or what is no class, is an error where it is written."""
    with pytest.raises(TypeError, match="needs the classes"):
        only()
    with pytest.raises(TypeError):
        only("Done")  # type: ignore[call-overload]


def test_types() -> None:
    """A type checker knows what passes (mypy checks this file)."""
    t = Marbles(**EVENTS)
    stream: Observable[Event] = t.cold("mdn|")
    assert_type(stream.pipe(only(Done)), Observable[Done])
    assert_type(stream.pipe(only(Done, Note)), Observable[Done | Note])
    three = stream.pipe(only(Done, Note, AgentMessage))
    assert_type(three, Observable[Done | Note | AgentMessage])
    t.check(three, "mdn|")


ROME = ZoneInfo("Europe/Rome")
NIGHTLY = Schedule.cron("30 2 * * *", "Europe/Rome")


def marbles(day: str) -> Marbles:
    """Return marbles whose second 0 is 2 am of that day in Rome."""
    start = datetime.fromisoformat(f"{day} 02:00").replace(tzinfo=ROME).astimezone(UTC)
    down = AgentFailed("down", reason="connection")
    return Marbles(clock=VirtualClock(start=start), error=down, a="a")


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2026-06-06", "a-- 29m57s a-- 23h59m57s a--|"),
        ("2026-03-28", "a-- 29m57s a-- 23h29m57s a--|"),  # at 03:00, as 02:30 is skipped
        ("2026-10-24", "a-- 29m57s a-- 23h59m57s a--|"),  # at the first 02:30
        ("2026-10-25", "a-- 29m57s a-- 24h59m57s a--|"),
    ],
)
def test_each_night(day: str, expected: str) -> None:
    """The work of a night, which takes three seconds, does not delay that of the next one."""
    t = marbles(day)
    t.check(t.cold("a--|").pipe(repeat_on(NIGHTLY.times(2))), expected)


def test_a_retry_at_night() -> None:
    """A failed session is tried again when the expression is due."""
    t = marbles("2026-06-06")
    source, again = t.cold("--#"), t.cold("-|")
    seen = t.record(source.pipe(retry_session(NIGHTLY, again=lambda _: again)), until=90_000)
    assert [1798.0] == [event.retry_in for _, _, event in seen if isinstance(event, AgentRetry)]
    assert (1801, "completed", None) == seen[-1]


@given(st.lists(st.integers()), st.integers(0, 9))
def test_a_subscriber_sees_the_rest_of_all_values(values: list[int], when: int) -> None:
    """Whenever it subscribes: the value of that moment, and all that follow, equal ones too."""
    ref, seen = StateRef(-1), list[int]()
    for index, value in enumerate(values):
        if index == when:
            ref.changes.subscribe(seen.append)
        ref.set(value)
    assert seen == ([-1, *values][when:] if when < len(values) else [])
    assert ref.value == (values[-1] if values else -1)
    assert ref.update(lambda value: value + 1) == ref.value == [-1, *values][-1] + 1


def test_a_value_set_by_a_subscriber() -> None:
    """All subscribers see the values in the order in which they were set, the last one last."""
    ref, first, last = StateRef(0), list[int](), list[int]()

    def halve(value: int) -> None:
        first.append(value)
        if value > 1:
            ref.set(value // 2)
            assert ref.value == value // 2

    ref.changes.subscribe(halve)
    ref.changes.subscribe(last.append)
    ref.set(8)
    assert [0, 8, 4, 2, 1] == first == last
    assert 1 == ref.value


def test_a_value_set_while_subscribing() -> None:
    """A subscriber that sets a value when it gets the first one sees both."""
    ref, seen = StateRef(0), list[int]()
    ref.changes.pipe(ops.do_action(lambda n: ref.set(1) if n == 0 else None)).subscribe(seen.append)
    assert [0, 1] == seen
    assert 1 == ref.value


def test_an_exception_where_nobody_handles_it() -> None:
    """A subscriber without `on_error` raises where the value is set; the next one is emitted."""
    ref, seen = StateRef(0), list[int]()

    def fail(value: int) -> None:
        if value == 1:
            ref.set(2)
            raise KeyError(value)

    ref.changes.subscribe(fail)
    ref.changes.subscribe(seen.append)
    with pytest.raises(KeyError):
        ref.set(1)
    assert 2 == ref.value
    ref.set(3)
    assert [0, 2, 3] == seen


def test_a_disposed_subscriber_sees_nothing_more() -> None:
    """Disposal ends it, also in the middle of a change."""
    ref, seen = StateRef(0), list[int]()
    held = ref.changes.subscribe(seen.append)
    ref.changes.subscribe(lambda n: held.dispose() if n == 2 else None)
    for value in (1, 2, 3):
        ref.set(value)
    assert [0, 1, 2] == seen


def test_a_failing_subscriber() -> None:
    """Its exception is its own error; neither the one who sets nor the others notice."""
    ref, errors, seen = StateRef(1), list[Exception](), list[int]()

    def inverse(value: int) -> int:
        return 1 // value

    ref.changes.pipe(ops.map(inverse)).subscribe(lambda _: None, errors.append)

    def fail(value: int) -> None:
        if value == 0:
            raise KeyError(value)

    ref.changes.subscribe(fail, errors.append)
    ref.changes.subscribe(seen.append)
    ref.set(0)
    ref.set(2)
    assert [ZeroDivisionError, KeyError] == [type(error) for error in errors]
    assert [1, 0, 2] == seen


@pytest.mark.parametrize(("at", "expected"), [(0, "(X|)"), (3, "a--(X|)")])
def test_a_state_interrupts_a_stage(at: int, expected: str) -> None:
    """The state of a flag ends a stream when it is set, or at once if it was set before."""
    t = Marbles(a="a", X="X")
    is_asked = StateRef(False)
    stop = is_asked.changes.pipe(ops.filter(bool))
    if not at:
        is_asked.set(True)
    else:
        t.scheduler.schedule_relative(at, lambda *_: is_asked.set(True))
    t.check(t.cold("a-----").pipe(interrupt_when(stop, "X")), expected)
