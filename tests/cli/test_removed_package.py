"""A run goes on when its package is replaced or removed under it, as by `pip install -U`."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import anyio
import genai_prices
import httpx
import jinja2
import pytest
import reactivex
import starlette
import uvicorn
import watchdog

import cuggino
import cuggino_cli
from cuggino import events as ev
from cuggino.config import Config, save_config
from cuggino_cli.main import entry
from tests.cli import deliveries, loops
from tests.cli.cli import Cli
from tests.cli.rounds import APPROVES, implements, plans
from tests.limits import LIMIT
from tests.sandbox.arena import needs_bubblewrap
from tests.served_link import link_in

pytestmark = pytest.mark.real_agent  # a real process with several agents for each loop

_WAIT = "while test -e ../site/cuggino; do sleep 0.02; done"
_FIRST = f'[[ROLE.steps]]\nrun = "{_WAIT}"\n'
_CODING = plans() + implements("a.txt", "a", said="<DONE>It is done.</DONE>") + APPROVES


class _Case(NamedTuple):
    """A run with a scripted agent whose first session waits for the removal, which it sees."""

    words: tuple[str, ...]
    prepare: Callable[[Path], object]
    last: type[ev.Event]
    """The event after which the run is over, or would wait for more work."""
    code: int = 0


def _coding_project(folder: Path) -> None:
    folder.mkdir()
    (folder / ".specs").mkdir()
    (folder / ".specs" / "a.md").write_text("There is a.txt.\n")
    (folder / ".cuggino" / "backlog").mkdir(parents=True)
    (folder / ".cuggino" / "backlog" / "a.md").write_text("Write a.txt.\n")
    (folder / "scenario.toml").write_text(_waiting(_CODING, "planning"))
    save_config(folder, Config(agent="scripted:scenario.toml", sandbox="off"))


def _waiting(scenario: str, role: str) -> str:
    """Return the scenario with the wait as the first step of the role."""
    first = _FIRST.replace("ROLE", role)
    return scenario.replace(f"[[{role}.steps]]\n", f"{first}[[{role}.steps]]\n", 1)


_CASES = {
    "run": _Case(("run", "--focus", "a"), _coding_project, ev.LoopApproved),
    "watch": _Case(("watch",), _coding_project, ev.WatchItemCompleted, 130),
    "deliver": _Case(
        ("deliver",),
        lambda folder: deliveries.project_of(folder, _waiting(deliveries.SCENARIO, "initializer")),
        ev.DeliverEnded,
    ),
    "loop": _Case(
        ("loop", "--auto"),
        lambda folder: loops.project_of(folder, _waiting(loops.SCENARIO, "plan")),
        ev.PlanBuildEnded,
    ),
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package, in the place of an installation, with libraries that load late."""
    site = tmp_path / "site"
    for library in (cuggino, cuggino_cli, genai_prices, reactivex, watchdog):
        shutil.copytree(Path(library.__path__[0]), site / library.__name__)
    return site


def uninstall(site: Path) -> None:
    """Remove what is installed there, so that no other installation is imported in its place."""
    names = [folder.name for folder in site.iterdir()]
    shutil.rmtree(site)
    site.mkdir()
    for name in names:
        (site / f"{name}.py").write_text(f"raise ImportError('{name} was removed')\n")


@pytest.mark.parametrize("loop", _CASES)
@pytest.mark.parametrize("sandbox", ["off", "require"])
def test_a_run_survives_the_removal_of_its_package(
    loop: str, sandbox: str, package: Path, tmp_path: Path
) -> None:
    """Removed while its first agent works, the package is missed by nothing that follows."""
    case = _CASES[loop]
    project = tmp_path / "project"
    case.prepare(project)
    if sandbox == "require":
        needs_bubblewrap(project)
    with (tmp_path / "errors").open("wb") as errors:
        run = subprocess.Popen(
            [sys.executable, "-m", "cuggino_cli", *case.words, "--json", "--sandbox", sandbox],
            cwd=project,
            env={**os.environ, "PYTHONPATH": str(package)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    assert run.stdout is not None
    events: list[ev.Event] = []
    with run, run.stdout as lines:
        for line in lines:
            events.append(event := ev.parse_event(line))
            if event.tag == "ToolCall" and package.exists():
                shutil.rmtree(package)
            if isinstance(event, case.last) and case.code:  # a watch waits for more
                run.send_signal(signal.SIGINT)
        code = run.wait(LIMIT)
    said = (tmp_path / "errors").read_text()
    assert not package.exists()
    assert "Traceback" not in said, said
    assert any(isinstance(event, case.last) for event in events), said
    assert 2 <= sum(isinstance(event, ev.SessionEnded) for event in events), (said, events[-8:])
    assert case.code == code, said


def test_a_watch_survives_while_it_waits(package: Path, tmp_path: Path) -> None:
    """Removed before its first agent, while a watch waits for an item, it is missed by nothing."""
    project = tmp_path / "project"
    _coding_project(project)
    (item := project / ".cuggino" / "backlog" / "a.md").unlink()
    save_config(project, Config(agent="scripted:scenario.toml", sandbox="off", settle_seconds=0.01))
    kinds = []
    with (
        (tmp_path / "errors").open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "cuggino_cli", "watch", "--json"],
            cwd=project,
            env={**os.environ, "PYTHONPATH": str(package)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as watch,
    ):
        assert watch.stdout is not None
        for line in watch.stdout:
            kinds.append(tag := ev.parse_event(line).tag)
            if tag == "WatchBacklogWaiting" and (package / "cuggino").exists():
                uninstall(package)
                item.write_text("Write a.txt.\n")
            elif tag in ("WatchItemCompleted", "WatchItemRetry"):
                watch.send_signal(signal.SIGINT)
    said = (tmp_path / "errors").read_text()
    assert "Traceback" not in said, said
    assert "WatchItemCompleted" in kinds, said
    assert 130 == watch.returncode


def test_a_page_survives_before_its_first_visitor(package: Path, tmp_path: Path) -> None:
    """Removed once the page is served, the package is missed by no page and no file of it."""
    for library in (anyio, jinja2, starlette, uvicorn):
        shutil.copytree(Path(library.__path__[0]), package / library.__name__)
    project = tmp_path / "project"
    _coding_project(project)
    with subprocess.Popen(
        [sys.executable, "-m", "cuggino_cli", "serve"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(package)},
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        link = link_in(server.stdout.readline())
        assert link is not None
        with httpx.Client(follow_redirects=True, timeout=LIMIT) as client:
            uninstall(package)
            page = client.get(link)
            styles = re.findall(r'<link rel="stylesheet" href="([^"]+)"', page.text)
            codes = [page.status_code, *(client.get(page.url.join(s)).status_code for s in styles)]
        server.send_signal(signal.SIGINT)
    assert len(codes) >= 3 and {*codes} == {200}, codes


def test_removed_while_it_starts(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """What is not loaded yet is missed in one sentence; another missing module is a defect."""
    for name, is_told in (("cuggino.loops", True), ("another", False)):

        def gone(_args: object, name: str = name) -> int:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        monkeypatch.setattr("cuggino_cli.main.main", gone)
        with pytest.raises(SystemExit if is_told else ModuleNotFoundError) as caught:
            entry(["status"])
        if is_told:
            assert 1 == caught.value.args[0]
            told = "cuggino was replaced or upgraded as it started: start again"
            assert f"{told} (No module named 'cuggino.loops')\n" in cli.printed().err
