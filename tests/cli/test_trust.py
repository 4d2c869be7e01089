"""Trust in a project: questions, warnings, refusals and remembered answers."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import click
import psutil
import pytest

from cuggino import run
from cuggino.errors import ProcessFailed
from cuggino.processes import process_lines
from cuggino_cli.main import main
from cuggino_cli.options.trusting import trust_store
from cuggino_cli.screen import console
from tests.cli.cli import Cli
from tests.git_project import isolate_git
from tests.hostile_project import HostileProject
from tests.limits import LIMIT

STARTS = (
    "run --focus x",
    "run --resume",
    "watch",
    "deliver",
    "deliver sync",
    "loop",
    "plan",
    "pm",
    "backlog import",
)


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's own folder, without a configuration."""
    folder = tmp_path / "user"
    folder.mkdir()
    monkeypatch.delenv("CUGGINO_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    monkeypatch.setattr(psutil.Process, "parents", lambda _self: [])  # a run may start the tests
    for name in ("CUGGINO_CHILD", "CUGGINO_ROLE"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A terminal with scripted answers; one question too many fails."""
    pending: list[bool] = []
    monkeypatch.setattr(console, "on_terminal", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda *_args, **_given: pending.pop(0))
    return pending


def configure(ready: Path, **settings: object) -> None:
    raw = {"agent": "nobody", **settings}
    (ready / ".cuggino.json").write_text(json.dumps(raw), encoding="utf-8")


def own(user: Path, text: str) -> None:
    (user / "cuggino").mkdir(exist_ok=True)
    (user / "cuggino" / "config.json").write_text(text, encoding="utf-8")


def test_a_warning_without_a_terminal(ready: Path, cli: Cli) -> None:
    """Without a terminal the commands are named on standard error, and the run goes on."""
    configure(ready, checkCommand="make\x1b[2J evil", notify="json://user:secret@host")
    err = cli.err("run", "--focus", "x")
    assert "not accepted with `cuggino trust`:\n  .cuggino.json: checkCommand: make" in err
    assert 'unknown agent "nobody"' in err
    assert "secret" not in err
    assert "\x1b" not in err


def test_no_commands(ready: Path, cli: Cli) -> None:
    """A project without commands is neither asked about nor warned of."""
    configure(ready)
    assert "trust" not in cli.err("run", "--focus", "x")


@pytest.mark.parametrize("command", STARTS)
def test_trust_is_required(ready: Path, user: Path, cli: Cli, command: str) -> None:
    """With trust required, nothing starts without a terminal, and a sentence names the reason."""
    own(user, '{"trust": "require"}')
    configure(ready, checkCommand="make evil")
    err = cli.err(*command.split())
    assert "you have not accepted commands of this project: .cuggino.json: checkCommand: " in err
    assert "nobody" not in err
    assert not (ready / ".cuggino").exists()
    assert 0 == main(["trust", "--yes"])
    assert "not accepted" not in cli.err(*command.split(), code=None)


@pytest.mark.parametrize("text", ['{"trust": "never"}', '{"trusts": "ask"}', "[]", "{"])
def test_an_unusable_configuration_of_the_user(
    ready: Path, user: Path, cli: Cli, text: str
) -> None:
    """It is an error that names the file, not a silent default."""
    own(user, text)
    assert "config.json: " in cli.err("run", "--focus", "x")


def test_trust_is_off(ready: Path, user: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user may turn it off, also by a file that a variable names."""
    configure(ready, checkCommand="make evil")
    own(user, '{"trust": "off"}')
    assert "trust" not in cli.err("run", "--focus", "x", code=None)
    monkeypatch.setenv("CUGGINO_CONFIG", str(user / "cuggino" / "config.json"))
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert "trust" not in cli.err("run", "--focus", "x", code=None)


@pytest.mark.parametrize("command", STARTS)
def test_a_refusal(ready: Path, answers: list[bool], cli: Cli, command: str) -> None:
    """A user who answers no has started nothing, and is asked again."""
    configure(ready, checkCommand="make evil")
    for _ in range(2):
        answers.append(False)
        err = cli.err(*command.split())
        assert "  .cuggino.json: checkCommand: make evil\n" in err
        assert "nobody" not in err
    assert not (ready / ".cuggino").exists()


def test_one_question(ready: Path, answers: list[bool], cli: Cli) -> None:
    """An accepted command is not asked about again; a changed one is, alone."""
    configure(ready, checkCommand="make", setupCommand="npm ci")
    answers.append(True)
    for _ in range(2):
        main(["run", "--focus", "x"])
    cli.printed()
    configure(ready, checkCommand="make evil", setupCommand="npm ci")
    answers.append(True)
    err = cli.err("watch", code=None)
    assert "checkCommand: make evil" in err
    assert "npm ci" not in err
    assert [] == answers


def test_setup_is_not_asked_about(ready: Path, cli: Cli) -> None:
    """Commands typed in `setup` are accepted; those already in the file are not."""
    configure(ready, agent="claude", setupCommand="evil")
    assert 0 == main(["setup", "--yes", "--check-command", "make"])
    store = trust_store()
    assert store is not None
    assert ["evil"] == [command.text for command in store.unseen(ready)]


@pytest.mark.parametrize(
    ("own_rule", "status", "ending"),
    [
        ("ask", "note", "and without a terminal starts them"),
        ("require", "problem", "and without a terminal starts nothing"),
    ],
)
def test_doctor_reports_what_is_not_accepted(
    own_rule: str, status: str, ending: str, ready: Path, user: Path, cli: Cli
) -> None:
    """`doctor` reports what a run would ask about, and that nothing is left to ask."""
    configure(ready, agent="scripted:scenario.toml", checkCommand="make test")
    own(user, json.dumps({"trust": own_rule}))
    assert int(own_rule == "require") == main(["doctor"])
    printed = cli.printed().out
    assert f"{status:<9}trust: you have not accepted yet what is started:" in printed
    assert ".cuggino.json: checkCommand: make test" in printed
    assert ending in printed
    assert 0 == main(["trust", "--yes"])
    assert "ok       trust: all 2 commands and settings accepted" in cli("doctor")


def test_the_page_is_served_after_the_question(ready: Path, answers: list[bool], cli: Cli) -> None:
    """A watch asks at its start: no link is printed and no server started before."""
    configure(ready, agent="scripted:scenario.toml", checkCommand="make test")
    answers.append(False)
    printed = "".join(cli.both("watch", "--serve", code=2))
    assert "you did not accept" in printed
    assert "Serving" not in printed


def test_the_command(ready: Path, cli: Cli) -> None:
    """`cuggino trust` shows, accepts, lists and revokes."""
    configure(ready, checkCommand="make")
    assert "pass --yes" in cli.err("trust")
    assert ("Accepted.\n", "  .cuggino.json: checkCommand: make\n") == cli.both("trust", "--yes")
    assert "All 1 are accepted.\n" == cli("trust")
    assert f"1 accepted  {ready}\n" in cli("trust", "--list")
    assert 0 == main(["trust", "--revoke", str(ready)])
    assert "Forgotten.\nNothing was accepted for this folder.\n" == cli("trust", "--revoke")
    assert "" == cli("trust", "--list")
    configure(ready)
    assert "It starts nothing.\n" == cli("trust")


def test_the_command_on_a_terminal(ready: Path, answers: list[bool]) -> None:
    """It asks there; an answer of no is exit code 1."""
    configure(ready, checkCommand="make")
    answers += [False, True]
    assert [1, 0, 0] == [main(["trust"]) for _ in range(3)]


@pytest.mark.parametrize("args", ["--yes --list", "--list x", "missing"])
def test_wrong_usage(ready: Path, args: str) -> None:
    """Options that exclude each other and missing folders are wrong usage."""
    assert 2 == main(["trust", *args.split()])


def test_agents_and_commands_cannot_accept(
    ready: Path, answers: list[bool], monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """An agent can look and revoke, but accepts nothing: neither by an answer nor in `setup`."""
    configure(ready, agent="claude", checkCommand="make evil")
    monkeypatch.setenv("CUGGINO_ROLE", "implementing")
    for command in (["trust"], ["trust", "--yes"]):
        assert 2 == main(command)
        said = "cuggino: agents and commands of a run cannot accept what a project starts"
        assert cli.printed().err.startswith(said)
    configure(ready, checkCommand="make evil")
    assert "not accepted with `cuggino trust`:" in cli.err("run", "--focus", "x")
    configure(ready, agent="claude")
    assert 0 == main(["setup", "--yes", "--check-command", "make evil"])
    assert 0 == main(["trust", "--revoke"])
    store = trust_store()
    assert store is not None
    assert ["make evil"] == [command.text for command in store.unseen(ready)]
    monkeypatch.delenv("CUGGINO_ROLE")
    assert 0 == main(["trust", "--yes"])
    assert store.is_trusted(ready)


@pytest.mark.parametrize("cleared", ["", "env -u CUGGINO_CHILD ", "unset CUGGINO_CHILD; "])
def test_a_command_of_a_run_cannot_accept(ready: Path, cleared: str) -> None:
    """Nor does a check command, also when it clears its own environment."""
    own = Path(sys.executable).parent / "cuggino"
    configure(ready, checkCommand="make evil")
    script = f"{cleared}{own} trust --yes || exit $?"
    with pytest.raises(ProcessFailed) as failed:
        run(process_lines(["sh", "-c", script], cwd=ready))
    assert 2 == failed.value.child_exit_code
    store = trust_store()
    assert store is not None
    assert not store.folder.exists()


@pytest.mark.real_agent
def test_a_hostile_project_on_a_terminal(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that would run is shown before anything runs, in a real terminal."""
    isolate_git(monkeypatch, tmp_path / "home")
    hostile = HostileProject(tmp_path / "project")
    program = hostile.program("bin/claude", "2.1.329 (Claude Code)")
    hostile.module("evil")
    hostile.configure(agent="evil:Agent", agentPath=str(program), checkCommand="./evil.sh check")
    hostile.git.write(".specs/a.md", "# A\n")
    hostile.break_git()
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / "cuggino"), "run", "--focus", "x"],
        cwd=hostile.root,
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    os.write(master, b"n\n")
    said = b""
    while b"did not accept" not in said:
        said += os.read(master, 4096)
    assert 2 == process.wait(LIMIT)
    os.close(master)
    for words in (b"agent: evil:Agent", b"checkCommand: ./evil.sh check", b"core.fsmonitor"):
        assert words in said
    assert [] == hostile.ran()
