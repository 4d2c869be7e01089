"""`cuggino doctor` on the guard, and the warning at startup when the guard is off."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents import find_bash, make_agent
from cuggino.config import Config, save_config
from cuggino.doctor.agent_checks import HONEST, guard
from cuggino.doctor.result import CheckResult, about
from cuggino.errors import ConfigError
from cuggino.guard.shell import shfmt
from cuggino.sandbox import Boundary
from cuggino.testing import InMemoryAgent
from cuggino_cli.main import main
from cuggino_cli.options.supervision import warn_if_loose
from tests.cli.looking import look_at_all, place
from tests.cli.test_doctor import fake_claude

AGENT = "scripted:scenario.toml"
WARNING = "cuggino: the guard is off: only the sandbox limits what agents may do\n"


def found(folder: Path, name: str = AGENT, **settings: Any) -> CheckResult:
    """Return the only finding about the guard."""
    there = place(folder, **settings)
    finding, *_ = about("guard", lambda: guard(name, there))
    return finding


@pytest.mark.parametrize("level", ["roles", "full"])
def test_the_guard_works(level: str, ready: Path) -> None:
    """With a working parser, shell and trial, both programs and the limits are reported."""
    what = f"guard: {level} ({shfmt.find_shfmt()}, {find_bash(os.environ)})"
    assert CheckResult("ok", what, HONEST) == found(ready, guard=level)


def test_the_guard_is_off(ready: Path) -> None:
    """A guard that is off is noted, with how to turn it on."""
    finding = found(ready, guard="off")
    assert ("note", "guard: off, an agent may do whatever you may") == (
        finding.status,
        finding.what,
    )
    assert finding.hint == 'set "guard" to "roles" in .cuggino.json'


def test_claude_new_enough(ready: Path) -> None:
    """A version that supports failing closed passes; an older one is a problem."""
    path = fake_claude(ready, "2.1.295")
    assert "ok" == found(ready, "claude", agent_path=path).status
    fake_claude(ready, "2.1.294")
    finding = found(ready, "claude", agent_path=path)
    assert "problem" == finding.status
    assert "2.1.294 is too old to be guarded, at least 2.1.295 is needed" in finding.what
    assert '"guard"' in str(finding.hint)


def test_no_parser(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing shfmt is a problem, with how to install it."""

    def missing() -> str:
        raise ConfigError("no shfmt", hint="install it")

    monkeypatch.setattr("cuggino.doctor.agent_checks.find_shfmt", missing)
    expected = ("problem", "guard: no shfmt")
    finding = found(ready)
    assert expected == (finding.status, finding.what)
    assert str(finding.hint).startswith("install it")


def test_an_agent_without_a_guard(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent without guard support is a problem that names it, unless the guard is off."""

    unguarded = InMemoryAgent({}, name="odd")
    monkeypatch.setattr(
        "cuggino.doctor.agent_checks.make_agent", lambda *_args, **_options: unguarded
    )
    finding = found(ready, "odd")
    assert "problem" == finding.status
    assert finding.what.startswith("guard: odd is unguarded")
    assert "note" == found(ready, "odd", guard="off").status


def test_an_agent_that_is_asked(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a sandbox, the weaker guard is noted, and settings that end it are a problem."""
    qwen = ready / "qwen"
    qwen.write_text("#!/bin/sh\necho 0.24.4\n")
    qwen.chmod(0o755)
    finding = found(ready, "acp:qwen", agent_path=str(qwen), sandbox="off")
    assert ("note", "guard: roles, but only for the calls that acp:qwen asks about") == (
        finding.status,
        finding.what,
    )
    (ready / ".qwen").mkdir()
    (ready / ".qwen" / "settings.json").write_text("{}")
    finding = found(ready, "acp:qwen", agent_path=str(qwen), sandbox="off")
    assert "problem" == finding.status
    assert ".qwen can make qwen stop asking" in finding.what
    confined = Boundary(engine="bubblewrap")
    monkeypatch.setattr("cuggino.doctor.sandbox.probe", lambda *_args, **_options: confined)
    assert "ok" == found(ready, "acp:qwen", agent_path=str(qwen)).status


def test_a_run_with_an_agent_that_is_asked(
    ready: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run warns about the weaker guard, unless the system confines its roles."""
    line = "cuggino: acp:qwen decides which calls it asks about"
    save_config(ready, Config(agent="acp:qwen", agent_path="/none/qwen", sandbox="off"))
    main(["run", "--focus", "x"])
    assert 1 == capfd.readouterr().err.count(line)
    confined = Boundary(engine="bubblewrap")
    monkeypatch.setattr(
        "cuggino_cli.options.supervision.probe", lambda *_args, **_options: confined
    )
    config = Config(agent="acp:qwen")
    for roles, expected in ((["implementing"], 0), (["planning"], 0)):
        warn_if_loose(config, make_agent("acp:qwen", cwd=ready), roles=roles)  # type: ignore[arg-type]
        assert expected == capfd.readouterr().err.count(line)
    landlock = Boundary(engine="landlock")
    monkeypatch.setattr(
        "cuggino_cli.options.supervision.probe", lambda *_args, **_options: landlock
    )
    warn_if_loose(config, make_agent("acp:qwen", cwd=ready), roles=["planning", "implementing"])
    assert 1 == capfd.readouterr().err.count(line)


def test_only_with_an_agent(ready: Path) -> None:
    """Without an agent or a configuration, doctor reports nothing about the guard."""
    topics = [finding.what.partition(":")[0] for finding in look_at_all(ready, agent="nobody")]
    assert "agent" in topics
    assert "guard" not in topics


def test_a_run_without_guard_and_sandbox_warns(
    ready: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing limits agents if the sandbox is off, too."""
    save_config(ready, Config(agent=AGENT, guard="off", sandbox="off"))
    main(["run", "--focus", "x"])
    assert "the guard is off: agents may do whatever you may\n" in capfd.readouterr().err


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_unguarded_run_warns(
    options: list[str], ready: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A run with the guard off warns once on standard error and leaves standard output alone."""
    save_config(ready, Config(agent=AGENT, guard="off"))
    main(["run", "--focus", "x", *options])
    said = capfd.readouterr()
    assert 1 == said.err.count(WARNING)
    assert WARNING not in said.out
    if options:
        assert all(json.loads(line)["_tag"] for line in said.out.splitlines())


def test_a_guarded_run_does_not_warn(ready: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A run with the guard on has no such line."""
    main(["run", "--focus", "x"])
    assert "guard" not in capfd.readouterr().err
