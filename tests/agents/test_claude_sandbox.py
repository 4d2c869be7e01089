"""Whether there is a sandbox on a machine, and how it is ordered from the program."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

import cuggino
from cuggino.agents import SandboxedAgent, SpawnOptions
from cuggino.agents import claude_sandbox as sandboxes
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.claude_sandbox import sandbox_settings, sandbox_unavailable
from cuggino.errors import GuardNotLive
from cuggino.security.policy import Policy
from cuggino.security.sandbox import Sandbox
from tests.agents.fake_claude import tell_all, told


def program(folder: Path, name: str, script: str = "exit 0") -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_helpers_on_linux(tmp_path: Path) -> None:
    """On Linux both helpers must be on the agent's PATH, and the system must let them work."""
    path = tmp_path / "bin"
    env = {"PATH": str(path)}
    assert "bubblewrap and socat not installed" == sandbox_unavailable(env, platform="linux")
    program(path, "socat")
    assert "bubblewrap not installed" == sandbox_unavailable(env, platform="linux")
    program(path, "bwrap")
    assert "" == sandbox_unavailable(env, platform="linux")


def test_a_system_that_refuses(tmp_path: Path) -> None:
    """Where a container does not let it work, the last line that it says is the reason."""
    path = tmp_path / "bin"
    program(path, "socat")
    program(path, "bwrap", "echo first >&2; echo 'bwrap: No permissions' >&2; exit 1")
    why = sandbox_unavailable({"PATH": str(path)}, platform="linux")
    assert f"the system does not let {path}/bwrap work (bwrap: No permissions)" == why


def test_other_systems(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """macOS brings its own; Windows has none."""
    monkeypatch.setattr(sandboxes, "_SEATBELT", str(tmp_path / "sandbox-exec"))
    assert "is missing" in sandbox_unavailable({}, platform="darwin")
    (tmp_path / "sandbox-exec").write_text("")
    assert "" == sandbox_unavailable({}, platform="darwin")
    assert "there is none for win32" == sandbox_unavailable({}, platform="win32")


def test_the_order() -> None:
    """It cannot be left by the agent, must work, and answers for no command by itself."""
    sandbox = Sandbox(deny_write=("/p/.cuggino",), allow_write=("/tmp",), domains=("pypi.org",))
    assert {
        "enabled": True,
        "failIfUnavailable": True,
        "allowUnsandboxedCommands": False,
        "autoAllowBashIfSandboxed": False,
        "filesystem": {"denyWrite": ["/p/.cuggino"], "allowWrite": ["/tmp"]},
        "network": {"allowedDomains": ["pypi.org"], "allowLocalBinding": True},
    } == sandbox_settings(sandbox)


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize("why", ["", "there is none"])
def test_a_session_gets_it(
    why: str, guarded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session is given the block where the machine can hold it, beside its other settings."""
    monkeypatch.setattr(sandboxes, "sandbox_unavailable", lambda _env: why)
    agent = ClaudeAgent(path=tell_all(tmp_path))
    assert isinstance(agent, SandboxedAgent)
    assert why == agent.sandbox_unavailable()
    sandbox = Sandbox(deny_write=("/p/.cuggino",))
    options = SpawnOptions(
        prompt="Go.",
        cwd=tmp_path,
        dangerously_skip_permissions=True,
        guard=Policy(project=str(tmp_path.resolve())) if guarded else None,
        sandbox=sandbox,
        settings={"model": "x"},
    )
    with suppress(GuardNotLive):  # the stand-in runs no hook
        cuggino.run(agent.spawn(options))
    argv = told(tmp_path)["argv"]
    settings = json.loads(argv[argv.index("--settings") + 1])
    assert "x" == settings["model"]
    assert (None if why else sandbox_settings(sandbox)) == settings.get("sandbox")
