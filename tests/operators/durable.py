"""A durable flow in virtual time: a story of stages, and a journal in memory."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.operators.flow import Recorded
from cuggino.testing import Marbles, Seen
from cuggino.testing.marbles import DrawnStream

Line = tuple[str, Any]


class MemoryRecorder:
    """A journal in memory, optionally with entries; its call number `fails_at` raises."""

    def __init__(self, log: Iterable[Line] = (), *, fails_at: int | None = None) -> None:
        self.log = list(log)
        self.calls: list[str] = []
        self.times: list[datetime] = []
        self._known = iter(outcomes_of(self.log))
        self._said = sum(1 for kind, _ in self.log if kind == "said")
        self._fails_at = fails_at
        self._name = ""

    def replay(self, name: str) -> Recorded | None:
        self._call("replay")
        known = next(self._known, None)
        if known is None:
            return None
        if known[0] != name:
            raise LookupError(f"{known[0]} is recorded, not {name}")
        return Recorded(known[1])

    def started(self, name: str, *, at: datetime) -> None:
        self._call("started")
        self._name = name
        self._write("started", name, at)

    def event(self, event: Any, *, staged: bool, at: datetime) -> bool:
        self._call("event")
        if not staged and self._said:
            self._said -= 1
            return False
        self._write("forwarded" if staged else "said", event, at)
        return True

    def finished(self, outcome: Any, *, at: datetime) -> None:
        self._call("finished")
        self._write("finished", (self._name, outcome), at)

    def failed(self, error: Exception) -> None:
        self._call("failed")

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if len(self.calls) == self._fails_at:
            raise OSError(f"no space for {name}")

    def _write(self, kind: str, value: Any, at: datetime) -> None:
        self.log.append((kind, value))
        self.times.append(at)


def outcomes_of(log: Iterable[Line]) -> list[tuple[str, Any]]:
    """Return name and outcome of the finished stages."""
    return [value for kind, value in log if kind == "finished"]


def sent_by(log: Iterable[Line]) -> list[Any]:
    """Return the events a process with this journal has sent, without those of a cut stage."""
    sent: list[Any] = []
    running: list[Any] = []
    for kind, value in log:
        match kind:
            case "started":
                running = []
            case "finished":
                sent += running
                running = []
            case "said":
                sent.append(value)
            case _:
                running.append(value)
    return sent


class Story:
    """Two iterations of planning and work; the outcome of the work decides the next stage."""

    def __init__(self) -> None:
        self.t = Marbles(p="plan", q="other plan", a="a", b="b", c="more", d="done", y="y")
        self.streams: dict[str, list[DrawnStream]] = {
            "plan": [self.t.cold("-p|"), self.t.cold("q|")],
            "size": [self.t.cold("(y|)"), self.t.cold("-y|"), self.t.cold("y|")],
            "work": [self.t.cold("a-bc-|"), self.t.cold("(ad|)"), self.t.cold("-b-d|")],
            "nothing": [self.t.cold("--|"), self.t.cold("|")],
        }
        self.closed = 0

    def told(self) -> Flow[None]:
        left = {name: iter(streams) for name, streams in self.streams.items()}
        try:
            for number in (1, 2):
                yield from emit(f"round {number}", "planning")
                plan = yield from forward(next(left["plan"]), name="plan")
                while True:
                    size = yield from ask(next(left["size"]), name="size")
                    work = yield from forward(next(left["work"]), name="work")
                    yield from emit(f"{plan} {size} {work}")
                    if work == "done":
                        break
                assert (yield from forward(next(left["nothing"]), name="nothing")) is None
            yield from emit("over")
        finally:
            self.closed += 1

    def play(self, recorder: MemoryRecorder, **kwargs: Any) -> list[Seen]:
        return self.t.record(flow(self.told, recorder=recorder), **kwargs)

    @property
    def subscribed(self) -> list[str]:
        """The stages that ran, grouped by name."""
        return [
            f"{name} {n}"
            for name, streams in self.streams.items()
            for n, stream in enumerate(streams, 1)
            for _ in stream.subscriptions
        ]

    @property
    def subscriptions(self) -> list[tuple[float, float | None]]:
        return [s for streams in self.streams.values() for x in streams for s in x.subscriptions]


def values(seen: list[Seen]) -> list[Any]:
    return [value for _, kind, value in seen if kind == "next"]


def undisturbed() -> MemoryRecorder:
    """Return the recorder of an uninterrupted run."""
    recorder = MemoryRecorder()
    assert "completed" == Story().play(recorder)[-1][1]
    return recorder
