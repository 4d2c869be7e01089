"""A durable flow: what is recorded is not run again, and what is said is said once."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from cuggino.operators import Flow, Recorded, emit, flow, forward
from cuggino.testing import Marbles

Entry = tuple[str, Any]


class Log:
    """A recorder in memory. `entries` is what stands in it; `fail_at` makes that append fail."""

    def __init__(self, entries: list[Entry] | None = None, *, fail_at: int | None = None) -> None:
        self.entries = list(entries or [])
        self._outcomes = [value for kind, value in self.entries if kind == "finished"]
        self._names = [value for kind, value in self.entries if kind == "started"]
        self._said = sum(kind == "said" for kind, _ in self.entries)
        self._next = 0
        self._fail_at = fail_at

    def _append(self, kind: str, value: Any) -> None:
        if self._fail_at is not None and len(self.entries) >= self._fail_at:
            raise OSError("disk full")
        self.entries.append((kind, value))

    def replay(self, name: str) -> Recorded | None:
        if self._next >= len(self._outcomes):
            return None
        if self._names[self._next] != name:
            raise LookupError(name)
        self._next += 1
        return Recorded(self._outcomes[self._next - 1])

    def started(self, name: str, *, at: datetime) -> None:
        # A stage that begins again takes the place of its first beginning.
        finished = sum(kind == "finished" for kind, _ in self.entries)
        begun = sum(kind == "started" for kind, _ in self.entries)
        if begun == finished:
            self._append("started", name)

    def event(self, event: Any, *, staged: bool, at: datetime) -> bool:
        if not staged and self._said:
            self._said -= 1
            return False
        self._append("staged" if staged else "said", event)
        return True

    def finished(self, outcome: Any, *, at: datetime) -> None:
        self._append("finished", outcome)

    def failed(self, error: Exception) -> None: ...


def story(t: Marbles) -> tuple[Any, Any, Any]:
    """Two stages, and a flow that says something before, between and after them."""
    one, two = t.cold("-x-y|"), t.cold("--z|")

    def told() -> Flow[None]:
        yield from emit("a")
        outcome = yield from forward(one, name="one")
        yield from emit(f"b{outcome}")
        yield from forward(two, name="two")
        yield from emit("c")

    return told, one, two


def undisturbed() -> Log:
    t, log = Marbles(x="x", y="y", z="z"), Log()
    t.record(flow(story(t)[0], recorder=log))
    return log


WHOLE = undisturbed().entries


def test_what_is_recorded() -> None:
    """Starts, events and outcomes are recorded in order, and the stream is what it was."""
    t, log = Marbles(x="x", y="y", z="z"), Log()
    seen = t.record(flow(story(t)[0], recorder=log))
    assert ["a", "x", "y", "by", "z", "c", None] == [value for _, _, value in seen]
    assert [
        ("said", "a"),
        ("started", "one"),
        ("staged", "x"),
        ("staged", "y"),
        ("finished", "y"),
        ("said", "by"),
        ("started", "two"),
        ("staged", "z"),
        ("finished", "z"),
        ("said", "c"),
    ] == log.entries


@pytest.mark.parametrize("cut", range(len(WHOLE) + 1))
def test_resumed_at_every_point(cut: int) -> None:
    """Whatever stood in the log, both processes together say all once, but the cut stage's own."""
    t = Marbles(x="x", y="y", z="z")
    told, one, two = story(t)
    before = WHOLE[:cut]
    seen = t.record(flow(told, recorder=Log(before)))
    said = [value for kind, value in before if kind == "said"]
    now = [value for _, kind, value in seen if kind == "next"]
    assert ["a", "by", "c"] == said + [value for value in now if value in ("a", "by", "c")]
    finished = {value for kind, value in before if kind == "finished"}
    assert (0 if "y" in finished else 1) == len(one.subscriptions)
    assert (0 if "z" in finished else 1) == len(two.subscriptions)
    assert ("x" in now) == ("y" not in finished)
    assert "completed" == seen[-1][1]


@pytest.mark.parametrize("fail_at", range(len(WHOLE)))
def test_a_log_that_cannot_be_written(fail_at: int) -> None:
    """The stream ends with the log's error, nothing more is said, and the stage is released."""
    t = Marbles(x="x", y="y", z="z")
    told, one, two = story(t)
    seen = t.record(flow(told, recorder=Log(fail_at=fail_at)))
    assert "error" == seen[-1][1]
    assert "disk full" == str(seen[-1][2])
    expected = [value for kind, value in WHOLE[:fail_at] if kind in ("said", "staged")]
    assert expected == [value for _, kind, value in seen if kind == "next"]
    ends = [end for stage in (one, two) for _, end in stage.subscriptions]
    assert None not in ends


def test_another_story() -> None:
    """A log whose stages have other names ends the stream with that error."""
    t = Marbles(x="x", y="y", z="z")
    log = Log([("started", "other"), ("finished", "y")])
    seen = t.record(flow(story(t)[0], recorder=log))
    assert [("next", "a"), ("error", "one")] == [(kind, str(v).strip("'")) for _, kind, v in seen]


def test_an_error_of_a_stage() -> None:
    """A stage that fails is not finished: the next process runs it again."""
    t = Marbles(x="x", y="y", z="z")
    bad, good, log = t.cold("-x#"), t.cold("-x|"), Log()
    t.record(flow(lambda: forward(bad, name="one"), recorder=log))
    assert [("started", "one"), ("staged", "x")] == log.entries
    t.record(flow(lambda: forward(good, name="one"), recorder=Log(log.entries)), until=2e6)
    assert 1 == len(good.subscriptions)
