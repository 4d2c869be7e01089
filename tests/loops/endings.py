"""All the ways in which a run can be ended while an agent's tool works, for any agent.

`Endings` is a contract: a subclass gives the `project` whose first agent runs `tool.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from reactivex import Observable, operators as ops, timer
from reactivex.subject import Subject

import cuggino
from cuggino import Config, LlmAgent, LoopEvent, Runtime, save_config
from cuggino.storage import Workspace, read_journal
from tests.limits import LIMIT
from tests.model_server import ModelServer
from tests.processes.subscribers import alive, eventually

RUN_TOOL = '"$CUGGINO_PYTHON" tool.py'
"""The command of the agent: it says when it has begun, and takes longer than any test waits."""

_TOOL = """
import os, pathlib, signal, time

# An orphan in a session of its own, which nothing but SIGKILL ends.
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(write, str(os.getpid()).encode())
        time.sleep(600)
    os._exit(0)
os.wait()
orphan = int(os.read(read, 20))
# All else that a planning agent writes may vanish with its view of the project.
folder = pathlib.Path(os.environ["CUGGINO_PLAN_FILE"]).parent
(folder / "started.tmp").write_text(f"{os.getpid()} {orphan}")
os.rename(folder / "started.tmp", folder / "started")
time.sleep(600)
"""


@dataclass(frozen=True)
class Project:
    """A project with a specification and the tool, and an agent that will run it."""

    folder: Path
    agent: LlmAgent
    """The agent, for runs in this process."""
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """The environment of the command line."""
    server: ModelServer | None = None
    """The agent's model."""

    @classmethod
    def make(cls, folder: Path, agent: LlmAgent, config: Config, **more: Any) -> Project:
        """Write its files; `config` leads the command line to the same agent."""
        (folder / ".specs").mkdir(parents=True)
        (folder / ".specs" / "a.md").write_text("# A\n")
        (folder / "tool.py").write_text(_TOOL)
        save_config(folder, config)
        return cls(folder, agent, **more)

    def stream(self) -> Observable[LoopEvent]:
        """A run in this process."""
        return Runtime.live(cwd=self.folder, agent=self.agent).run(focus="the tool")

    @property
    def has_started(self) -> bool:
        """The tool is running."""
        return any((self.folder / ".cuggino" / "wip").glob("*.planning/started"))

    @property
    def is_free(self) -> bool:
        """Another run could start."""
        with Workspace(self.folder).lock():
            return True

    def report(self, root: int) -> str:
        """Describe a run that did not reach its tool: journal, model, processes of `root`."""
        journals = sorted((self.folder / ".cuggino" / "journal").glob("*"))
        parts = {
            "journal": "\n".join(path.read_text(errors="replace") for path in journals),
            "model": "" if self.server is None else self.server.transcript,
            "processes": "\n".join(_described(root)),
        }
        return "\n".join(f"--- {name}:\n{text}" for name, text in parts.items())

    def assert_resumable(self) -> None:
        """Assert that the run is resumable by its journal, and that its session file exists."""
        (path,) = (self.folder / ".cuggino" / "journal").iterdir()
        journal = read_journal(path)
        assert journal.resumable
        assert not journal.torn
        kept = {file.name for file in (self.folder / ".cuggino" / "wip").iterdir()}
        assert f"{journal.run_id}.md" in kept
        assert {name.partition(".")[0] for name in kept} == {journal.run_id}


class Tree:
    """The processes of a run, as they were when its tool worked."""

    def __init__(self, project: Project, root: int) -> None:
        of_root = [psutil.Process(root), *psutil.Process(root).children(recursive=True)]
        self._processes = [p for p in of_root if p.pid != os.getpid() and not _is_own_guardian(p)]
        self._cookies = {cookie for p in self._processes if (cookie := _cookie(p))}
        self.tools = [
            p
            for p in psutil.process_iter()
            if _runs_tool(p) and (p in of_root or _cookie(p) in self._cookies)
        ]
        """The tool and its orphan. In a sandbox they believe to have other numbers."""
        self._processes += self.tools
        assert 2 == len(self.tools)
        assert {p.pid for p in self.tools} <= self.living

    @property
    def living(self) -> set[int]:
        """Those which still run, and whoever has joined them."""
        known = {p.pid for p in self._processes if p.is_running() and alive(p.pid)}
        return known | {p.pid for p in psutil.process_iter() if _cookie(p) in self._cookies}


def _described(root: int) -> Iterator[str]:
    """Describe the process and its descendants: state, age, CPU time, command."""
    with suppress(psutil.Error):
        for process in (p := psutil.Process(root), *p.children(recursive=True)):
            with suppress(psutil.Error):
                age, cpu = time.time() - process.create_time(), sum(process.cpu_times()[:2])
                words = " ".join(process.cmdline())[:200]
                yield f"{process.pid} {process.status()} {age:.0f} s, cpu {cpu:.1f} s: {words}"


def _runs_tool(process: psutil.Process) -> bool:
    with suppress(psutil.Error, OSError):
        return "tool.py" in process.cmdline()
    return False


