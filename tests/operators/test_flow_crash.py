"""The crash law: a durable flow that is killed anywhere and resumed ends as it would have ended.

It is proven here for random stories with the journal as their recorder, at every instant;
`tests/loops/test_crash.py` samples it for each loop.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import Phase, given, settings, strategies as st
from reactivex import Observable, concat, defer, empty, just, operators as ops, throw, timer

import cuggino
from cuggino.errors import StorageError
from cuggino.events import (
    AgentMessage,
    Event,
    RunContinued,
    RunEnded,
    RunStarted,
    StageStarted,
    is_journal_event,
)
from cuggino.loops import durable
from cuggino.loops.frame.journal import RunRecorder, concluded
from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.stages import lane
from cuggino.storage import Journal, JournalFile, finished_stages, read_journal
from cuggino.testing import Marbles, Seen

# -- random stories


@dataclass(frozen=True)
class Say:
    """The generator emits this many events at once."""

    count: int


@dataclass(frozen=True)
class Run:
    """A stage; `gaps` are the seconds before each of its events, the last of which is its outcome.

    With an `effect` it changes the world right before its outcome.
    """

    gaps: tuple[int, ...]
    forwarded: bool
    effect: bool
    fails: bool
    """The first attempt fails after its effect."""


@dataclass(frozen=True)
class Choose:
    """The outcome of the latest stage decides which steps follow."""

    then: tuple[Step, ...]
    otherwise: tuple[Step, ...]


Step = Say | Run | Choose

STAGES = st.builds(
    Run,
    gaps=st.lists(st.integers(0, 2), max_size=3).map(tuple),
    forwarded=st.booleans(),
    effect=st.booleans(),
    fails=st.sampled_from([False, False, False, True]),
)
STEPS = st.recursive(
    st.one_of(st.builds(Say, st.integers(0, 2)), STAGES, STAGES),
    lambda inner: st.builds(
        Choose, st.lists(inner, max_size=3).map(tuple), st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=5,
)
STORIES = st.lists(STEPS, min_size=1, max_size=5).map(tuple)

Stage = tuple[str, int]
"""Name of a stage, and how many of that name there have been."""


@dataclass
class World:
    """The state that survives a process: the journal and the effects of stages."""

    folder: Path
    effects: list[Stage] = field(default_factory=list)
    attempts: Counter[Stage] = field(default_factory=Counter)

    @property
    def path(self) -> Path:
        return self.folder / "run.jsonl"

    @property
    def journal(self) -> JournalFile:
        return read_journal(self.path)

    @property
    def has_begun(self) -> bool:
        return self.path.exists() and b"\n" in self.path.read_bytes()

    def copy(self, folder: Path, *, torn: bool = False) -> World:
        """The same world elsewhere; `torn` leaves half of the journal's last line."""
        folder.mkdir()
        world = World(folder, list(self.effects), self.attempts.copy())
        if self.has_begun:  # a run that was killed before its first entry leaves nothing to resume
            whole = self.path.read_bytes()
            start = whole.rstrip(b"\n").rfind(b"\n") + 1
            world.path.write_bytes(whole[: (start + len(whole)) // 2] if torn else whole)
        return world


@dataclass
class Process:
    """One process that works on the story in its world; `changed` is called at each change."""

    steps: tuple[Step, ...]
    world: World
    changed: Callable[[], object] = bool
    ran: list[Stage] = field(default_factory=list)
    open: int = 0
    """How many stages are subscribed."""

    def run(self, *, dispose_at: float | None = None) -> list[Seen]:
        return Marbles().record(flow(self._durable), until=1000, dispose_at=dispose_at)

    def _durable(self) -> Flow[None]:
        here = yield from ask(lane())
        assert here is not None
        resumed = continued = None
        if self.world.has_begun:
            resumed, continued = self.world.journal, RunContinued()
            journal = Journal.open(self.world.path, sync=False)
        else:
            started = RunStarted(run_id="run", kind="run", command="run", focus="it")
            journal = Journal.create(self.world.folder, started, at=here.now, sync=False)
        kept = RunRecorder(journal, resumed)
        with concluded(journal, kept, here, continued):
            yield from forward(flow(lambda: self._story(), recorder=kept))

    def _story(self) -> Flow[None]:
        count: Counter[str] = Counter()
        outcome: Event | None = None

        def told(steps: tuple[Step, ...]) -> Flow[None]:
            nonlocal outcome
            for step in steps:
                match step:
                    case Say(number):
                        count["said"] += 1
                        yield from emit(*(message(f"{count['said']}.{n}") for n in range(number)))
                    case Run():
                        name = f"stage-{len(step.gaps)}"
                        count[name] += 1
                        run = forward if step.forwarded else ask
                        stream = self._stage(step, (name, count[name]))
                        outcome = yield from run(stream, name=name)
                    case Choose(then, otherwise):
                        yield from told(then if outcome is not None else otherwise)

        yield from told(self.steps)
        yield from emit(message(f"over, after {outcome!r}"))

    def _stage(self, step: Run, stage: Stage) -> Observable[Any]:
        def act(_scheduler: object) -> Observable[Any]:
            world = self.world
            if step.effect:
                world.effects.append(stage)
                self.changed()
            if step.fails and world.attempts[stage] == 1:
                return throw(RuntimeError(f"{stage} failed"))
            return empty()

        def begin(_scheduler: object) -> Observable[Any]:
            self.ran.append(stage)
            self.open += 1
            self.world.attempts[stage] += 1
            *early, last = [0, *step.gaps]
            parts = [after(gap, just(message(f"{stage} {n}"))) for n, gap in enumerate(early[1:])]
            end = just(message(f"{stage} outcome")) if step.gaps else empty()
            parts.append(after(last, concat(defer(act), end)))
            return concat(*parts).pipe(ops.finally_action(self._ended))

        return defer(begin)

    def _ended(self) -> None:
        self.open -= 1


def after(seconds: int, stream: Observable[Any]) -> Observable[Any]:
    """The stream, later; at once without seconds."""
    return concat(timer(seconds).pipe(ops.ignore_elements()), stream) if seconds else stream


def message(text: str) -> AgentMessage:
    return AgentMessage(text=text)


# -- comparison


def events_of(journal: JournalFile) -> list[str]:
    """The events of the run, without those of attempts that did not end."""
    last_start = {
        entry.stage: entry.seq for entry in journal.entries if isinstance(entry.event, StageStarted)
    }
    return [
        repr(entry.event)
        for entry in journal.entries
        if not is_journal_event(entry.event)
        and (entry.stage is None or entry.seq > last_start[entry.stage])
    ]


def finished(world: World) -> list[Stage]:
    """The stages with an outcome in the journal."""
    count: Counter[str] = Counter()
    stages = []
    for stage in finished_stages(world.journal) if world.has_begun else ():
        count[stage.name] += 1
        stages.append((stage.name, count[stage.name]))
    return stages


def to_the_end(steps: tuple[Step, ...], world: World, changed: Callable[[], object] = bool) -> None:
    """Run processes until one completes; a stage that fails ends its process."""
    for _ in range(20):
        process = Process(steps, world, changed)
        done = finished(world)
        seen = process.run()
        assert 0 == process.open
        assert [] == [stage for stage in process.ran if stage in done]
        assert len(process.ran) == len(set(process.ran))
        if seen[-1][1] == "completed":
            return
        assert isinstance(seen[-1][2], RuntimeError)
    raise AssertionError("the run does not end")


@contextmanager
def at_each_append(moment: Callable[[], object]) -> Iterator[None]:
    """Call `moment` before and after each entry of a journal."""
    append = Journal.append

    def watched(journal: Journal, event: Event, **kwargs: Any) -> Any:
        moment()
        entry = append(journal, event, **kwargs)
        moment()
        return entry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "append", watched)
        yield


class Instants:
    """The different states of a world, as a killed process would have left them."""

    def __init__(self, world: World, place: Path) -> None:
        self._world, self._place = world, place
        self._last: tuple[bytes, int] | None = None
        self.copies: list[World] = []
        place.mkdir()

    def keep(self) -> None:
        world = self._world
        now = (world.path.read_bytes() if world.has_begun else b"", len(world.effects))
        if now != self._last:
            self._last = now
            self.copies.append(world.copy(self._place / str(len(self.copies))))


class Law:
    """An uninterrupted run of a story, to which all others are compared."""

    def __init__(self, steps: tuple[Step, ...], place: Path) -> None:
        self.steps, self.place = steps, place
        place.joinpath("whole").mkdir()
        self.world = World(place / "whole")
        instants = Instants(self.world, place / "instants")
        instants.keep()
        with at_each_append(instants.keep):
            to_the_end(steps, self.world, instants.keep)
        self.instants = instants.copies
        self.events = events_of(self.world.journal)
        self.finished = finished(self.world)
        self.seconds = self.world.journal.entries[-1].at - self.world.journal.entries[0].at
        self._copies = 0

    def world_at(self, world: World, *, torn: bool = False) -> World:
        self._copies += 1
        return world.copy(self.place / f"copy-{self._copies}", torn=torn)

    def empty_world(self) -> World:
        self._copies += 1
        folder = self.place / f"copy-{self._copies}"
        folder.mkdir()
        return World(folder)

    def assert_resumes(self, world: World) -> list[World]:
        """Resume in this world, and compare; return the instants of the resumed run."""
        done, attempts, effects = finished(world), world.attempts.copy(), len(world.effects)
        instants = Instants(world, self.place / f"instants-{world.folder.name}")
        with at_each_append(instants.keep):
            to_the_end(self.steps, world, instants.keep)
        assert self.events == events_of(world.journal)
        assert self.finished == finished(world)
        # Each stage without an outcome has its effect once more, and once per attempt that fails.
        whole = Counter(self.world.effects)
        expected = {
            stage: 1 if attempts[stage] else number
            for stage, number in whole.items()
            if stage not in done
        }
        assert expected == Counter(world.effects[effects:])
        return instants.copies


# -- the law

LAW = settings(
    max_examples=max(4, settings().max_examples // 6),
    deadline=None,
    # Shrinking would take minutes, and the stories are short.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


@LAW
@given(STORIES, st.data())
def test_killed_at_every_instant(steps: tuple[Step, ...], data: st.DataObject) -> None:
    """A flow killed before or after any append or effect and resumed does nothing twice."""
    with TemporaryDirectory() as folder:
        law = Law(steps, Path(folder))
        twice = data.draw(st.integers(0, len(law.instants) - 1))
        for n, instant in enumerate(law.instants):
            resumed = law.assert_resumes(law.world_at(instant))
            if instant.has_begun and instant.path.read_bytes().count(b"\n") > 1:
                law.assert_resumes(law.world_at(instant, torn=True))
            if n == twice:
                for again in resumed[:: max(1, len(resumed) // 4)]:
                    law.assert_resumes(law.world_at(again))


@pytest.mark.real_agent
@LAW
@given(STORIES)
def test_disposed_at_every_instant(steps: tuple[Step, ...]) -> None:
    """A flow disposed at or between any virtual seconds records no more and is resumable."""
    with TemporaryDirectory() as folder:
        law = Law(steps, Path(folder))
        for half in range(int(law.seconds.total_seconds()) * 2 + 2):
            world = law.empty_world()
            process = Process(steps, world)
            seen = process.run(dispose_at=half / 2)
            assert 0 == process.open
            if seen and seen[-1][1] == "completed":
                continue
            if not seen or seen[-1][1] == "next":
                assert [RunEnded(state="interrupted")] == [
                    entry.event for entry in world.journal.entries[-1:]
                ]
            law.assert_resumes(world)


@LAW
@given(STORIES, st.booleans(), st.sampled_from([0.0, 0.5, 1.0]))
def test_a_full_disk_at_every_append(
    steps: tuple[Step, ...], lasting: bool, written: float
) -> None:
    """A journal that cannot be written ends the flow before anything else happens."""
    with TemporaryDirectory() as folder:
        law = Law(steps, Path(folder))
        appends = len(law.world.journal.entries)
        for nth in range(2, appends + 1):  # before the first entry there is no run
            world = law.empty_world()
            process = Process(steps, world)
            with full_disk(nth, lasting=lasting, written=written) as failed:
                seen = process.run()
            assert 0 == process.open
            if not failed:  # a stage has ended this process before
                break
            if not isinstance(seen[-1][2], RuntimeError):  # that of a stage comes first
                assert isinstance(seen[-1][2], StorageError)
            sent = [repr(value) for _, kind, value in seen if kind == "next"]
            written_down = [
                repr(e.event) for e in world.journal.entries if not is_journal_event(e.event)
            ]
            assert sent == written_down[: len(sent)]
            assert len(written_down) - len(sent) <= 1
            starts = [e for e in world.journal.entries if isinstance(e.event, StageStarted)]
            assert len(starts) - len(process.ran) in (0, 1)
            law.assert_resumes(world)


@contextmanager
def full_disk(nth: int, *, lasting: bool, written: float) -> Iterator[list[int]]:
    """Fail the nth write to a journal after a part of its line, and all later ones if lasting."""
    write = Journal._write
    count = 0
    failed: list[int] = []

    def limited(journal: Journal, line: bytes) -> None:
        nonlocal count
        count += 1
        if count == nth or (lasting and count > nth):
            failed.append(count)
            write(journal, line[: int(len(line) * written)])
            raise OSError(errno.ENOSPC, "No space left on device")
        write(journal, line)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "_write", limited)
        yield failed


def test_a_path_in_a_text(tmp_path: Path) -> None:
    """The journal may be given as a text, as the folder of a runtime may."""
    journal = tmp_path / "journal.jsonl"
    cuggino.run(durable(lambda: emit(AgentMessage(text="a")), str(journal)))
    assert journal.exists()


def test_what_a_durable_flow_cannot_record(tmp_path: Path) -> None:
    """The error says what it emits; a generator in place of its function, what to write."""
    journal = tmp_path / "journal.jsonl"
    with pytest.raises(TypeError, match=r"emits events of cuggino\.events, not int"):
        cuggino.run(durable(lambda: emit(1), journal))
    with pytest.raises(TypeError, match=r"write flow\(emit\) instead of"):
        durable(emit(1), journal)  # type: ignore[arg-type]


def test_a_repeated_stage_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison fails for a recorder that does not return recorded outcomes."""
    law = Law((Run((1, 1), True, True, False), Say(1)), tmp_path)
    monkeypatch.setattr(RunRecorder, "replay", lambda _recorder, _name: None)
    with pytest.raises(AssertionError):
        law.assert_resumes(law.world_at(law.instants[-2]))


def test_a_lost_event_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison fails for a recorder that does not write the events of the generator."""
    law = Law((Run((1, 1), True, True, False), Say(1)), tmp_path)
    monkeypatch.setattr(RunRecorder, "event", lambda *_args, **_options: True)
    with pytest.raises(AssertionError):
        law.assert_resumes(law.world_at(law.instants[0]))
