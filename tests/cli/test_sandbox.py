"""Sandbox findings of `cuggino doctor`, and the warning at startup."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuggino.agents.claude import ClaudeAgent
from cuggino.config import Config, save_config
from cuggino.doctor.guard import guard
from cuggino.doctor.result import CheckResult
from cuggino_cli.main import main
from tests.cli.test_doctor import fake_claude

AGENT = "scripted:scenario.toml"
BY_FLAG = "Warning: SDK sandbox is disabled. System-level isolation is not enforced.\n"
BY_ENV = "Warning: SDK sandbox disabled via AUTONOE_NO_SANDBOX environment variable.\n"
DESTRUCTIVE = (
    "Warning: Destructive commands (rm, mv) enabled. Files can be deleted within project directory."
)


def found(folder: Path, name: str = AGENT, **settings: object) -> CheckResult:
    """Return the finding about the sandbox."""
    config = Config.model_validate(settings)
    _, finding = guard(name, folder=folder, config=config, env=os.environ)
    return finding


@pytest.fixture
def claude(ready: Path) -> str:
    return fake_claude(ready, "2.1.329")


@pytest.fixture
def unavailable(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make the sandbox unavailable for a given reason."""
    why = [""]
    monkeypatch.setattr(ClaudeAgent, "sandbox_unavailable", lambda _self: why[0])
    return why


def test_doctor_finds_it_on(ready: Path, claude: str, unavailable: list[str]) -> None:
    """An available sandbox is reported with its limits and the number of allowed hosts."""
    found_on = found(ready, "claude", agent_path=claude)
    assert "ok" == found_on.status
    assert found_on.what.startswith("sandbox: on (commands write in the project")
    more = found(ready, "claude", agent_path=claude, sandbox_domains=["*.example.com"])
    assert more.what.endswith("package registries and 1 of yours)")


def test_doctor_finds_none(ready: Path, claude: str, unavailable: list[str]) -> None:
    """An unavailable sandbox is noted with the reason, and that commands run unsandboxed."""
    unavailable[0] = "socat not installed"
    none = found(ready, "claude", agent_path=claude)
    assert ("note", "sandbox: none here, socat not installed") == (none.status, none.what)
    assert "unsandboxed" in str(none.hint)
    assert "sandbox: scripted has none" == found(ready).what


@pytest.mark.parametrize(
    ("env", "settings", "what"),
    [
        ({"AUTONOE_NO_SANDBOX": "1"}, {}, "sandbox: off, by AUTONOE_NO_SANDBOX"),
        ({}, {"sandbox": False}, 'sandbox: off, by "sandbox" in .cuggino.json'),
    ],
)
def test_doctor_finds_it_off(
    env: dict[str, str], settings: dict[str, object], what: str, ready: Path
) -> None:
    """A disabled sandbox is noted with the setting that disabled it."""
    config = Config.model_validate(settings)
    _, finding = guard(AGENT, folder=ready, config=config, env={**os.environ, **env})
    assert ("note", what) == (finding.status, finding.what)


@pytest.mark.parametrize("command", [["run", "--focus", "x"], ["run", "--resume"]])
@pytest.mark.parametrize(
    ("options", "env", "settings", "said"),
    [
        (["--no-sandbox"], {"AUTONOE_NO_SANDBOX": "1"}, {}, BY_FLAG),
        ([], {"AUTONOE_NO_SANDBOX": "1"}, {}, BY_ENV),
        ([], {"AUTONOE_NO_SANDBOX": "true"}, {}, ""),
        ([], {}, {"allow_destructive": True}, ""),
        (["--no-sandbox"], {}, {"guard": "full", "allow_destructive": True}, BY_FLAG + DESTRUCTIVE),
    ],
)
def test_an_unsandboxed_start_warns(
    command: list[str],
    options: list[str],
    env: dict[str, str],
    settings: dict[str, object],
    said: str,
    ready: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The flag takes precedence over the environment; a sandboxed start prints no warning."""
    monkeypatch.delenv("AUTONOE_NO_SANDBOX", raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    save_config(ready, Config.model_validate({"agent": AGENT, **settings}))
    main([*command, *options])
    warnings = capfd.readouterr().err
    assert warnings.startswith(said)
    assert said.count("Warning") == warnings.count("Warning")


def test_full_without_sandbox(
    ready: Path, claude: str, unavailable: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """At `full` an unsandboxed start warns; at `roles` only doctor does."""
    unavailable[0] = "socat not installed"
    said = "checked by the guard alone: socat not installed\n"
    save_config(ready, Config(agent_path=claude, guard="full"))
    main(["run", "--focus", "x", "--max-retries", "0"])
    assert said in capfd.readouterr().err
    save_config(ready, Config(agent_path=claude))
    main(["run", "--focus", "x", "--max-retries", "0"])
    assert said not in capfd.readouterr().err
    save_config(ready, Config(agent=AGENT, guard="full"))
    main(["run", "--focus", "x", "--max-retries", "0"])
    assert "cuggino: scripted has no sandbox" in capfd.readouterr().err
