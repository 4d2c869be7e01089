"""`kill -9` of `cuggino run` while its agent has started many processes, with and without views."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import psutil
import pytest

from cuggino.events import SandboxChosen, parse_event
from tests.cli.rounds import plans, works
from tests.cli.test_views import project, scenario
from tests.git_project import GitProject
from tests.limits import LIMIT
from tests.processes.subscribers import eventually

__all__ = ["project"]

_CHILDREN = 50

Place: TypeAlias = Callable[[Path], tuple[list[str], str]]
"""Returns the words before the command, and its PATH."""

_SCENARIO = plans() + works("for i in $(seq CHILDREN); do setsid sleep MARK & done; wait")
_DISABLED = ("bwrap", "--unshare-user", "--disable-userns", "--cap-drop", "ALL")
"""Starts a program where no namespaces can be made, as in a container of Docker's defaults."""


def _as_usual(_folder: Path) -> tuple[list[str], str]:
    return [], os.environ["PATH"]


def _refused(folder: Path) -> tuple[list[str], str]:
    program = folder / "bin/bwrap"
    program.parent.mkdir()
    text = "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2; exit 1\n"
    program.write_text(text)
    program.chmod(0o755)
    return [], f"{program.parent}:{os.environ['PATH']}"


def _disabled(_folder: Path) -> tuple[list[str], str]:
    words = [*_DISABLED, "--dev-bind", "/", "/", "--"]
    works = subprocess.run(
        [*words, "true"], capture_output=True, check=False, timeout=LIMIT
    ).returncode
    if works != 0:
        pytest.skip("bubblewrap cannot disable namespaces here")
    return words, os.environ["PATH"]


@pytest.mark.parametrize(
    "place",
    [_as_usual, *(pytest.param(x, marks=pytest.mark.real_agent) for x in (_refused, _disabled))],
)
def test_nothing_is_left(place: Place, project: GitProject, tmp_path: Path) -> None:
    """The namespace ends them; where there can be none, that is reported once, and they end too."""
    before, path = place(tmp_path)
    mark = f"8{os.getpid()}"
    (project.root / ".cuggino.json").write_text('{"guard": "off"}')
    text = _SCENARIO.replace("MARK", mark).replace("CHILDREN", str(_CHILDREN))
    words = ["run", "--json", "--focus", "x", "--agent", scenario(tmp_path, text)]
    output = tmp_path / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [*before, sys.executable, "-m", "cuggino_cli", *words],
            cwd=project.root,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=file,
        )
    try:
        assert eventually(lambda: len([*_running(mark)]) >= _CHILDREN)
        os.kill(_cuggino(process.pid), signal.SIGKILL)
        process.wait(LIMIT)
        assert eventually(lambda: not [*_running(mark)])
    finally:
        process.kill()
        process.wait(LIMIT)
        for pid in _running(mark):
            os.kill(pid, signal.SIGKILL)
    events = [parse_event(line) for line in output.read_text().splitlines()]
    [chosen] = [event for event in events if isinstance(event, SandboxChosen)]
    if place is _as_usual:
        assert chosen.engine.startswith("bubblewrap")
        assert ("planning", "implementing", "reviewing") == chosen.held
    else:
        assert chosen.engine in ("landlock", "none")
        assert "implementing" in chosen.not_held
        assert chosen.reason.startswith("the system does not permit bubblewrap (bwrap: ")


def _cuggino(pid: int) -> int:
    """Return the process of the command, which may run in bubblewrap itself."""
    root = psutil.Process(pid)
    for process in (root, *root.children(recursive=True)):
        if process.name() != Path(shutil.which("bwrap") or "bwrap").name:
            return process.pid
    raise AssertionError("the command is not running")


def _running(mark: str) -> Iterator[int]:
    for process in psutil.process_iter(["cmdline"]):
        with suppress(psutil.Error):
            if process.info["cmdline"] == ["sleep", mark]:
                yield process.pid
