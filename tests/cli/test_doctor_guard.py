"""What `cuggino doctor` says of the guard, and what a start says when it is off."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cuggino.agents.guard import find_bash
from cuggino.config import Config, save_config
from cuggino.errors import ConfigError
from cuggino.security.shell import shfmt
from cuggino_cli import checks
from cuggino_cli.finding import Finding
from cuggino_cli.guard_checks import HONEST, guard
from cuggino_cli.main import main
from tests.cli.test_doctor import fake_claude

AGENT = "scripted:scenario.toml"
WARNING = "cuggino: the guard is off: agents may do whatever you may\n"


def found(folder: Path, name: str = AGENT, **settings: object) -> Finding:
    """The one thing that is said of the guard."""
    config = Config.model_validate(settings)
    finding, *_ = guard(name, folder=folder, config=config, env=os.environ)
    return finding


@pytest.mark.parametrize("level", ["roles", "full"])
def test_the_guard_works(level: str, ready: Path) -> None:
    """When parser, shell and one try are fine, both programs are named, and the limits told."""
    what = f"guard: {level} ({shfmt.find_shfmt()}, {find_bash(os.environ)})"
    assert Finding("ok", what, HONEST) == found(ready, guard=level)


def test_the_guard_is_off(ready: Path) -> None:
    """A guard that is off is noted with the way to turn it on."""
    finding = found(ready, guard="off")
    assert ("note", "guard: off, an agent may do whatever you may") == (
        finding.status,
        finding.what,
    )
    assert finding.hint == 'set "guard" to "roles" in .cuggino.json'


def test_claude_new_enough(ready: Path) -> None:
    """A program of a version that knows how to fail closed is fine; an older one is a problem."""
    path = fake_claude(ready, "2.1.295")
    assert "ok" == found(ready, "claude", agent_path=path).status
    fake_claude(ready, "2.1.294")
    finding = found(ready, "claude", agent_path=path)
    assert "problem" == finding.status
    assert "2.1.294 is too old to be guarded, at least 2.1.295 is needed" in finding.what
    assert '"guard"' in str(finding.hint)


def test_no_parser(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without shfmt it is a problem with the way to install it."""

    def missing() -> str:
        raise ConfigError("no shfmt", hint="install it")

    monkeypatch.setattr(shfmt, "find_shfmt", missing)
    expected = ("problem", "guard: no shfmt")
    finding = found(ready)
    assert expected == (finding.status, finding.what)
    assert str(finding.hint).startswith("install it")


def test_an_agent_without_a_guard(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that cannot be guarded is a problem that names it, unless the guard is off."""

    class Unguarded:
        name = "odd"
        check_guard = None

    monkeypatch.setattr("cuggino.agents.make_agent", lambda *_args, **_options: Unguarded())
    finding = found(ready, "odd")
    assert "problem" == finding.status
    assert finding.what.startswith("guard: there is none for odd")
    assert "note" == found(ready, "odd", guard="off").status


def test_only_with_an_agent(ready: Path) -> None:
    """Without an agent, or a configuration, nothing is said of the guard."""
    topics = [
        finding.what.partition(":")[0]
        for finding in checks.diagnose(ready, agent="nobody", env=os.environ, uid=1)
    ]
    assert "agent" in topics
    assert "guard" not in topics


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_start_without_guard_says_so(
    options: list[str], ready: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A run with the guard off says so on standard error, once; standard output stays as it is."""
    save_config(ready, Config(agent=AGENT, guard="off"))
    main(["run", "--focus", "x", *options])
    said = capfd.readouterr()
    assert 1 == said.err.count(WARNING)
    assert WARNING not in said.out
    if options:
        assert all(json.loads(line)["_tag"] for line in said.out.splitlines())


def test_a_guarded_start_says_nothing(ready: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A run with the guard on has no such line."""
    main(["run", "--focus", "x"])
    assert "guard" not in capfd.readouterr().err