def _cookie(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("CUGGINO_CHILD")
    except (psutil.Error, OSError):
        return None


def _is_own_guardian(process: psutil.Process) -> bool:
    """The guardian of this process stays; that of another is a part of its tree."""
    with suppress(psutil.Error):  # it has ended since
        return process.ppid() == os.getpid() and any("guardian.py" in w for w in process.cmdline())
    return False


class Endings:
    """However a run ends, nothing of it is left."""

    @pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_a_signal_to_the_command(
        self, project: Project, signum: signal.Signals, code: int
    ) -> None:
        """SIGINT and SIGTERM end the command with their exit codes, and all that it started."""
        with _Command(project) as command:
            tree = Tree(project, command.pid)
            command.send_signal(signum)
            assert code == command.wait(LIMIT)
        assert eventually(lambda: not tree.living)
        assert project.is_free
        project.assert_resumable()

    def test_a_command_that_is_killed(self, project: Project) -> None:
        """After a SIGKILL of the command its processes end all the same, and the lock is free."""
        with _Command(project) as command:
            tree = Tree(project, command.pid)
            command.kill()
            assert -signal.SIGKILL == command.wait(LIMIT)
        assert eventually(lambda: not tree.living)
        assert project.is_free

    def test_a_reader_that_leaves(self, project: Project) -> None:
        """When the reader of the output is gone the next event ends the run, as an error."""
        with _Command(project) as command:
            tree = Tree(project, command.pid)
            assert command.stdout is not None
            command.stdout.close()
            for tool in tree.tools:
                with suppress(psutil.NoSuchProcess):  # a sandbox has ended it with the other
                    tool.kill()  # it fails, which the agent then says
            assert 1 == command.wait(LIMIT)
        assert eventually(lambda: not tree.living)
        assert project.is_free
        project.assert_resumable()

    def test_disposal_from_another_thread(self, project: Project) -> None:
        """When `dispose` returns, the run has gone."""
        seen: list[LoopEvent] = []
        subscription = project.stream().subscribe(seen.append)
        tree = _tree_here(project)
        # The tool may work before its line was read.
        assert eventually(lambda: "ToolCall" in [event.tag for event in seen])
        other = threading.Thread(target=subscription.dispose)
        other.start()
        other.join(LIMIT)
        assert not other.is_alive()
        self._all_gone(project, tree)

    def test_take_until_a_subject(self, project: Project) -> None:
        """A subject that fires on another thread ends the run before `run` returns."""
        stop: Subject[None] = Subject()
        trees: list[Tree] = []

        def wait_and_stop() -> None:
            trees.append(_tree_here(project))
            stop.on_next(None)

        other = threading.Thread(target=wait_and_stop)
        other.start()
        cuggino.run(project.stream().pipe(ops.take_until(stop)))
        other.join(LIMIT)
        assert not other.is_alive()
        self._all_gone(project, trees[0])

    def test_take_until_a_timer(self, project: Project) -> None:
        """A timer ends the run."""
        trees: list[Tree] = []

        def looked(_event: object) -> None:
            trees.append(_tree_here(project))

        ends = timer(0.05, 0.05).pipe(
            ops.filter(lambda _: project.has_started), ops.do_action(looked)
        )
        cuggino.run(project.stream().pipe(ops.take_until(ends)))
        self._all_gone(project, trees[0])

    def test_a_subscriber_that_fails(self, project: Project) -> None:
        """An exception in `on_next` ends the run and is raised by `run`."""
        trees: list[Tree] = []

        def fail(event: LoopEvent) -> None:
            if event.tag == "ToolCall":
                trees.append(_tree_here(project))
                raise LookupError("in the subscriber")

        with pytest.raises(LookupError, match="in the subscriber"):
            cuggino.run(project.stream(), fail)
        self._all_gone(project, trees[0])

    @staticmethod
    def _all_gone(project: Project, tree: Tree) -> None:
        assert set() == tree.living
        assert project.is_free
        project.assert_resumable()


def _tree_here(project: Project) -> Tree:
    if not eventually(lambda: project.has_started):
        pytest.fail(f"the tool was not started\n{project.report(os.getpid())}")
    return Tree(project, os.getpid())


class _Command:
    """`cuggino run --json` in the project, as soon as its tool works; it is killed on leaving."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._stderr = project.folder.parent / "stderr"

    def __enter__(self) -> subprocess.Popen[bytes]:
        self._errors = self._stderr.open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cuggino_cli", "run", "--focus", "the tool", "--json"],
            cwd=self._project.folder,
            env=self._project.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        started = eventually(lambda: self._project.has_started or self._process.poll() is not None)
        if not started or not self._project.has_started:
            pytest.fail(f"the tool was not started\n{self._report()}")
        return self._process

    def _report(self) -> str:
        """End the command and describe its outcome."""
        code, report = self._process.poll(), self._project.report(self._process.pid)
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            os.set_blocking(pipe.fileno(), False)
            stdout = (pipe.read() or b"").decode(errors="replace")
        self.__exit__()
        ended = "still running" if code is None else f"exit code {code}"
        stderr = self._stderr.read_text()
        return f"{ended}\n{report}\n--- stdout:\n{stdout}\n--- stderr:\n{stderr}"

    def __exit__(self, *_exc: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()
