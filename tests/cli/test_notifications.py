"""Notifications of whole commands, received on loopback and by a command of the user."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino.config import Config, NotifySettings, save_config
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.rounds import APPROVES, PLANS, implements
from tests.test_notify_apprise import Server, server as server

pytestmark = pytest.mark.usefixtures("no_engine")

APPROVED = PLANS + implements("app.txt", "hello", said="<DONE>Write it @everyone</DONE>") + APPROVES


@pytest.fixture
def project(ready: Path) -> Path:
    """A project whose agent gets everything approved."""
    (ready / "scenario.toml").write_text(APPROVED)
    return ready


def configure(folder: Path, **notify: Any) -> None:
    """Write the configuration with these settings of `notify`."""
    settings = NotifySettings.model_validate(notify)
    save_config(
        folder, Config(agent="scripted:scenario.toml", guard="off", sandbox="off", notify=settings)
    )


def test_run(project: Path, server: Server) -> None:
    """The end of a run reaches a service and a command, with its focus."""
    configure(project, to=server.url, command="cat >received")
    assert 0 == main(["run", "--focus", "# Login page\n\nas specified", "--quiet"])
    (posted,) = server.posted
    assert "cuggino (project): Approved, unchecked: Login page" == posted["title"]
    received = (project / "received").read_text()
    assert f"{posted['title']}\n\n{posted['message']}\n" == received


@pytest.mark.parametrize("occasions", ["failed", "item,parked"])
def test_another_occasion(occasions: str, project: Path, server: Server) -> None:
    """Notifications on other occasions are not sent."""
    configure(project, to=server.url)
    assert 0 == main(["run", "--focus", "x", "--quiet", "--notify-on", occasions])
    assert [] == server.posted


def test_failing_service(project: Path, server: Server, cli: Cli) -> None:
    """A failure is one event before the result, and changes neither result nor exit code."""
    server.status = 500
    configure(project, to=server.url)
    lines = [json.loads(line) for line in cli("run", "--focus", "x", "--json").splitlines()]
    assert ["NotificationFailed", "LoopApproved"] == [line["_tag"] for line in lines[-2:]]
    assert "not sent to json (HTTP 500)" == lines[-2]["message"]
    assert "geheim" not in json.dumps(lines)


@pytest.mark.parametrize(
    "command",
    [
        ["deliver", "--max-iterations", "1"],
        ["loop", "--auto", "--allow-main", "--max-iterations", "1"],
    ],
    ids=lambda command: command[0],
)
def test_other_loops(command: list[str], project: Path, server: Server, cli: Cli) -> None:
    """Every loop sends its end, and shows a failure."""
    (project / "SPEC.md").write_text("# Login\n")
    main(["loop", "init"])
    configure(project, to=server.url)
    main([*command, "--quiet"])
    (posted,) = server.posted
    assert posted["title"].startswith("cuggino (project): ")
    server.status = 403
    out = cli.both(*command, "--quiet", code=None)
    assert "HTTP 403" in out.out + out.err


@pytest.mark.parametrize(
    ("notify", "options", "rung"),
    [
        ({}, [], True),
        ({"to": "none"}, [], False),
        ({}, ["--notify-on", "item"], False),
        ({}, ["--notify-on", "failed"], False),
        ({}, ["--json"], False),
    ],
)
def test_bell(
    notify: dict[str, Any],
    options: list[str],
    rung: bool,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    """The terminal's bell rings at the end of a run, as configured."""
    monkeypatch.setattr("cuggino_cli.screen.terminal.choose_interactive", lambda *_: True)
    configure(project, **notify)
    assert rung == cli("run", "--focus", "x", *(options or ["--quiet"])).endswith("\a")
