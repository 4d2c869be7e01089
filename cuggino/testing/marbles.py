"""Streams as drawings, in virtual time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable
from reactivex.subject import Subject
from reactivex.testing import TestScheduler

Seen = tuple[float, str, Any]
"""What a subscriber saw: the virtual second, `next`, `error` or `completed`, and the value."""

_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Marbles:
    """Draws streams and compares them with drawings.

    ::

        t = Marbles(a=AgentMessage(text="hi"), d=Done(content=""))
        agent = t.cold("-a-d|")
        t.check(agent.pipe(...), "-a--(d|)")
        t.check_subscriptions(agent, "^---!")

    One character is one second: `-` nothing, a letter its event, `|` completion, `#` the error
    (`error=`, by default `RuntimeError("#")`). `(ab|)` happens in one second's instant. A word
    such as `29s`, `5m`, `100ms` between spaces lets that time pass; other spaces mean nothing.
    """

    def __init__(self, *, error: Exception | None = None, **events: Any) -> None:
        self.events = events
        self.error = error or RuntimeError("#")
        self.scheduler = TestScheduler()
        self._hot: list[_Hot] = []

    @property
    def now(self) -> float:
        """The present virtual second."""
        return round(self.scheduler.to_seconds(self.scheduler.now), 3)

    def cold(self, diagram: str) -> DrawnStream:
        """A stream that begins with its subscription."""
        return _Cold(self, self.parse(diagram))

    def hot(self, diagram: str) -> DrawnStream:
        """A stream that runs by itself from second 0 of the test, watched or not."""
        hot = _Hot(self, self.parse(diagram))
        self._hot.append(hot)
        return hot

    def record(
        self, stream: Observable[Any], *, until: float = 1e6, dispose_at: float | None = None
    ) -> list[Seen]:
        """Subscribe at second 0, let time pass up to `until`, give what was seen."""
        seen: list[Seen] = []
        subscription = stream.subscribe(
            lambda value: seen.append((self.now, "next", value)),
            lambda error: seen.append((self.now, "error", error)),
            lambda: seen.append((self.now, "completed", None)),
            scheduler=self.scheduler,
        )
        # After the subscription, so that an event of second 0 is seen.
        for hot in self._hot:
            hot.begin()
        if dispose_at is not None:
            self.scheduler.schedule_absolute(dispose_at, lambda *_: subscription.dispose())
        self.scheduler.advance_to(until)
        subscription.dispose()
        return seen

    def check(
        self,
        stream: Observable[Any],
        diagram: str,
        *,
        until: float = 1e6,
        dispose_at: float | None = None,
    ) -> None:
        """Assert that the stream looks like the diagram; a failure shows both."""
        expected = self.parse(diagram)
        actual = self.record(stream, until=until, dispose_at=dispose_at)
        assert expected == actual, (
            f"expected {diagram}\n{self._drawn(expected)}\nbut saw\n{self._drawn(actual)}"
        )

    def check_subscriptions(self, stream: DrawnStream, *diagrams: str) -> None:
        """Assert when the stream was subscribed (`^`) and unsubscribed (`!`), in order."""
        expected = [
            {mark: when for when, _, mark in self._parsed(diagram, {"^": "^", "!": "!"})}
            for diagram in diagrams
        ]
        assert [(e["^"], e.get("!")) for e in expected] == stream.subscriptions

    def parse(self, diagram: str) -> list[Seen]:
        """What a subscriber at second 0 of this diagram sees."""
        return self._parsed(diagram, self.events)

    def _parsed(self, diagram: str, events: dict[str, Any]) -> list[Seen]:
        seen: list[Seen] = []
        now, grouped = 0.0, False
        for word in diagram.split():
            if skipped := _TIME.fullmatch(word):
                now += float(skipped[1]) * _SECONDS[skipped[2]]
                continue
            for mark in word:
                at = round(now, 3)
                match mark:
                    case "(" | ")":
                        grouped = mark == "("
                    case "-":
                        pass
                    case "|":
                        seen.append((at, "completed", None))
                    case "#":
                        seen.append((at, "error", self.error))
                    case _:
                        seen.append((at, "next", events[mark]))
                now += 0 if grouped else 1
        return seen

    def _drawn(self, seen: Iterable[Seen]) -> str:
        names = {id(event): name for name, event in self.events.items()}
        return "\n".join(
            f"  {when:>8g} s  {kind:9} {names.get(id(value), '')} {value!r}"
            for when, kind, value in seen
        )


class DrawnStream(Observable[Any]):
    """A stream of a diagram. `subscriptions` has when each began and ended (None: not yet)."""

    def __init__(self, marbles: Marbles, seen: list[Seen]) -> None:
        super().__init__()
        self.subscriptions: list[tuple[float, float | None]] = []
        self._marbles = marbles
        self._seen = seen

    def _watched(self, *held: abc.DisposableBase) -> abc.DisposableBase:
        """Note a subscription, and its end when the returned disposable is disposed."""
        index, began = len(self.subscriptions), self._marbles.now
        self.subscriptions.append((began, None))

        def end() -> None:
            self.subscriptions[index] = (began, self._marbles.now)

        return CompositeDisposable(Disposable(end), *held)


class _Cold(DrawnStream):
    def _subscribe_core(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        clock = self._marbles.scheduler
        return self._watched(
            *(
                clock.schedule_relative(when, lambda *_, k=kind, v=value: _send(observer, k, v))
                for when, kind, value in self._seen
            )
        )


class _Hot(DrawnStream):
    def __init__(self, marbles: Marbles, seen: list[Seen]) -> None:
        super().__init__(marbles, seen)
        self._subject: Subject[Any] = Subject()

    def begin(self) -> None:
        clock = self._marbles.scheduler
        for when, kind, value in self._seen:
            clock.schedule_absolute(when, lambda *_, k=kind, v=value: _send(self._subject, k, v))

    def _subscribe_core(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        return self._watched(self._subject.subscribe(observer, scheduler=scheduler))


def _send(observer: abc.ObserverBase[Any], kind: str, value: Any) -> None:
    match kind:
        case "next":
            observer.on_next(value)
        case "error":
            observer.on_error(value)
        case _:
            observer.on_completed()
