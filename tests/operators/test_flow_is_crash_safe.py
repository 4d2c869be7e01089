"""A durable flow is crash-safe: killed at any byte of its journal, it ends as if nothing happened.

This file is a specification. `durable(story, journal)` runs a loop that is written as a generator,
and records three things in the journal, each before anything acts on it: that a stage starts, each
event, and the last event of a stage, which is its *outcome*. A process that is killed leaves the
bytes that it has written, down to half a line. Another process that runs the same loop with that
file has to satisfy:

1. **Nothing is lost, repeated or changed.** The events of finished stages and of the loop itself in
   the file, and then those that the other process emits, are those of an undisturbed run.
2. **No finished stage runs again.** The stage that was cut off runs once more; those before it
   return their outcome from the file.
3. **It comes to rest.** A third process finds nothing to do, and emits nothing.

The laws are checked for every byte, for four loops that hold all that is hard about resuming.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from reactivex import Observable, defer, interval, merge, of, operators as ops

from cuggino.errors import StorageError
from cuggino.events import (
    AgentMessage,
    Approved,
    Done,
    Event,
    Note,
    PlanComplete,
    Progress,
    RequestChanges,
    StageStarted,
    is_journal_event,
)
from cuggino.loops import durable
from cuggino.operators import Flow, ask, emit, forward
from cuggino.storage import finished_stages, read_journal
from cuggino.testing import Marbles

# -- the loops


class Stages:
    """Runs the stages of a loop in one process, and notes those that were not replayed."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self._numbers: Counter[str] = Counter()

    def forward(self, name: str, stream: Observable[Any]) -> Flow[Any]:
        """Run a stage, and emit its events; return its outcome."""
        return (yield from forward(self._noted(name, stream), name=name))

    def ask(self, name: str, stream: Observable[Any]) -> Flow[Any]:
        """Run a stage, and emit nothing; return its outcome."""
        return (yield from ask(self._noted(name, stream), name=name))

    def _noted(self, name: str, stream: Observable[Any]) -> Observable[Any]:
        self._numbers[name] += 1
        stage = f"{name} {self._numbers[name]}"

        def begin(_scheduler: object) -> Observable[Any]:
            self.ran.append(stage)
            return stream

        return defer(begin)


def session(*events: Event) -> Observable[Any]:
    """An agent's session: an event a second, the last of which is its outcome."""

    def nth(n: int) -> Event:
        return events[n]

    return interval(1).pipe(ops.take(len(events)), ops.map(nth))


def basic(run: Stages) -> Flow[None]:
    """Plan, work and review; a review that requests changes begins the next iteration."""
    for n in (1, 2):
        yield from emit(Note(content=f"iteration {n}"))
        yield from run.forward("plan", session(PlanComplete(content="p")))
        yield from run.forward("work", session(AgentMessage(text="hm"), Done(content="d")))
        answer = RequestChanges(content="no") if n == 1 else Approved(content="yes")
        verdict = yield from run.forward("review", session(answer))
        if isinstance(verdict, Approved):
            return


def counter(run: Stages) -> Flow[None]:
    """Repeat the work until it is done; only a local variable knows how often that was."""
    tasks, outcome = 0, None
    while not isinstance(outcome, Done):
        tasks += 1
        answer = Progress(content="p") if tasks < 4 else Done(content="d")
        outcome = yield from run.forward("work", session(answer))
        yield from emit(Note(content=f"{tasks} tasks"))


def malformed(run: Stages) -> Flow[None]:
    """Ask again for an answer that cannot be read, or that is missing."""
    answers = [session(AgentMessage(text='{"do')), session(), session(Done(content="d"))]
    for n, answer in enumerate(answers, 1):
        found = yield from run.ask("answer", answer)
        if isinstance(found, Done):
            yield from emit(found)
            return
        yield from emit(Note(content=f"answer {n} is {found!r}"))


def simultaneous(run: Stages) -> Flow[None]:
    """Run two reviewers who end at the same instant, and a stage that takes no time at all."""
    for _ in range(2):
        both = merge(
            session(AgentMessage(text="a"), Approved(content="yes")),
            session(AgentMessage(text="b"), RequestChanges(content="no")),
        )
        last = yield from run.forward("reviews", both)
        yield from emit(Note(content=f"{last!r} counts"), Note(content="next"))
    yield from run.forward("at once", of(Note(content="1"), Note(content="2")))


LOOPS = (basic, counter, malformed, simultaneous)


# -- a process


class Process(NamedTuple):
    """What one process has done."""

    events: list[Event]
    stages: list[str]
    """The stages that ran, in order."""


def run(loop: Callable[[Stages], Flow[None]], journal: Path) -> Process:
    """Run the loop to its end in virtual time, as a process of its own."""
    stages = Stages()
    seen = Marbles().record(durable(lambda: loop(stages), journal), until=1000)
    assert seen[-1][1] == "completed", seen[-1]
    return Process([value for _, kind, value in seen if kind == "next"], stages.ran)


def recorded(journal: Path) -> Process:
    """Return what the file holds: the events of finished stages and of the loop, and the stages."""
    if b"\n" not in journal.read_bytes():
        return Process([], [])
    found = read_journal(journal)
    count: Counter[str] = Counter()
    stages = []
    for stage in finished_stages(found):
        count[stage.name] += 1
        stages.append(f"{stage.name} {count[stage.name]}")
    starts = {e.stage: e.seq for e in found.entries if isinstance(e.event, StageStarted)}
    since = dict([*starts.items()][: len(stages)])
    """The number of the entry with which the last attempt at each finished stage begins."""
    events = [
        entry.event
        for entry in found.entries
        if not is_journal_event(entry.event)
        and (entry.stage is None or entry.seq > since.get(entry.stage, entry.seq))
    ]
    return Process(events, stages)


# -- the laws


@pytest.fixture(autouse=True)
def _no_power_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses nothing that it has written, so nothing need reach the disk here."""
    monkeypatch.setattr(os, "fsync", lambda _file: None)


@pytest.mark.parametrize("step", [89, pytest.param(1, marks=pytest.mark.real_agent)])
@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_killed_at_every_byte(
    loop: Callable[[Stages], Flow[None]], step: int, tmp_path: Path
) -> None:
    """A loop killed at any byte and run again satisfies the three laws (each 89th, to be quick)."""
    journal = tmp_path / "journal.jsonl"
    undisturbed = run(loop, journal)
    content = journal.read_bytes()
    for size in (*range(0, len(content), step), len(content)):
        journal.write_bytes(content[:size])
        before = recorded(journal)
        after = run(loop, journal)
        assert before.events + after.events == undisturbed.events, size
        assert before.stages + after.stages == undisturbed.stages, size
        if size % 10 == 0:
            assert run(loop, journal) == Process([], []), size


@pytest.mark.parametrize("content", ["a note to myself", '{"v": 2}', "{}"])
def test_no_other_file_is_overwritten(content: str, tmp_path: Path) -> None:
    """A file that is no journal stays as it is, and is an error."""
    journal = tmp_path / "journal.jsonl"
    journal.write_text(content, encoding="utf-8")
    seen = Marbles().record(durable(lambda: basic(Stages()), journal), until=1000)
    assert isinstance(seen[-1][2], StorageError)
    assert journal.read_text(encoding="utf-8") == content
