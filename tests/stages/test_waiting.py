"""`waiting`: each source and deadline in virtual time, and durability."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import reactivex as rx
from reactivex import Observable, defer, just, operators as ops, throw

from cuggino.domain import Schedule
from cuggino.errors import ConfigError, ForgeRefused, ProcessFailed
from cuggino.events import (
    At,
    CiDone,
    CommandSucceeds,
    FileExists,
    FilesCounted,
    PersonAnswers,
    ProcessEnded,
    Until,
    WaitingEnded,
    WaitingRefused,
    WaitingStarted,
)
from cuggino.operators import Flow, emit, flow
from cuggino.operators.repeat_on import repeat_on
from cuggino.processes import process_started
from cuggino.stages import NoCi, WaitingPlace, waiting, waiting_asked, waiting_in
from cuggino.storage import Workspace, answer_issue
from cuggino.testing import Marbles, Seen
from tests.operators.durable import MemoryRecorder

EVERY = Schedule.constant("10s")


class World:
    """A project in virtual time, in which something happens at a second."""

    def __init__(self, folder: Path) -> None:
        self.t = Marbles(c="changed")
        self.folder = folder
        self.workspace = Workspace(folder)
        self.place = WaitingPlace(
            folder=folder,
            workspace=self.workspace,
            changes=lambda _: self.t.cold("5s c 4s c 4s c 4s c"),
            schedule=EVERY,
        )

    def at(self, second: float) -> datetime:
        return self.t.at(second)

    def happens(self, second: float, deed: Callable[[], object]) -> None:
        def happen(*_: object) -> None:
            deed()

        self.t.scheduler.schedule_absolute(self.at(second), happen)

    def wait(self, until: Until, *, recorder: Any = None, dispose_at: float = 1e6) -> list[Seen]:
        """Return what a flow emits that waits, then says what it got; killed at `dispose_at`."""

        def story() -> Flow[None]:
            ended = yield from waiting(until, self.place)
            yield from emit(f"{ended.outcome} {ended.answer}".strip())

        return self.t.record(flow(story, recorder=recorder), until=dispose_at)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends with its input."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def told(seen: Iterable[Seen]) -> list[tuple[float, str]]:
    """Return the times of events and results."""
    return [
        (when, value if isinstance(value, str) else type(value).__name__)
        for when, kind, value in seen
        if kind != "completed" and value is not None
    ]


def waited(second: float, result: str) -> list[tuple[float, str]]:
    return [(0, "WaitingStarted"), (second, "WaitingEnded"), (second, result)]


class TestSources:
    def test_a_text_is_not_awaited(self) -> None:
        """The error says what is."""
        with pytest.raises(TypeError, match=r"a value such as FileExists\(path=...\), not 'x'"):
            next(waiting("x"))  # type: ignore[arg-type]

    def test_a_file(self, world: World) -> None:
        """A file that is made ends the wait once it has settled."""
        (world.folder / "build").mkdir()
        world.happens(6.5, (world.folder / "build/x").touch)
        assert waited(11, "happened") == told(world.wait(FileExists(path="build/x")))

    def test_a_file_in_a_folder_that_is_missing(self, world: World) -> None:
        """A missing folder is not made for the watch, and looked for every two seconds."""
        world.happens(5, (world.folder / "build").mkdir)
        world.happens(6.5, (world.folder / "build/x").touch)
        seen = world.wait(FileExists(path="build/x"), dispose_at=4.5)
        assert not (world.folder / "build").exists()
        assert [(0, "WaitingStarted")] == told(seen)
        again = World(world.folder)
        again.happens(5, (world.folder / "build").mkdir)
        again.happens(6.5, (world.folder / "build/x").touch)
        assert waited(8, "happened") == told(again.wait(FileExists(path="build/x")))

    def test_files_of_a_folder(self, world: World) -> None:
        """A folder is awaited that has so many files."""
        folder = world.folder / "results"
        folder.mkdir()
        for second in (2, 4, 8):
            world.happens(second, (folder / f"{second}").touch)
        assert waited(11, "happened") == told(
            world.wait(FilesCounted(folder="results", at_least=3))
        )

    def test_a_process(self, world: World, child: subprocess.Popen[bytes]) -> None:
        """A process of this machine is looked at every two seconds until it has ended."""
        world.happens(5, lambda: child.communicate(b"\n"))
        assert waited(6, "happened") == told(world.wait(ProcessEnded(pid=child.pid)))

    def test_a_reused_number_is_another_process(
        self, world: World, child: subprocess.Popen[bytes]
    ) -> None:
        """A process that has the number, but was started at another time, is not waited for."""
        started = process_started(child.pid)
        assert started is not None
        until = ProcessEnded(pid=child.pid, started=started - 3600)
        assert waited(0, "happened") == told(world.wait(until))

    def test_a_process_that_is_gone(self, world: World) -> None:
        """A number of no process is answered at once, with the reason."""
        gone = subprocess.Popen(["true"])
        gone.wait()
        (_, _, (when, result)) = told(world.wait(ProcessEnded(pid=gone.pid)))
        assert (0, True) == (when, result.startswith("happened no such process is running"))

    @pytest.mark.parametrize(("second", "ends"), [(3600.0, 3600.0), (-5.0, 0.0)])
    def test_a_time(self, world: World, second: float, ends: float) -> None:
        """A time is awaited on the scheduler; one in the past has come."""
        assert waited(ends, "happened") == told(world.wait(At(time=world.at(second))))

    def test_a_command(self, world: World) -> None:
        """A command is run on the schedule until it succeeds."""
        ran: list[float] = []

        def shell(command: str, cwd: Path) -> Observable[bytes]:
            assert ("make", world.folder) == (command, cwd)
            ran.append(world.t.now)
            failing = throw(ProcessFailed("sh", 1, ""))
            return just(b"out\n") if len(ran) == 3 else failing

        world.place = replace(world.place, shell=shell)
        assert waited(20, "happened") == told(world.wait(CommandSucceeds(command="make")))
        assert [0, 10, 20] == ran

    def test_an_exhausted_schedule(self, world: World) -> None:
        """A command that never succeeds ends the wait with its schedule."""
        failing = throw(ProcessFailed("sh", 1, ""))
        world.place = replace(
            world.place, shell=lambda *_: failing, schedule=Schedule.constant("5s").times(2)
        )
        assert waited(10, "failed its schedule is exhausted") == told(
            world.wait(CommandSucceeds(command="make"))
        )

    def test_ci(self, world: World) -> None:
        """CI is found once, and asked on the schedule until its jobs have ended."""
        ci = Jobs(["", "", "passed"])
        world.place = replace(world.place, ci=ci)
        assert waited(20, "happened passed") == told(world.wait(CiDone()))
        assert [12, 12, 12] == ci.asked

    def test_ci_that_is_gone(self, world: World) -> None:
        """A pull request that cannot be read any longer ends the wait with the reason."""
        world.place = replace(world.place, ci=Jobs(["", ForgeRefused("it is gone", status=404)]))
        assert waited(10, "failed it is gone") == told(world.wait(CiDone()))

    def test_a_person(self, world: World) -> None:
        """A question is an issue; its answer ends the wait, and changes no specification."""
        world.workspace.open()

        def answer() -> None:
            (issue,) = world.workspace.issues()
            assert ("spec-issue", "Red or blue?") == (issue.kind, issue.title)
            at, specs = datetime(2026, 1, 1).astimezone(), world.folder / "specs"
            answer_issue(world.workspace, issue, "Red.\n\nOf course.", specs=specs, at=at)

        world.happens(7, answer)
        seen = world.wait(PersonAnswers(question="Red or blue?\nOr none?"))
        assert waited(10, "happened Red.\n\nOf course.") == told(seen)
        assert not (world.folder / "specs").exists()
        assert [] == world.workspace.issues()

    @pytest.mark.parametrize("deed", ["resolve", "dismiss", "remove"])
    def test_a_question_without_an_answer(self, world: World, deed: str) -> None:
        """A question that a person settles in another way ends the wait, too, and says how."""
        world.workspace.open()

        def settle() -> None:
            (issue,) = world.workspace.issues()
            if deed == "resolve":
                world.workspace.resolve(issue)
            elif deed == "dismiss":
                at = datetime(2026, 1, 1).astimezone()
                world.workspace.dismiss(issue, "no", at=at)
            else:
                issue.path.unlink()

        world.happens(7, settle)
        (*_, (when, result)) = told(world.wait(PersonAnswers(question="Red?")))
        words = {"resolve": "was resolved", "dismiss": "was dismissed", "remove": "was removed"}
        assert (10, True) == (when, words[deed] in result)


class Jobs:
    """CI of pull request 12, with these outcomes at each look; "" while its jobs run."""

    def __init__(self, outcomes: Iterable[str | Exception]) -> None:
        self._outcomes = list(outcomes)
        self.asked: list[int | None] = []

    def found(self, until: CiDone, cwd: Path) -> Observable[CiDone]:
        return just(until.model_copy(update={"pull_request": 12}))

    def outcome(self, until: CiDone, cwd: Path) -> Observable[str]:
        def look(_: object) -> Observable[str]:
            self.asked.append(until.pull_request)
            outcome = self._outcomes.pop(0)
            if isinstance(outcome, Exception):
                return throw(outcome)
            return just(outcome) if outcome else rx.empty()

        return defer(look).pipe(repeat_on(EVERY))


class Never:
    """CI that never ends."""

    def found(self, until: CiDone, cwd: Path) -> Observable[CiDone]:
        return just(until)

    def outcome(self, until: CiDone, cwd: Path) -> Observable[str]:
        return rx.never()


ENDLESS: list[Until] = [
    FileExists(path="x"),
    FileExists(path="no/x"),
    FilesCounted(folder="f"),
    ProcessEnded(pid=1),
    At(time=datetime(2999, 1, 1).astimezone()),
    CommandSucceeds(command="false"),
    CiDone(pull_request=1),
    PersonAnswers(question="Red?"),
]


class TestDeadlines:
    @pytest.mark.parametrize("until", ENDLESS, ids=lambda until: until.kind)
    def test_each_source_has_a_deadline(
        self, world: World, until: Until, child: subprocess.Popen[bytes]
    ) -> None:
        """Nothing has happened by then: the default is the answer, and nothing is watched on."""
        world.workspace.open()
        (world.folder / "f").mkdir()
        if isinstance(until, ProcessEnded):
            until = until.model_copy(update={"pid": child.pid})
        failing = throw(ProcessFailed("sh", 1, ""))
        world.place = replace(world.place, ci=Never(), shell=lambda *_: failing)
        until = until.model_copy(update={"within": 33.0, "default": "stop"})
        assert waited(33, "deadline stop") == told(world.wait(until))
        assert [] == world.workspace.issues()
        assert 0 == sum(not item.is_cancelled() for item, _ in world.t.scheduler._queue.items)

    def test_the_earlier_limit_counts(self, world: World) -> None:
        """Of a time and a duration the earlier one is the deadline."""
        until = FileExists(path="no/x", within=100, deadline=world.at(50), default="go on")
        assert waited(50, "deadline go on") == told(world.wait(until))

    def test_what_happens_at_the_deadline(self, world: World) -> None:
        """A wait that ends in the instant of its deadline has one end."""
        until = At(time=world.at(50), deadline=world.at(50))
        assert 1 == sum(isinstance(value, WaitingEnded) for _, _, value in world.wait(until))


class TestDurability:
    def test_a_killed_wait_is_the_same_one(self, tmp_path: Path) -> None:
        """A resumed flow waits until the deadline of the first process, and says so again."""
        first = World(tmp_path)
        recorder = MemoryRecorder()
        until = FileExists(path="no/x", within=60, default="none")
        assert [(0, "WaitingStarted")] == told(
            first.wait(until, recorder=recorder, dispose_at=40.5)
        )
        again = World(tmp_path)
        again.t.scheduler.advance_to(again.at(45))
        seen = again.wait(until, recorder=MemoryRecorder(recorder.log))
        assert waited(60, "deadline none")[1:] == told(seen)[1:]
        assert first.at(60) == again.at(60)
        started, ended = (value for _, _, value in seen[:2])
        assert isinstance(started, WaitingStarted)
        assert isinstance(ended, WaitingEnded)
        assert (first.at(60), 60.0) == (started.until.deadline, ended.waited)

    def test_an_answer_is_not_awaited_again(self, tmp_path: Path) -> None:
        """The end of a wait is a recorded outcome."""
        recorder, first = MemoryRecorder(), World(tmp_path)
        first.wait(At(time=first.at(20)), recorder=recorder)
        again = World(tmp_path)
        seen = again.wait(At(time=again.at(20)), recorder=MemoryRecorder(recorder.log))
        assert [] == told(seen)
        assert ["waiting-for", "waiting"] == [
            value for kind, value in recorder.log if kind == "started"
        ]

    def test_a_question_is_asked_once(self, tmp_path: Path) -> None:
        """A resumed wait for a person has the same issue; an answer in between is found."""
        first, recorder = World(tmp_path), MemoryRecorder()
        first.workspace.open()
        first.wait(PersonAnswers(question="Red?"), recorder=recorder, dispose_at=5)
        (issue,) = first.workspace.issues()
        again = World(tmp_path)
        again.wait(
            PersonAnswers(question="Red?"), recorder=MemoryRecorder(recorder.log), dispose_at=5
        )
        assert [issue] == again.workspace.issues()
        at = datetime(2026, 1, 1).astimezone()
        answer_issue(again.workspace, issue, "Blue", specs=tmp_path / "s", at=at)
        last = World(tmp_path)
        seen = last.wait(PersonAnswers(question="Red?"), recorder=MemoryRecorder(recorder.log))
        assert "happened Blue" == told(seen)[-1][1]


class TestRefusals:
    @pytest.mark.parametrize("of", [os.getpid, os.getppid])
    def test_a_wait_for_oneself(self, world: World, of: Callable[[], int]) -> None:
        """A wait for the end of the own process, or of one that has started it, is an error."""
        pid = of()
        ((_, kind, error),) = world.wait(ProcessEnded(pid=pid))
        assert ("error", ConfigError) == (kind, type(error))
        assert f"cannot wait: process {pid} is the run itself" in str(error)

    def test_ci_that_nobody_knows(self, world: World) -> None:
        """A project without a forge has no CI to wait for."""
        world.place = replace(world.place, ci=NoCi())
        ((_, kind, error),) = world.wait(CiDone())
        assert ("error", True) == (kind, "no CI" in str(error))

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            ("nothing", "names no source"),
            ("process {own}", "is the run itself"),
            ("file ../secret", "../secret is not in the project"),
            ("file /etc/passwd", "/etc/passwd is not in the project"),
            ("ci", "no CI"),
            ("time 2999-01-01 06:00", "later than the longest wait"),
        ],
    )
    def test_an_agent_is_told(self, world: World, content: str, reason: str) -> None:
        """What an agent cannot wait for is no error, but an event and a result."""
        place, content = replace(world.place, is_confined=True), content.format(own=os.getpid())
        seen = world.t.record(flow(lambda: waiting_asked(content, place, longest=60)))
        ((_, _, refused), (_, kind, _)) = seen
        assert isinstance(refused, WaitingRefused)
        assert ("completed", content, True) == (kind, refused.asked, reason in refused.reason)

    def test_numbers_of_a_sandbox(self, world: World) -> None:
        """A process that a sandbox numbers by itself cannot be named."""
        place = replace(world.place, numbers_processes=False)
        seen = world.t.record(flow(lambda: waiting_asked("process 17", place, longest=60)))
        assert "your sandbox numbers processes by itself" in seen[0][2].reason


def test_what_ends_a_wait_from_outside(world: World) -> None:
    """An error from around the source, such as a budget, is the stream's error."""
    world.place = replace(
        world.place, around=lambda wait: wait.pipe(ops.merge(world.t.cold("9s #")))
    )
    seen = world.wait(At(time=world.at(50)))
    assert [(0, "next"), (9, "error")] == [(when, kind) for when, kind, _ in seen]


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ("I wait.\n\n<WAITING>ci</WAITING>", "ci"),
        ("<WAITING>\nperson\nRed?\n</WAITING>\nbye", "person\nRed?"),
        ("Use `<WAITING>ci</WAITING>` for it", None),
        ("```\n<WAITING>ci</WAITING>\n```", None),
        ("done", None),
        ("", None),
    ],
)
def test_a_wait_in_the_last_message(message: str, content: str | None) -> None:
    """In loops without markers a session waits by its last message, where the marker counts."""
    assert content == waiting_in(message)
