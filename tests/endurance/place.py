"""A throw-away project, the commands that run in it, and what they leave behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from cuggino.errors import CugginoError
from cuggino.events import LoopApproved, StageFinished
from cuggino.storage import JournalFile, Workspace, list_journals, read_journal
from tests.limits import LIMIT

ROOT = Path(__file__).parents[2]
COOKIE = "ENDURANCE_PLACE"
"""The variable by which all processes of a place are found."""
_PROBE = re.compile(r"[a-z0-9_]{8}")
"""The file with which Python tries the folder for temporary files; a kill may leave it."""
_GIT_LOCK = re.compile(r"\.git/.*\.lock")
_LOOK = 0.005
_HOOK = "echo . >>.git/count-{name}; sleep 0.05\n"
"""Makes commits take long enough to be killed in their midst."""


class Place:
    """A folder with a committed project, and its own home and folder for temporary files."""

    def __init__(self, root: Path, files: Mapping[str, str], *, name: str = "project") -> None:
        self.root = root.resolve()
        self.folder, self.temp = self.root / name, self.root / "temp"
        for made in (self.folder, self.temp, self.root / "home"):
            made.mkdir(parents=True)
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            COOKIE: str(self.root),
            "HOME": str(self.root / "home"),
            "XDG_CONFIG_HOME": str(self.root / "home"),
            "TMPDIR": str(self.temp),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "PYTHONPATH": str(ROOT),
        }
        self.workspace = Workspace(self.folder)
        self.outputs = self.root
        """The folder of what commands print."""
        self._starts = 0
        for file, text in files.items():
            path = self.folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("init", "--quiet", "--initial-branch=work")
        self.git("config", "user.name", "Endurance")
        self.git("config", "user.email", "endurance@example.org")
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", "begin")
        for kind in ("pre-commit", "post-commit"):
            hook = self.folder / ".git" / "hooks" / kind
            hook.parent.mkdir(exist_ok=True)
            hook.write_text("#!/bin/sh\n" + _HOOK.format(name=kind))
            hook.chmod(0o755)

    def git(self, *words: str) -> str:
        """Run git in the project and return its output."""
        return subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def cuggino(self, *words: str) -> str:
        """Run a short command of cuggino in the project and return its output."""
        return subprocess.run(
            [sys.executable, "-m", "cuggino_cli", *words],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            check=True,
            timeout=LIMIT,
        ).stdout

    def start(self, *words: str) -> Command:
        """Start a command of cuggino that prints its events."""
        self._starts += 1
        return Command(self, self.outputs / f"output-{self._starts}", words)

    @property
    def commits(self) -> int:
        """Return how many commits have begun or ended, as the hooks count them."""
        slots = self.folder.with_name(f"{self.folder.name}.cuggino-slots")
        counts = [
            path
            for folder in (self.folder, *slots.glob("*"), *slots.glob("hands/*"))
            for path in folder.glob(".git/count-*")
        ]
        return sum(path.stat().st_size for path in counts)

    @property
    def journals(self) -> list[JournalFile]:
        """Return all journals, read to their end."""
        return [read_journal(path) for path in list_journals(self.workspace.journal)]

    @property
    def processes(self) -> list[str]:
        """Return the processes that belong to the place, with their commands."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if self._is_ours(process) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(f"{process.pid} {' '.join(process.cmdline())[:200]}")
        return found

    def _is_ours(self, process: psutil.Process) -> bool:
        place = str(self.root)
        return process.environ().get(COOKIE) == place or process.cwd().startswith(place)

    def age_temporary_files(self) -> None:
        """Make temporary files as old as if the next command were started minutes later."""
        for path in self.temp.glob("*"):
            with suppress(FileNotFoundError):
                os.utime(path, (time.time() - 600,) * 2, follow_symlinks=False)

    def problems(self) -> Iterator[str]:
        """Yield what a sound place has not, after the last command has ended."""
        until(lambda: not self.processes)
        for process in self.processes:
            yield f"a process is left: {process}"
        for path in self.temp.glob("*"):
            if not _PROBE.fullmatch(path.name):
                yield f"a temporary file is left: {path.name}"
        for path in sorted(self.folder.rglob("*")):
            name = str(path.relative_to(self.folder))
            if name.endswith((".tmp", "lock.json")) or _GIT_LOCK.fullmatch(name):
                yield f"a file is left: {name}"
        resumable = {journal.run_id for journal in self.journals if journal.resumable}
        for path in self.workspace.wip.glob("*"):
            if path.name.partition(".")[0] not in resumable:
                yield f"a session file is left: {path.name}"
        if changes := self.git("status", "--porcelain"):
            yield f"changes are not committed: {changes!r}"
        try:
            with self.workspace.lock():
                pass
            yield from self._journal_problems()
            self.git("fsck", "--strict", "--no-dangling")
        except (CugginoError, subprocess.CalledProcessError) as error:
            yield f"{error}"

    def _journal_problems(self) -> Iterator[str]:
        for journal in self.journals:
            finished: set[str | None] = set()
            approvals = 0
            for entry in journal.entries:
                event = entry.event
                approvals += isinstance(event, LoopApproved) and event.item is None
                if isinstance(entry.event, StageFinished):
                    if entry.stage in finished:
                        yield f"stage {entry.stage} of {journal.run_id} finished twice"
                    finished.add(entry.stage)
            if journal.torn:
                yield f"the journal {journal.run_id} is torn"
            if approvals > 1 and journal.started.kind == "run":
                yield f"the run {journal.run_id} was approved {approvals} times"


class Command:
    """A command of cuggino that runs in a place; it is killed on leaving."""

    def __init__(self, place: Place, output: Path, words: tuple[str, ...]) -> None:
        self._place = place
        self._output, self._errors = output, output.with_suffix(".errors")
        with self._output.open("wb") as out, self._errors.open("wb") as errors:
            self.process = psutil.Popen(
                [sys.executable, "-m", "cuggino_cli", *words, "--json"],
                cwd=place.folder,
                env=place.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                start_new_session=True,
            )

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self.is_running:
            self.kill()

    @property
    def is_running(self) -> bool:
        """True until the process has ended."""
        return self.process.poll() is None

    @property
    def lines(self) -> int:
        """Return how many events it has printed."""
        return self._output.read_bytes().count(b"\n")

    @property
    def is_idle(self) -> bool:
        """True if it waits for more work."""
        return b'"WatchBacklogWaiting"' in self._output.read_bytes()

    def tags(self) -> list[str]:
        """Return the tags of the events that it has printed."""
        lines = self._output.read_bytes().split(b"\n")[:-1]
        return [json.loads(line)["_tag"] for line in lines]

    @property
    def errors(self) -> str:
        """Return its standard error."""
        return self._errors.read_text(errors="replace")

    def until(self, reached: Callable[[], bool]) -> bool:
        """Wait; return False if the command ends first."""
        until(lambda: reached() or not self.is_running, seconds=LIMIT)
        return self.is_running

    def kill(self) -> None:
        """Kill the command itself, not the processes that it started."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(LIMIT)

    def interrupt(self) -> int:
        """Send SIGINT and return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.wait()

    def wait(self) -> int:
        """Return the exit code."""
        return int(self.process.wait(LIMIT))


def until(reached: Callable[[], bool], *, seconds: float = LIMIT) -> bool:
    """Wait for something; return whether it was reached."""
    deadline = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > deadline:
            return reached()
        time.sleep(_LOOK)
    return True
