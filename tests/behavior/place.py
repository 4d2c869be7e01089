"""A throw-away project for a tool: what runs in it, what is true in it, and what it leaves."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import psutil

from tests.behavior.scenarios import LEDGER, RESETS_IN, USD, Scenario
from tests.behavior.scripted import scenario_toml
from tests.behavior.tools import ROOT, Tool

_FAKE = Path(__file__).with_name("fake_claude.py")
_COOKIE = "BEHAVIOR_RUN"
"""The variable by which all processes of a place are found."""
_GRACE_S = 4.0
"""Seconds after its end in which the processes of a tool have to be gone.

cuggino itself gives the processes of a killed run two seconds after SIGTERM."""
_TICK_S = 0.02
_SESSION = b'"Session initialized"'
"""What a session of the scripted agent prints at its start."""

_NONE: Mapping[str, str] = {}

Stop: TypeAlias = Literal["", "interrupt", "kill"]


@dataclass(kw_only=True)
class Run:
    """One start of a tool: what it prints, and how it ends."""

    output: bytes = b""
    code: int | None = None
    """None if the tool had to be ended."""

    @property
    def was_killed(self) -> bool:
        """True if it was ended by SIGKILL."""
        return self.code == -signal.SIGKILL


@dataclass(kw_only=True)
class Place:
    """A throw-away project with all that is around it."""

    tool: Tool
    scenario: Scenario
    folder: Path
    runs: list[Run] = field(default_factory=list)
    left: int = 0
    """Processes that were there after a run had ended."""
    made: set[str] = field(default_factory=set)
    """The files that agents have made."""

    def __post_init__(self) -> None:
        self.project, self.home = self.folder / "project", self.folder / "home"
        for each in (self.project, self.home):
            each.mkdir(parents=True)
        self.env = {
            **{name: os.environ[name] for name in ("TERM", "TMPDIR") if name in os.environ},
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "IS_SANDBOX": "1",
            "PYTHONPATH": str(ROOT),
            **{f"GIT_{who}_NAME": "someone" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "someone@example.org" for who in ("AUTHOR", "COMMITTER")},
            _COOKIE: str(self.folder),
        }
        self._write_project()
        self.write_agent(self.scenario)
        for words in self.tool.before:
            self._run(*self.words(words))
        if self.tool.is_ours:
            settings = self.project / ".cuggino.json"
            kept = {**json.loads(settings.read_text()), **self.scenario.settings}
            settings.write_text(json.dumps(kept))

    def _write_project(self) -> None:
        tool, scenario = self.tool, self.scenario
        ignored = [".cuggino/", ".cuggino.json", "__pycache__/", LEDGER, *tool.files, *tool.copies]
        files = {
            "README.md": "# A project\n",
            ".specs/work.md": "There is a file `correct`.\n",
            **scenario.files,
            **{name: self.filled(text) for name, text in tool.files.items()},
            ".gitignore": "\n".join([*ignored, scenario.files.get(".gitignore", "")]),
        }
        for name, text in files.items():
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).write_text(text)
        for name in tool.copies:
            shutil.copy2(tool.at.parent / name, self.project / name)
        self._run("git", "init", "--quiet", "--initial-branch", "work")
        self._run("git", "add", "--all")
        self._run("git", "commit", "--quiet", "--message", "start")

    def write_agent(self, scenario: Scenario) -> None:
        """Write what the agent plays; other tools find it as a `claude` on PATH."""
        if self.tool.is_ours:
            (self.folder / "scenario.toml").write_text(scenario_toml(scenario))
            return
        fake = self.folder / "bin" / "claude"
        fake.parent.mkdir(exist_ok=True)
        fake.write_text(f"#!{sys.executable}\n{_FAKE.read_text()}")
        fake.chmod(0o755)
        agent = {
            "acts": [
                {"command": act.command, "says": act.says, "ends": act.ends}
                for act in scenario.acts
            ],
            "signal": self.tool.signal,
            "commits": self.tool.agent_commits,
            "usd": USD,
            "resets_in": RESETS_IN,
        }
        (self.folder / "ended").unlink(missing_ok=True)
        (self.folder / "agent.json").write_text(json.dumps(agent))
        self.env["BEHAVIOR_FOLDER"] = str(self.folder)

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            words, cwd=self.project, env=self.env, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def filled(self, word: str) -> str:
        """Return a word of a command, or the text of a file, with everything filled in."""
        values = {
            "program": str(self.tool.path),
            "check": self.scenario.check,
            "project": str(self.project),
            "agent": f"scripted:{self.folder / 'scenario.toml'}",
        }
        values["task"] = (
            f"There is a file `correct`. Check your work with `{values['check']}`; it has to pass. "
            f"When all is done, say {self.tool.signal}"
        )
        return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), word)

    def words(self, words: Sequence[str]) -> list[str]:
        """Return the words of a command with everything filled in."""
        return [self.filled(word) for word in words]

    # -- what is true

    @property
    def is_at_work(self) -> bool:
        """True once an agent has begun to work."""
        return (self.project / LEDGER).exists()

    def note(self) -> None:
        """Remember the files that agents have made so far."""
        with suppress(FileNotFoundError):
            self.made |= {*(self.project / LEDGER).read_text().split()} - {"-"}

    def is_done(self) -> bool:
        """Return whether a fresh clone of HEAD has the work."""
        clone = self.folder / "clone"
        self._run("git", "clone", "--quiet", str(self.project), str(clone))
        checked = subprocess.run(["/bin/sh", "-c", self.scenario.done], cwd=clone, check=False)
        return checked.returncode == 0

    def lost(self) -> tuple[str, ...]:
        """Return the files of agents that are neither in the project nor in any ref."""
        self.note()
        objects = self._run("git", "rev-list", "--all", "--objects").splitlines()
        kept = {line.partition(" ")[2] for line in objects}
        gone = {name for name in self.made - kept if not (self.project / name).exists()}
        return tuple(sorted(gone))

    @property
    def sessions(self) -> int:
        """Return how many sessions were started."""
        if self.tool.is_ours:
            return sum(run.output.count(_SESSION) for run in self.runs)
        calls = self.folder / "calls"
        return calls.stat().st_size if calls.exists() else 0

    # -- processes

    def start(
        self,
        words: Sequence[str],
        *,
        kill_at: int | None = None,
        meanwhile: Callable[[Run], Stop] = lambda _run: "",
        env: Mapping[str, str] = _NONE,
    ) -> Run:
        """Run a command to its end, or to a byte of its output.

        `meanwhile` is called again and again, and may stop it.
        """
        run = self.start_beside(words, kill_at=kill_at, meanwhile=meanwhile, env=env)
        self.runs.append(run)
        self.note()
        self.left += self.end_processes(_GRACE_S)
        return run

    def start_beside(
        self,
        words: Sequence[str],
        *,
        kill_at: int | None = None,
        meanwhile: Callable[[Run], Stop] = lambda _run: "",
        env: Mapping[str, str] = _NONE,
    ) -> Run:
        """Run a command while another one may run; their processes are not told apart."""
        run = Run()
        deadline = time.monotonic() + self.scenario.limit_s
        with subprocess.Popen(
            self.words(words),
            cwd=self.project,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            was_ended = _follow(process, run, kill_at, meanwhile, deadline)
            run.code = None if was_ended else process.returncode
        return run

    def end_processes(self, grace_s: float = 0) -> int:
        """Count the processes that are still there after a while, and end them."""
        deadline = time.monotonic() + grace_s
        while (left := [*self._processes()]) and time.monotonic() < deadline:
            time.sleep(_TICK_S)
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        return len(left)

    def _processes(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                is_ours = process.environ().get(_COOKIE) == str(self.folder)
                if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                    yield process


def _follow(
    process: subprocess.Popen[bytes],
    run: Run,
    kill_at: int | None,
    meanwhile: Callable[[Run], Stop],
    deadline: float,
) -> bool:
    """Read what a process prints until it has ended; return True if it was ended as too late."""
    assert process.stdout is not None
    pipe, output, is_late = process.stdout.fileno(), bytearray(), False
    os.set_blocking(pipe, False)
    while not is_late:
        has_ended = process.poll() is not None
        most = 1 << 16 if kill_at is None else min(1 << 16, kill_at - len(output))
        try:
            chunk = os.read(pipe, most)
        except BlockingIOError:
            chunk = b""
        output += chunk
        if len(output) == kill_at:
            process.kill()
            break
        if chunk:
            continue
        if has_ended:
            break
        run.output = bytes(output)
        match meanwhile(run):
            case "kill":
                process.kill()
                break
            case "interrupt":
                process.send_signal(signal.SIGINT)
            case _:
                time.sleep(_TICK_S)
        is_late = time.monotonic() > deadline
    if is_late:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
    process.wait()
    run.output = bytes(output)
    return is_late
