"""Detecting sandbox support, and the sandbox settings for the program."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.claude import ClaudeAgent, sandbox as sandboxes
from cuggino.agents.claude.sandbox import (
    git_ignores,
    sandbox_settings,
    sandbox_unavailable,
    with_git_ignores,
)
from cuggino.errors import GuardNotLive
from cuggino.guard.policy import Policy
from cuggino.guard.sandbox import Sandbox
from cuggino.sandbox import role_view
from tests.agents.claude.fake_claude import recorded_call, tell_all


def program(folder: Path, name: str, script: str = "exit 0") -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_helpers_on_linux(tmp_path: Path) -> None:
    """On Linux both helpers must be on the agent's PATH and usable."""
    path = tmp_path / "bin"
    env = {"PATH": str(path)}
    assert "bubblewrap and socat not installed" == sandbox_unavailable(env, platform="linux")
    program(path, "socat")
    assert "bubblewrap not installed" == sandbox_unavailable(env, platform="linux")
    program(path, "bwrap")
    assert "" == sandbox_unavailable(env, platform="linux")


def test_a_system_that_refuses(tmp_path: Path) -> None:
    """If a container forbids the sandbox, the reason is the last line of output."""
    path = tmp_path / "bin"
    program(path, "socat")
    program(path, "bwrap", 'echo first >&2; echo "bwrap: No permissions" >&2; exit 1')
    why = sandbox_unavailable({"PATH": str(path)}, platform="linux")
    assert f"the system does not permit {path}/bwrap (bwrap: No permissions)" == why


def test_a_trial_does_not_die_with_its_parent(tmp_path: Path) -> None:
    """bubblewrap killed while it sets up a namespace leaves a process that waits forever."""
    path = tmp_path / "bin"
    program(path, "socat")
    program(path, "bwrap", f'echo "$*" > {tmp_path}/words')
    assert "" == sandbox_unavailable({"PATH": str(path)}, platform="linux")
    words = (tmp_path / "words").read_text()
    assert "--unshare-pid" in words
    assert "--die-with-parent" not in words


def test_other_systems(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """macOS has a built-in sandbox; Windows has none."""
    monkeypatch.setattr(sandboxes, "_SEATBELT", str(tmp_path / "sandbox-exec"))
    assert "is missing" in sandbox_unavailable({}, platform="darwin")
    (tmp_path / "sandbox-exec").write_text("")
    assert "" == sandbox_unavailable({}, platform="darwin")
    assert "there is none for win32" == sandbox_unavailable({}, platform="win32")


def test_the_sandbox_settings() -> None:
    """The sandbox is mandatory, cannot be disabled by the agent, and approves no command."""
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
def test_a_session_with_sandbox_settings(
    why: str, guarded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On supported machines a session gets the sandbox settings beside its others."""
    monkeypatch.setattr(sandboxes, "sandbox_unavailable", lambda _env: why)
    agent = ClaudeAgent(path=tell_all(tmp_path))
    assert agent.capabilities.sandbox
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
    with suppress(GuardNotLive):  # the fake program runs no hook
        cuggino.run(agent.spawn(options))
    argv = recorded_call(tmp_path)["argv"]
    settings = json.loads(argv[argv.index("--settings") + 1])
    assert "x" == settings["model"]
    assert (None if why else sandbox_settings(sandbox)) == settings.get("sandbox")


def test_the_sandbox_within_a_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not mount its own /proc, which a view started by root does not permit."""
    monkeypatch.setattr(sandboxes, "sandbox_unavailable", lambda _env: "")
    options = SpawnOptions(prompt="Go.", cwd=tmp_path, sandbox=Sandbox())
    view = role_view("implementing", project=tmp_path)
    for given, is_weaker in ((options, False), (replace(options, view=view), True)):
        block = cast("dict[str, object]", sandboxes.with_sandbox(given, {}).settings["sandbox"])
        assert is_weaker == ("enableWeakerNestedSandbox" in block)


def test_git_excludes(tmp_path: Path) -> None:
    """Device files of the sandbox are ignored in addition to the user's own excludes file."""
    home = tmp_path / "home"
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".config" / "git" / "ignore").write_text("*.swp")
    project = tmp_path / "project"
    (project / ".vscode").mkdir(parents=True)
    (project / ".cuggino").mkdir()
    denied = [project / name for name in (".cuggino", ".autonoe", "docs/specs")]
    sandbox = Sandbox(deny_write=tuple(str(path) for path in denied))
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
    first, *names = git_ignores(sandbox, project, env).splitlines()
    assert "*.swp" == first
    assert {"/.bashrc", "/.autonoe"} <= set(names)
    assert not {"/.vscode", "/.cuggino", "/specs"} & set(names)
    own = tmp_path / "own"
    own.write_text("*.own\n\n")
    config = ["git", "config", "--file", str(home / ".gitconfig"), "core.excludesFile", str(own)]
    subprocess.run(config, check=True)
    assert "*.own" == git_ignores(sandbox, project, env).splitlines()[0]


def test_git_settings_in_the_environment(tmp_path: Path) -> None:
    """The git setting is appended to those already in the environment."""
    before = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}
    env = with_git_ignores({**before, "PATH": os.environ["PATH"]}, tmp_path / "ignore")
    said = subprocess.check_output(["git", "config", "--get", "core.excludesFile"], env=env)
    assert str(tmp_path / "ignore") == said.decode().strip()
    assert ("2", "c") == (env["GIT_CONFIG_COUNT"], env["GIT_CONFIG_VALUE_0"])
    assert "1" == with_git_ignores({}, tmp_path)["GIT_CONFIG_COUNT"]
