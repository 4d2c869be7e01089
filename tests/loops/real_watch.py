"""A project with a backlog, and `cuggino watch` on it as a separate process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from cuggino import Config, save_config
from cuggino.events import Event, SnapshotTaken, is_llm_agent_event, parse_event
from cuggino.storage import Workspace
from tests.git_project import GitProject
from tests.limits import LIMIT
from tests.processes.subscribers import alive, eventually

FIRST, SECOND = "010-alpha.md", "020-beta.md"

FINDING = "The specification names no unit."
ISSUE = "Which beta is meant?"

_TOOL = """
import subprocess, sys, time

child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
time.sleep(600)
"""
"""What an agent is busy with for longer than any test waits; it has a child of its own."""

_WITNESS = """
import sys
import psutil

# A role may write nothing but its own file; this program does it for the test.
told = open(sys.argv[3], "a") if len(sys.argv) > 3 else sys.stdout
if len(sys.argv) > 3:
    print("looked", file=told)
for process in psutil.process_iter():
    try:
        role = process.environ().get("CUGGINO_ROLE")
        if role == sys.argv[1] and process.cwd() == sys.argv[2]:
            print(process.pid, file=told)
    except (psutil.Error, OSError):
        pass
"""
"""Prints who works in a role (first argument) in a project (second one), or adds it to a file."""


class WatchProject:
    """A project with a specification, an empty backlog, and programs for its agents to run."""

    def __init__(self, place: Path, **config: Any) -> None:
        self._place = place
        self.folder = place / "project"
        self.git = GitProject(self.folder)
        self.git.write(".specs/words.md", "The words alpha and beta, a file each.\n")
        self.git.write("README.md", "Words.\n")
        # In views, agents could not see the processes of others, as the witness does.
        settings = {"commit": True, "sandbox": "off", **config}
        save_config(self.folder, Config(settle_seconds=0.3, **settings))
        self.git.git("add", "README.md", ".cuggino.json")
        self.git.git("commit", "--quiet", "-m", "Begin")
        self.workspace = Workspace(self.folder)
        (place / "tool.py").write_text(_TOOL)
        (place / "witness.py").write_text(_WITNESS)

    @property
    def tool(self) -> str:
        """The command of an agent that is busy."""
        return f'"$CUGGINO_PYTHON" "{self._place}/tool.py"'

    @property
    def look_for_audit(self) -> str:
        """The command of an agent that notes who of the audit still runs."""
        witness = f'"$CUGGINO_PYTHON" "{self._place}/witness.py"'
        return f'{witness} audit "{self.folder}" "{self._place}/witnessed"'

    @property
    def witnessed(self) -> list[str]:
        """The agents' records of the audit: `looked` for each look, and every process."""
        return (self._place / "witnessed").read_text().splitlines()

    def working(self, role: str) -> list[int]:
        """Return the processes of a role."""
        looks = [sys.executable, str(self._place / "witness.py"), role, str(self.folder)]
        return [int(pid) for pid in subprocess.check_output(looks, timeout=LIMIT).split()]

    def wait_for_tool(self, role: str) -> list[int]:
        """The processes of the agent, as soon as its tool and the tool's child work."""

        def is_busy() -> bool:
            found = [pid for pid in self.working(role) if "sleep(600)" in _command_of(pid)]
            return bool(found)

        assert eventually(is_busy), f"the tool of the {role} agent does not work"
        return self.working(role)

    def drop(self, *names: str) -> None:
        """Put items into the backlog, the later ones with an earlier time of change."""
        for age, name in enumerate(names):
            path = self.workspace.backlog / name
            path.write_text(f"Write the word of {name}.\n")
            os.utime(path, (time.time() - 60 * age,) * 2)

    @property
    def backlog(self) -> list[str]:
        return sorted(path.name for path in self.workspace.backlog.iterdir())

    @property
    def archived(self) -> list[str]:
        """The archive in the order of time, without the leading UUIDs."""
        return [path.name[37:] for path in sorted(self.workspace.archive.iterdir())]

    @property
    def subjects(self) -> list[str]:
        return self.git.git("log", "--reverse", "--format=%s").splitlines()

    @property
    def session_files(self) -> list[str]:
        return [path.name for path in self.workspace.wip.iterdir()]

    @property
    def is_free(self) -> bool:
        """Another watch could start."""
        with Workspace(self.folder).lock():
            return True


def _command_of(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ""


class Watch:
    """`cuggino watch --json` in the project, read as it goes; it is killed on leaving."""

    def __init__(self, project: WatchProject, *args: str, env: dict[str, str] | None = None):
        self._project = project
        self._command = [sys.executable, "-m", "cuggino_cli", "watch", "--json", *args]
        self._env = env
        self._news = threading.Condition()
        self._at = 0
        self._over = False
        self._unreadable: list[bytes] = []
        self.events: list[Event] = []

    def __enter__(self) -> Watch:
        self._errors = (self._project.folder.parent / "stderr").open("w+b")
        self.process = subprocess.Popen(
            self._command,
            cwd=self._project.folder,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        self._errors.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                with self._news:
                    try:
                        self.events.append(parse_event(line))
                    except ValueError:
                        self._unreadable.append(line)
                    self._news.notify_all()
        with self._news:
            self._over = True
            self._news.notify_all()

    def until(self, tag: str) -> Event:
        """The next event with this tag, behind the one that was waited for before."""
        deadline = time.monotonic() + LIMIT
        with self._news:
            while True:
                for number in range(self._at, len(self.events)):
                    if self.events[number].tag == tag:
                        self._at = number + 1
                        return self.events[number]
                left = deadline - time.monotonic()
                if self._over or left <= 0:
                    came = [event.tag for event in self.events[self._at :]]
                    pytest.fail(f"no {tag}, but {came} and: {self.stderr}")
                self._news.wait(left)

    @property
    def stderr(self) -> str:
        self._errors.flush()
        return Path(self._errors.name).read_text()

    @property
    def story(self) -> list[str]:
        """The tags of all but agents' events and snapshots, with the item where there is one."""
        return [
            f"{event.tag} {name}" if (name := getattr(event, "filename", None)) else event.tag
            for event in self.events
            if not is_llm_agent_event(event) and not isinstance(event, SnapshotTaken)
        ]

    def interrupt(self) -> None:
        """End it by SIGINT, and see that all it had started has ended with it."""
        tree = self._tree()
        self.process.send_signal(signal.SIGINT)
        assert 130 == self.process.wait(LIMIT)
        self._reader.join(LIMIT)
        assert eventually(lambda: not [pid for pid in tree if alive(pid)])
        assert [] == self._unreadable
        assert "" == self.stderr.strip()

    def kill(self) -> list[int]:
        """Kill it and return the processes that it had started."""
        tree = self._tree()
        self.process.kill()
        assert -signal.SIGKILL == self.process.wait(LIMIT)
        return tree

    def _tree(self) -> list[int]:
        children = psutil.Process(self.process.pid).children(recursive=True)
        return [child.pid for child in children]
