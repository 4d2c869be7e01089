"""Streams as drawings, in virtual time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable
from reactivex.subject import Subject

from cuggino.testing.clock import VirtualClock, seconds
from cuggino.testing.diagrams import Diagram, Seen, difference, is_class, recorder, same

__all__ = ["DrawnStream", "Marbles", "Seen"]


class Marbles:
    """A drawing board for streams: it makes them from diagrams and compares them with diagrams.

    ::

        t = Marbles(a=AgentMessage(text="hi"), d=Done(content=""))
        agent = t.cold("-a-d|")
        t.check(agent.pipe(ops.delay(1)), "--a-d|")
        t.check_subscriptions(agent, "^---!")

    One character is one second:

    - `-` nothing happens;
    - a letter or digit is its event; if it stands for an exception, the stream fails with it;
    - `|` is completion, `#` the error `error=`, by default `RuntimeError("#")`;
    - `(ab|)` happens at one instant and takes one second as well;
    - a duration such as `29s`, `5m`, `2h30m`, `100ms` between spaces passes that time; other spaces
      are ignored.

    An *expected* value may be less exact: a class matches every event or error of it. Errors match
    by class and message; they need not be the same object.

    `clock` is the virtual time to use, for example that of a `VirtualRuntime` whose agents are
    drawn. The default is a clock of its own.
    """

    def __init__(
        self,
        *,
        error: Exception | None = None,
        clock: VirtualClock | None = None,
        **events: Any,
    ) -> None:
        self.events = events
        self.error = error or RuntimeError("#")
        self.scheduler = clock or VirtualClock()
        self._hot: list[_Hot] = []
        self._drawn: list[DrawnStream] = []
        self._zero = 0.0
        self._recorded = False

    @property
    def clock(self) -> VirtualClock:
        """Return the clock; it is the scheduler to subscribe with."""
        return self.scheduler

    @property
    def now(self) -> float:
        """Return the current virtual second, counted from the latest `record` after the first."""
        return round(self.scheduler.elapsed - self._zero, 3)

    def at(self, when: float | str | timedelta) -> datetime:
        """Return the moment of a virtual second."""
        return self.scheduler.at(self._zero + seconds(when))

    def cold(self, diagram: str) -> DrawnStream:
        """Make a stream that begins with its subscription."""
        return self._keep(_Cold(self, diagram, self._playable(diagram)))

    def hot(self, diagram: str) -> DrawnStream:
        """Make a stream that runs from second 0 of the test, with or without subscribers."""
        hot = _Hot(self, diagram, self._playable(diagram))
        self._hot.append(hot)
        return self._keep(hot)

    def record(
        self,
        stream: Observable[Any],
        *,
        until: float | str | timedelta = 1e6,
        dispose_at: float | str | timedelta | None = None,
        subscription: str | None = None,
    ) -> list[Seen]:
        """Subscribe at second 0, let time pass until `until`, return the notifications.

        `dispose_at` is when the subscription is disposed. `subscription` draws both: `--^---!`
        subscribes at second 2 and disposes at second 6. Each further call starts again at second 0.
        """
        if self._recorded:
            self._zero = self.scheduler.elapsed
        self._recorded = True
        seen: list[Seen] = []
        begin, leave = Diagram(subscription or "^").subscription()
        ends = leave if dispose_at is None else seconds(dispose_at)
        held = CompositeDisposable()
        drawn = tuple(self._hot)  # one that is drawn by the subscription begins with its subscriber
        for hot in drawn:
            hot.renew()

        def subscribe(*_: object) -> None:
            observer = recorder(seen, lambda: self.now)
            held.add(stream.subscribe(observer, scheduler=self.scheduler))

        if begin:
            self.scheduler.schedule_absolute(self.at(begin), subscribe)
        else:
            subscribe()
        # After the subscription, so that an event of second 0 is seen.
        for hot in drawn:
            hot.begin()
        if ends is not None:
            self.scheduler.schedule_absolute(self.at(ends), lambda *_: held.dispose())
        self.scheduler.advance_to(self.at(until))
        held.dispose()
        return seen

    def check(
        self,
        stream: Observable[Any],
        diagram: str,
        *,
        until: float | str | timedelta = 1e6,
        dispose_at: float | str | timedelta | None = None,
        subscription: str | None = None,
    ) -> None:
        """Assert that the stream matches the diagram; the options are those of `record`.

        A failure shows both diagrams and a comparison line by line.
        """
        __tracebackhide__ = True  # pytest shows the line of the test instead
        expected = self.parse(diagram)
        actual = self.record(stream, until=until, dispose_at=dispose_at, subscription=subscription)
        alike = len(expected) == len(actual) and all(map(same, expected, actual))
        if not alike:
            raise AssertionError(difference(expected, actual, self.events, self.error))

    def check_subscriptions(self, stream: DrawnStream, *diagrams: str) -> None:
        """Assert when the stream was subscribed (`^`) and unsubscribed (`!`), in order.

        No diagram means never subscribed; a diagram without `!` means still subscribed.
        """
        __tracebackhide__ = True
        expected = [Diagram(diagram).subscription() for diagram in diagrams]
        if expected != stream.subscriptions:
            raise AssertionError(
                f"expected subscriptions of {stream}\n{_periods(expected)}\n"
                f"but saw\n{_periods(stream.subscriptions)}"
            )

    def check_released(self) -> None:
        """Assert that none of the drawn streams has a subscriber."""
        __tracebackhide__ = True
        held = [
            f"  {stream} since {began:g} s"
            for stream in self._drawn
            for began, ended in stream.subscriptions
            if ended is None
        ]
        if held:
            raise AssertionError("\n".join(["still subscribed:", *held]))

    def parse(self, diagram: str) -> list[Seen]:
        """Return the notifications that a subscriber at second 0 of the diagram receives.

        Raises:
            ValueError: it cannot be parsed; the message gives the place and the reason.
        """
        return Diagram(diagram).notifications(self.events, self.error)

    def _playable(self, diagram: str) -> list[Seen]:
        seen = self.parse(diagram)
        for _, _, value in seen:
            if is_class(value):
                raise ValueError(
                    f"{value.__name__} in {diagram!r} is a class, which can be expected, "
                    "but not played: give an event"
                )
        return seen

    def _keep(self, stream: DrawnStream) -> DrawnStream:
        self._drawn.append(stream)
        return stream


class DrawnStream(Observable[Any]):
    """A stream made from a diagram. `subscriptions` holds the start and end (or None) of each."""

    def __init__(self, marbles: Marbles, diagram: str, seen: list[Seen]) -> None:
        super().__init__()
        self.diagram = diagram
        self.subscriptions: list[tuple[float, float | None]] = []
        self._marbles = marbles
        self._seen = seen

    def __str__(self) -> str:
        return f'{type(self).__name__.strip("_").lower()}("{self.diagram}")'

    def _watched(self, clock: VirtualClock, *held: abc.DisposableBase) -> abc.DisposableBase:
        """Record a subscription, and its end when the returned disposable is disposed."""

        def now() -> float:
            return self._marbles.now if clock is self._marbles.clock else clock.elapsed

        index, began = len(self.subscriptions), now()
        self.subscriptions.append((began, None))

        def end() -> None:
            self.subscriptions[index] = (began, now())

        return CompositeDisposable(Disposable(end), *held)


class _Cold(DrawnStream):
    def _subscribe_core(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        # In the time of who subscribes: it may be that of a runtime.
        clock = scheduler if isinstance(scheduler, VirtualClock) else self._marbles.clock
        return self._watched(
            clock,
            *(
                clock.schedule_relative(when, lambda *_, k=kind, v=value: _send(observer, k, v))
                for when, kind, value in self._seen
            ),
        )


class _Hot(DrawnStream):
    def __init__(self, marbles: Marbles, diagram: str, seen: list[Seen]) -> None:
        super().__init__(marbles, diagram, seen)
        self._subject: Subject[Any] = Subject()
        self._begun = False

    def renew(self) -> None:
        """Reset the stream for another `record`; `begin` follows."""
        self._subject = Subject()
        self._begun = True

    def begin(self) -> None:
        self._begun = True
        subject = self._subject
        for when, kind, value in self._seen:
            if when >= self._marbles.now:
                self._marbles.clock.schedule_absolute(
                    self._marbles.at(when), lambda *_, k=kind, v=value: _send(subject, k, v)
                )

    def _subscribe_core(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        if not self._begun:  # nobody records: it is played by a runtime
            self.begin()
        subscription = self._subject.subscribe(observer, scheduler=scheduler)
        return self._watched(self._marbles.clock, subscription)


def _send(observer: abc.ObserverBase[Any], kind: str, value: Any) -> None:
    match kind:
        case "next":
            observer.on_next(value)
        case "error":
            observer.on_error(value)
        case _:
            observer.on_completed()


def _periods(periods: list[tuple[float, float | None]]) -> str:
    lines = [
        f"  from {began:g} s to {'the end' if ended is None else f'{ended:g} s'}"
        for began, ended in periods
    ]
    return "\n".join(lines) or "  none"
