"""A temporary project with a fake `claude`, for cuggino and for any other tool.

The fake is the first `claude` on the `PATH`. Its Nth call runs the Nth session, a piece of shell,
and the last one is repeated; it takes any arguments and reads no input.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.measuring import Skipped, Took, run
from tests.benchmarks.sessions import session

_AGENT = """#!/bin/sh
case "$1" in
    --version) echo "2.1.329 (Claude Code)"; exit;;
    auth) echo '{{"loggedIn": true}}'; exit;;
esac
here='{here}'
read -r n <"$here/calls"
n=$((n + 1))
echo $n >"$here/calls"
[ -e "$here/$n" ] || read -r n <"$here/last"
. "$here/$n"
times >>"$here/cpu"
"""
"""`times` prints the CPU of the agent itself."""

LIMIT = 300.0
"""Seconds that another tool may take for one run."""

_PLAN = """file=${CUGGINO_PLAN_FILE:-$(echo "$*" | grep -o "[^ '\\`\\"]*plan\\.md" | head -n 1)}
[ -z "$file" ] || printf '# Plan\\n\\n## Task 1: x\\n' >"$file"
"""
"""Writes the plan where the environment, or else a word of the arguments, wants it."""


_PEAK = """
def peak():
    import resource, sys
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    # Not `ru_maxrss`, which includes the peak of the parent process.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 2**10
"""
"""Source of a function that returns the peak resident memory of a process in MiB."""


_BARE = """
import sys
from cuggino import runtime
from cuggino.stages import spawning
from cuggino.stages import NoSnapshots
from cuggino_cli.main import entry

runtime._snapshots = lambda *_: NoSnapshots()
spawning.protected_for = lambda *_, **__: None
entry(sys.argv[1:])
"""
"""Source of a `cuggino` without snapshots and verification, which no setting turns off."""


class Tree(NamedTuple):
    """An installed cuggino that is measured."""

    python: str
    """The interpreter in which it is installed."""
    mark: str = ""
    """What the keys and names of its figures end with."""

    @classmethod
    def before(cls, place: str) -> Tree:
        """Return the one to compare with: a checkout with a `.venv`, or an interpreter.

        Raises:
            ValueError: cuggino is not installed there, or `PYTHONPATH` might replace it.
        """
        if os.environ.get("PYTHONPATH"):
            raise ValueError("PYTHONPATH is set: both might be the same cuggino")
        found = Path(place).absolute()
        python = found / ".venv" / "bin" / "python" if found.is_dir() else found
        with tempfile.TemporaryDirectory() as nowhere:
            argv = [str(python), "-c", "import cuggino_cli"]
            try:
                subprocess.run(argv, cwd=nowhere, check=True, capture_output=True)
            except (OSError, subprocess.CalledProcessError) as error:
                raise ValueError(f"cuggino is not installed in {place}: {error}") from error
        return cls(str(python), "before")

    def key(self, key: str) -> str:
        """Return the key of its figure; that of the other tree has no target."""
        return f"{key}.{self.mark}" if self.mark else key

    def named(self, name: str) -> str:
        """Return the name of its figure."""
        return f"{name}, {self.mark}" if self.mark else name


HERE = Tree(sys.executable)
"""The cuggino of this interpreter."""


class Peak(NamedTuple):
    """Peak memory and CPU time of a Python process."""

    peak: float
    """MiB."""
    cpu: float
    """Seconds."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A command line that is measured; `name` is what the table calls it."""

    name: str
    argv: tuple[str, ...]
    codes: tuple[int, ...] | None = None
    """The exit codes that are expected; None for any."""
    limit: float | None = None
    """Seconds after which it is killed."""

    @classmethod
    def cuggino(cls, *words: str, tree: Tree = HERE) -> Tool:
        """Return `cuggino run` with further options."""
        start = (tree.python, "-m", "cuggino_cli", "run", "--focus", "x")
        name = tree.named(" ".join(("cuggino run", *words)))
        return cls(name, (*start, *words), (0, 10))

    @classmethod
    def bare_cuggino(cls) -> Tool:
        """Return `cuggino run` without snapshots and verification."""
        start = (sys.executable, "-c", _BARE, "run", "--focus", "x")
        return cls("cuggino run, bare", start, (0, 10))

    @classmethod
    def peer(cls, command: str) -> Tool:
        """Return another tool's command line, for the shell.

        It runs elsewhere, so a program that it names by a relative path is taken from here.
        """
        program, space, rest = command.partition(" ")
        if "/" in program and Path(program).is_file():
            program = shlex.quote(str(Path(program).absolute()))
        return cls(command, ("/bin/sh", "-c", f"{program}{space}{rest}"), limit=LIMIT)


class Project:
    """A committed project with one specification, and the sessions of its agent."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder / "project"
        self.agent = folder / "bin" / "claude"
        self._sessions = folder / "sessions"
        self.env = {
            **os.environ,
            "PATH": f"{self.agent.parent}:{os.environ['PATH']}",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        # Installed packages have their bytecode.
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)
        for made in (self.folder / ".specs", self.agent.parent, self._sessions):
            made.mkdir(parents=True)
        (self.folder / ".specs" / "a.md").write_text("A specification.\n")
        config = {"guard": "off", "sandbox": False, "loginCheck": False, **settings}
        (self.folder / ".cuggino.json").write_text(json.dumps(config))
        (self.folder / ".gitignore").write_text(".cuggino/\n")
        self.git("init", "-q")
        self.git("config", "user.name", "Benchmark")
        self.git("config", "user.email", "benchmark@example.org")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "Start")
        self.agent.write_text(_AGENT.format(here=self._sessions))
        self.agent.chmod(0o755)
        self.plays(prints(session()))

    def git(self, *args: str) -> None:
        """Run git in the project."""
        subprocess.run(
            ["git", *args], cwd=self.folder, env=self.env, check=True, stdout=subprocess.DEVNULL
        )

    def plays(self, *sessions: str) -> None:
        """Set the sessions of the agent, in order; the last is repeated."""
        for number, text in enumerate(sessions, 1):
            (self._sessions / str(number)).write_text(text)
        for left in range(len(sessions) + 1, 1000):
            file = self._sessions / str(left)
            if not file.exists():
                break
            file.unlink()
        (self._sessions / "last").write_text(f"{len(sessions)}\n")
        self.reset_calls()

    @property
    def calls(self) -> int:
        """Return the number of agents since the last `run` began."""
        return int((self._sessions / "calls").read_text())

    def reset_calls(self) -> None:
        """Begin with the first session again."""
        (self._sessions / "calls").write_text("0\n")
        (self._sessions / "cpu").unlink(missing_ok=True)

    def run(self, tool: Tool) -> Took:
        """Run a command line in the restored project; its CPU includes that of the agents.

        Raises:
            Skipped: it has started no agent, or has not ended in time.
        """
        self.restore()
        used = run(tool.argv, cwd=self.folder, env=self.env, codes=tool.codes, limit=tool.limit)
        if not self.calls:
            raise Skipped(f"{tool.name} has started no `claude`")
        return used

    def agents_cpu(self) -> float:
        """Return the CPU of all agents since the last `run` began, to hundredths of a second."""
        try:
            return sum(map(_seconds, (self._sessions / "cpu").read_text().split()))
        except FileNotFoundError:  # they were terminated
            return 0.0

    def run_agent(self) -> Took:
        """Run the agent alone."""
        return run([str(self.agent), "-p"], cwd=self.folder, env=self.env)

    def run_python(self, act: str) -> Peak:
        """Run Python code in the project as it is."""
        note = self._sessions / "peak"
        script = f"{_PEAK}\n{act}\nopen({str(note)!r}, 'w').write(str(peak()))"
        used = run([sys.executable, "-c", script], cwd=self.folder, env=self.env)
        return Peak(float(note.read_text()), used.cpu)

    def restore(self) -> None:
        """Remove everything that a run has left in the project."""
        for left in (".cuggino", ".git/refs/cuggino"):
            shutil.rmtree(self.folder / left, ignore_errors=True)
        self.git("checkout", "-q", ".")
        self.git("clean", "-ffdxq")
        self.reset_calls()


@contextmanager
def project(**settings: object) -> Iterator[Project]:
    """Provide a project, with further keys of its `.cuggino.json`."""
    with tempfile.TemporaryDirectory() as name:
        yield Project(Path(name).resolve(), **settings)


def _seconds(told: str) -> float:
    """Return the seconds of a time such as `1m2.50s`, as the shell's `times` prints it."""
    minutes, _, rest = told.partition("m")
    return int(minutes) * 60 + float(rest.rstrip("s").replace(",", "."))


def calling(*words: str, code: int = 0) -> str:
    """Return Python code that calls the command line and expects the exit code."""
    return f"from cuggino_cli.main import main; assert main({list(words)!r}) == {code}"


def prints(lines: Iterable[bytes]) -> str:
    """Return a session that prints these lines, without a process."""
    quoted = (line.decode().rstrip("\n").replace("'", "'\\''") for line in lines)
    return "printf '%s\\n'" + "".join(f" '{line}'" for line in quoted) + "\n"


def prints_file(path: Path) -> str:
    """Return a session that prints a file at once."""
    return f"cat '{path}'\n"


def prints_lines(path: Path) -> str:
    """Return a session that prints a file line by line, with one `write` each."""
    return f"LC_ALL=C grep --line-buffered '' '{path}'\n"


def prints_alone(path: Path, *, pause: float) -> str:
    """Return a session that prints a file line by line, with a pause of seconds after each."""
    return f"'{sys.executable}' -c '{_ALONE}' '{path}' {pause}\n"


_ALONE = """
import os, sys, time
with open(sys.argv[1], "rb") as file:
    for line in file:
        os.write(1, line)
        time.sleep(float(sys.argv[2]))
"""


def iterations(count: int) -> list[str]:
    """Return the sessions of a run with `count` iterations: plan, work, review."""
    sessions = []
    for number in range(1, count + 1):
        last = number == count
        verdict = "<APPROVED>Good.</APPROVED>"
        if not last:
            # In other words each time: a run ends when its findings repeat.
            verdict = f"<REQUEST_CHANGES>Missing: {chr(96 + number) * 8}</REQUEST_CHANGES>"
        sessions += [
            _PLAN + prints(session(ending="<PLAN_COMPLETE>Planned.</PLAN_COMPLETE>")),
            "echo $n >>notes.txt\n" + prints(session(ending="<DONE>Did it.</DONE>")),
            prints(session(ending=verdict)),
        ]
    return sessions
