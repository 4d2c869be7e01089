"""A run in a separate process, commanded from another terminal; each session waits for a gate."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cuggino.events import Event
from cuggino.storage import Workspace, list_journals, read_journal
from cuggino_cli.main import main
from cuggino_cli.options import commanding
from tests.limits import LIMIT
from tests.processes.subscribers import eventually

_SESSIONS = {
    "planning": [
        "# Plan\\n\\n## Task 1: the page\\n\\n- [ ] it\\n",
        "<PLAN_COMPLETE>one</PLAN_COMPLETE>",
    ],
    "implementing": ["", "<DONE>feat: page</DONE>"],
    "reviewing": ["", "<APPROVED>fine</APPROVED>"],
}


def scenario(gates: Path, *, listen: bool = False) -> str:
    """Return a scenario whose sessions write their prompts and wait for the gate of their role."""
    parts = ["repeat = true"]
    for role, (plan, marker) in _SESSIONS.items():
        parts.append(f"[[{role}]]")
        if plan:
            parts.append(f'[[{role}.steps]]\nwrite = "$CUGGINO_PLAN_FILE"\ntext = "{plan}"')
        if listen and role == "implementing":
            parts.append(f"[[{role}.steps]]\nlisten = {LIMIT}")
            parts.append(f"[[{role}.steps]]\nsay = 'heard: $CUGGINO_MESSAGE'")
        gate = gates / role
        waiting = f"touch {gate}.waits; until [ -e {gate} ]; do sleep 0.02; done"
        parts.append(f"[[{role}.steps]]\nrun = '{waiting}'")
        parts.append(f'[[{role}.steps]]\nsay = "{marker}"')
    return "\n".join(parts) + "\n"


class Commanded:
    """A project, the run that works in it, and another terminal there."""

    def __init__(self, place: Path, *, listen: bool = False, **config: object) -> None:
        self.folder = place / "project"
        self.gates = place / "gates"
        (self.folder / ".specs").mkdir(parents=True)
        self.gates.mkdir()
        (self.folder / ".specs" / "a.md").write_text("# Page\n")
        (self.folder / "scenario.toml").write_text(scenario(self.gates, listen=listen))
        settings = {"agent": "scripted:scenario.toml", "sandbox": "off", "guard": "off", **config}
        (self.folder / ".cuggino.json").write_text(json.dumps(settings))
        self.workspace = Workspace(self.folder)
        self.process: subprocess.Popen[str] | None = None
        self._all: list[subprocess.Popen[str]] = []

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start `cuggino` with these arguments as the run."""
        self.process = self.open(*args)
        return self.process

    def open(self, *args: str) -> subprocess.Popen[str]:
        """Start `cuggino` beside the run."""
        process = subprocess.Popen(
            [sys.executable, "-m", "cuggino_cli", *args],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._all.append(process)
        return process

    def tell(
        self, *args: str, env: dict[str, str] | None = None, stdin: str = ""
    ) -> tuple[int, str]:
        """Run a command of `cuggino` beside the run; return its exit code and its output.

        It runs in this process: to the run, that is another one too.
        """
        output = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(output),
            pytest.MonkeyPatch.context() as patch,
        ):
            # However busy the machine is. No agent here is told at once.
            patch.setattr(commanding, "PATIENCE", LIMIT)
            patch.setattr(commanding, "OUTCOME", 0.0 if args[0] == "steer" else LIMIT)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8"))
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            code = main([*args])
        output.seek(0)
        return code, output.read()

    def at(self, role: str) -> None:
        """Wait until a session of the role waits for its gate."""
        waits = self.gates / f"{role}.waits"
        assert eventually(lambda: waits.exists() or self._has_ended())
        assert waits.exists(), self.said()

    def let(self, *roles: str) -> None:
        """Open the gates of the roles."""
        for role in roles:
            (self.gates / role).touch()

    def kill(self) -> None:
        """Kill the run, as a power cut would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=LIMIT)
        for waiting in self.gates.glob("*.waits"):
            waiting.unlink()

    def ends(self) -> tuple[int, str]:
        """Return the exit code and the output of the run."""
        return self.of(self.process)

    def of(self, process: subprocess.Popen[str] | None) -> tuple[int, str]:
        """Return the exit code and the output of a process."""
        assert process is not None
        output, _ = process.communicate(timeout=LIMIT)
        return process.returncode, output

    def events(self) -> list[Event]:
        """Return the events of all journals, the oldest journal first."""
        paths = reversed(list_journals(self.workspace.journal))
        return [entry.event for path in paths for entry in read_journal(path).entries]

    def tags(self) -> list[str]:
        return [event.tag for event in self.events()]

    def has(self, tag: str, times: int = 1) -> None:
        """Wait until the journals have at least `times` events with this tag."""
        assert eventually(lambda: self.tags().count(tag) >= times or self._has_ended(), every=0.1)
        assert self.tags().count(tag) >= times, self.said()

    def _has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def said(self) -> str:
        return f"{[event.tag for event in self.events()]}"

    def close(self) -> None:
        """End what still works."""
        for process in self._all:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                self.let(*_SESSIONS)
                try:
                    process.communicate(timeout=LIMIT / 10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate(timeout=LIMIT)
