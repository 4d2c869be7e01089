"""The start and the end of a child process, also among a thousand others."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType

import psutil
from reactivex import Observable, from_iterable

from cuggino import Config, Runtime
from cuggino.events import AgentMessage, Event
from cuggino.operators import LoopScheduler, merge_at_most, on_loop
from cuggino.processes import interrupt_processes, process_lines
from cuggino.sandbox import Enclosure, ViewRole, probe, role_view
from tests.benchmarks.measuring import Figure, Skipped, in_turns
from tests.benchmarks.project import project
from tests.limits import LIMIT

_VIEWS: Mapping[ViewRole, str] = MappingProxyType(
    {"implementing": "implementer's view", "reviewing": "reviewer's view"}
)


def start_and_end(*, rounds: int = 15) -> Iterator[Figure]:
    """Measure from subscription to the first line, and from disposal to the end of the tree."""
    argv = ["/bin/sh", "-c", "echo said; exec sleep 600"]

    def plain() -> tuple[float, float]:
        began = time.perf_counter()
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            first = time.perf_counter()
            process.kill()
            process.wait()
        return (first - began) * 1e3, (time.perf_counter() - first) * 1e3

    with _lane() as lane:

        def ours() -> tuple[float, float]:
            said = threading.Event()
            began = time.perf_counter()
            subscription = process_lines(argv).subscribe(lambda _: said.set(), scheduler=lane)
            said.wait(LIMIT)
            first = time.perf_counter()
            subscription.dispose()
            return (first - began) * 1e3, (time.perf_counter() - first) * 1e3

        starts = in_turns(rounds, lambda: plain()[0], lambda: ours()[0])
        ends = in_turns(rounds, lambda: plain()[1], lambda: ours()[1])
    for key, name, (least, taken), floor_name in (
        ("process.start", "subscription to first line", starts, "Popen and readline"),
        ("process.dispose", "disposal to reaped tree", ends, "kill and wait"),
    ):
        yield Figure(
            key=key,
            name=f"{name}, wall time",
            value=taken,
            unit="ms",
            floor=least,
            floor_name=floor_name,
        )


def ending_together(*, agents: int = 4, rounds: int = 3) -> Iterator[Figure]:
    """Measure the disposal of whole runs whose agents take a second to end, all at once."""
    message = {"id": "1", "content": [{"type": "text", "text": "Hello."}]}
    said = json.dumps({"type": "assistant", "message": message})
    session = f"trap 'sleep 1; exit' INT\necho '{said}'\nsleep 600 & wait\n"

    def seconds(count: int) -> float:
        with ExitStack() as stack:
            projects = [stack.enter_context(project()) for _ in range(count)]
            for here in projects:
                here.plays(session)
            folders = [here.folder for here in projects]
            runs = [
                Runtime.live(
                    cwd=here.folder,
                    config=Config(guard="off", sandbox="off", agent_path=str(here.agent)),
                ).run(focus="x")
                for here in projects
            ]
            at_work = threading.Semaphore(0)

            def note(event: object) -> None:
                if isinstance(event, AgentMessage):
                    at_work.release()

            merge = merge_at_most(count, on_release=partial(interrupt_processes, *folders))
            merged: Observable[Event] = from_iterable(runs).pipe(merge)
            held = on_loop(merged).subscribe(note)
            for _ in range(count):
                assert at_work.acquire(timeout=LIMIT), "an agent said nothing"
            began = time.perf_counter()
            held.dispose()
            return time.perf_counter() - began

    one, all_of_them = in_turns(rounds, lambda: seconds(1), lambda: seconds(agents), warm=0)
    yield Figure(
        key="end.together",
        name=f"disposal of {agents} runs whose agents linger, wall time",
        value=all_of_them,
        unit="s",
        floor=one,
        floor_name="of one",
    )


def in_views(*, rounds: int = 15) -> Iterator[Figure]:
    """Measure a process in a view of the project, from subscription to completion.

    Raises:
        Skipped: nothing on this machine enforces views.
    """
    with ExitStack() as stack:
        lane = stack.enter_context(_lane())
        project = Path(stack.enter_context(tempfile.TemporaryDirectory())).resolve()
        subprocess.run(["git", "init", "-q", str(project)], check=True)
        (project / ".specs").mkdir()
        boundary = probe(project)
        if boundary.engine != "bubblewrap":
            raise Skipped(f"no sandbox: {boundary.reason}")

        def run(enclosure: Enclosure | None) -> float:
            done = threading.Event()
            began = time.perf_counter()
            process_lines(["true"], cwd=project, enclosure=enclosure).subscribe(
                on_completed=done.set, scheduler=lane
            )
            assert done.wait(LIMIT)
            return (time.perf_counter() - began) * 1e3

        for role, name in _VIEWS.items():
            enclosure = boundary.enclose(role_view(role, project=project))
            least, taken = in_turns(rounds, lambda: run(None), partial(run, enclosure))
            yield Figure(
                key=f"view.{role}",
                name=f"a process in the {name}, wall time",
                value=taken,
                unit="ms",
                floor=least,
                floor_name="without one",
            )


def among_others(*, others: int = 1000, rounds: int = 15) -> Iterator[Figure]:
    """Measure the end of a child, with the processes that run anyway and with others besides."""
    with ExitStack() as stack:
        lane = stack.enter_context(_lane())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        yield _end("end.alone", folder / "alone", lane, rounds)
        stack.enter_context(_sleepers(others))
        yield _end("end.crowd", folder / "crowd", lane, rounds)


def _end(key: str, fifo: Path, lane: LoopScheduler, rounds: int) -> Figure:
    """Compare with `wait`, timed from the moment when the child may exit."""
    os.mkfifo(fifo)
    argv = ["/bin/sh", "-c", f"exec <'{fifo}'; echo said; read line"]

    def plain() -> float:
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as process, fifo.open("wb") as gate:
            assert process.stdout is not None
            process.stdout.readline()
            began = time.perf_counter()
            gate.close()
            process.stdout.read()
            process.wait()
            return (time.perf_counter() - began) * 1e3

    def ours() -> float:
        said, done = threading.Event(), threading.Event()
        process_lines(argv).subscribe(
            lambda _: said.set(), lambda _: done.set(), done.set, scheduler=lane
        )
        with fifo.open("wb"):
            said.wait(LIMIT)
            began = time.perf_counter()
        done.wait(LIMIT)
        return (time.perf_counter() - began) * 1e3

    least, taken = in_turns(rounds, plain, ours)
    count = len(psutil.pids())
    return Figure(
        key=key,
        name=f"the end of a child among {count:,} processes, wall time more than the floor",
        value=taken - least,
        unit="ms",
        floor=least,
        floor_name="read and wait",
    )


@contextmanager
def _lane() -> Iterator[LoopScheduler]:
    lane = LoopScheduler()
    try:
        yield lane
    finally:
        lane.close()


@contextmanager
def _sleepers(count: int) -> Iterator[None]:
    """Run `count` processes that do nothing; each is killed by its id.

    Raises:
        Skipped: the system does not allow that many.
    """
    most, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if 0 <= most < count + len(psutil.pids()) + 100:
        raise Skipped(f"the limit of processes is {most}")
    running: list[subprocess.Popen[bytes]] = []
    try:
        try:
            for _ in range(count):
                running.append(subprocess.Popen(["sleep", "3600"], close_fds=False))
        except OSError as error:
            raise Skipped(f"{count} processes: {error.strerror}") from error
        yield
    finally:
        for process in running:
            process.kill()
        for process in running:
            process.wait()
