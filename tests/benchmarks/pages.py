"""The live page: what a server with open pages takes, beside the run that they show."""

from __future__ import annotations

import contextlib
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil

import cuggino_cli
from cuggino.events import AgentMessage
from cuggino.runs import follow
from cuggino.storage import Entry
from cuggino_cli.commands.demo import make_project
from tests.benchmarks.measuring import Figure, Took, run
from tests.served_link import link_in
from tests.web.journals import Writer
from tests.web.server import page

_SCENARIO = Path(cuggino_cli.__file__).parent / "demo" / "scenario.toml"
_LIMIT = 60.0


def open_pages(*, pages: int = 20, rounds: int = 3) -> Iterator[Figure]:
    """Measure the server's CPU with open pages of a run, compared with that of the run.

    The pages of one browser share a stream. The server has shown a run before, so that one-time
    loading is not counted.
    """
    kinds = {"pages": 1, "browsers": pages}
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        warm = rounds > 1
        count = len(kinds) * rounds + warm
        projects = [make_project(f"{name}/project{number}") for number in range(count)]
        server, url = stack.enter_context(_serving(projects, Path(name) / "state"))
        client = stack.enter_context(httpx.Client(follow_redirects=True, timeout=_LIMIT))
        clean = str(client.get(url).raise_for_status().url)
        measure = partial(_measure, server=server, client=client, clean=clean)
        if warm:
            measure(1, projects.pop())
        found = {
            kind: [measure(streams, projects.pop()) for _ in range(rounds)]
            for kind, streams in kinds.items()
        }
    for kind, pairs in found.items():
        serving, working = sorted(pairs, key=lambda pair: pair[0] / pair[1])[rounds // 2]
        where = "in one browser" if kind == "pages" else "in as many browsers"
        yield Figure(
            key=f"serve.{kind}",
            name=f"`cuggino serve`, {pages} open pages of a run {where}",
            value=serving,
            unit="s",
            floor=working,
            floor_name="that run, of the demo",
        )


def event_latency(*, events: int = 100, pause: float = 0.1) -> Iterator[Figure]:
    """Measure the time from an entry of a journal to its follower, and to the stream of its page.

    The value is that of the slowest but one in twenty.
    """
    with tempfile.TemporaryDirectory() as name:
        project = Path(name) / "shop"
        project.mkdir()
        run_of = Writer(project)
        run_of.write("begin")
        written: dict[str, float] = {}
        followed: dict[str, float] = {}
        shown: dict[str, float] = {}

        def write() -> None:
            for number in range(events):
                time.sleep(pause)
                written[f"note-{number}-"] = time.monotonic()
                run_of.write(f"note-{number}-")

        def note(entry: Entry) -> None:
            if isinstance(entry.event, AgentMessage):
                followed[entry.event.text] = time.monotonic()

        entries = follow(project, run_of.path, is_worked_on=lambda _last: True)
        following = entries.subscribe(note)
        with page(project) as served:
            place = served.server.app.site.places[0].key
            text = served.get("w", place, "r", run_of.run_id).text
            seq = int(text.partition('data-seq="')[2].partition('"')[0])
            with served.stream(f"r.{place}.{run_of.run_id}", after=seq) as messages:
                writing = threading.Thread(target=write)
                writing.start()
                while len(shown) < events:
                    data = next(messages).data
                    for found in re.findall("note-[0-9]+-", data):
                        shown.setdefault(found, time.monotonic())
                writing.join()
        following.dispose()
        run_of.journal.close()
    for key, seen, what in (
        ("follow.latency", followed, "`cuggino follow`"),
        ("serve.latency", shown, "the stream of its live page"),
    ):
        took = sorted(seen[one] - at for one, at in written.items())
        yield Figure(
            key=key,
            name=f"an event to {what}, 95 of 100 times at most",
            value=took[int(len(took) * 0.95) - 1] * 1000,
            unit="ms",
        )


def _measure(
    streams: int, project: Path, *, server: subprocess.Popen[str], client: httpx.Client, clean: str
) -> tuple[float, float]:
    """Return the CPU seconds of the server, from when the pages are open, and of the run."""
    taken: list[Took] = []
    command = [sys.executable, "-m", "cuggino_cli", "run", "--focus", "temperatures"]
    command += ["--agent", f"scripted:{_SCENARIO}"]
    working = threading.Thread(target=lambda: taken.append(run(command, cwd=project)))
    working.start()
    try:
        run_id = _run_id(project)
        client.get(f"{clean}w/{project.name}/r/{run_id}").raise_for_status()
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        with _reading(streams, clean, f"stream?on=r.{project.name}.{run_id}", cookie):
            time.sleep(0.2)
            before = _cpu(server)
            working.join()
            time.sleep(1.5)  # the last drawing
            spent = _cpu(server) - before
    finally:
        working.join()
    (ran,) = taken
    return spent, ran.cpu


@contextmanager
def _serving(projects: Sequence[Path], state: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "cuggino_cli", "serve", *map(str, projects)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**psutil.Process().environ(), "XDG_STATE_HOME": str(state)},
    )
    with process:
        try:
            assert process.stdout is not None
            link = link_in(process.stdout.readline())
            assert link is not None
            yield process, link
        finally:
            process.kill()


@contextmanager
def _reading(tabs: int, clean: str, target: str, cookie: str) -> Iterator[None]:
    """Read streams, as browsers do; what they say is not looked at."""
    place = urlsplit(clean)
    selector = selectors.DefaultSelector()
    ended = threading.Event()
    for _ in range(tabs):
        client = socket.create_connection((place.hostname, place.port))
        head = f"GET {place.path}{target} HTTP/1.1\r\nHost: {place.netloc}\r\nCookie: {cookie}\r\n"
        client.sendall(f"{head}\r\n".encode())
        selector.register(client, selectors.EVENT_READ)

    def read() -> None:
        while not ended.is_set():
            for key, _ in selector.select(0.2):
                client = key.fileobj
                assert isinstance(client, socket.socket)
                if not client.recv(1 << 20):
                    selector.unregister(client)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        ended.set()
        reader.join()
        for key in list(selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        selector.close()


def _run_id(project: Path) -> str:
    deadline = time.monotonic() + _LIMIT
    while time.monotonic() < deadline:
        found = list((project / ".cuggino" / "journal").glob("*.jsonl"))
        if found and found[0].stat().st_size:
            return found[0].stem
        time.sleep(0.02)
    raise AssertionError("the run has no journal")


def _cpu(process: subprocess.Popen[str]) -> float:
    used = psutil.Process(process.pid).cpu_times()
    return used.user + used.system
