"""`ClaudeSdkAgent` without a session: requirements, options and capabilities."""

from __future__ import annotations

import importlib.metadata
import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, just

import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.base.guard import make_guard
from cuggino.agents.base.stream import Program
from cuggino.agents.choosing.registry import make_agent
from cuggino.agents.claude_sdk.agent import ClaudeSdkAgent
from cuggino.errors import AgentNotFound, AgentTooOld, ConfigError, GuardNotLive
from cuggino.guard.roles import role_policy
from tests.agents.claude.fake_claude import fake_claude
from tests.real_claude import needs_sdk


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the package versions found, where that of the SDK can be changed."""
    found = {"claude-agent-sdk": "0.2.187"}
    version = importlib.metadata.version

    def told(name: str) -> str:
        if name == "claude-agent-sdk":
            if name not in found:
                raise importlib.metadata.PackageNotFoundError(name)
            return found[name]
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", told)
    return found


def agent(folder: Path, **options: Any) -> ClaudeSdkAgent:
    return ClaudeSdkAgent(path=fake_claude(folder, "", **options.pop("fake", {})), **options)


def test_protocols(tmp_path: Path) -> None:
    """It implements and reports the protocols of the other agents."""
    made = agent(tmp_path)
    assert ("claude-sdk", True) == (made.name, made.capabilities.resume)
    assert made.capabilities.guard != "none"
    assert made.capabilities.sandbox
    able = made.capabilities
    assert ("calls", "dollars") == (able.guard, able.cost)
    assert (able.mcp, able.resume, able.sandbox, able.interactive) == (True, True, True, True)
    assert "in this process" in able.note


@pytest.mark.usefixtures("installed")
def test_the_version(tmp_path: Path) -> None:
    """The version is the program's."""
    assert "2.1.329" == agent(tmp_path).check()


@pytest.mark.parametrize("version", [None, "0.2.186"], ids=["none", "old"])
def test_without_the_sdk(tmp_path: Path, installed: dict[str, str], version: str | None) -> None:
    """With a missing or outdated SDK nothing starts, and one sentence explains what to do."""
    del installed["claude-agent-sdk"]
    if version is not None:
        installed["claude-agent-sdk"] = version
    made = agent(tmp_path)
    for attempt in (
        made.check,
        lambda: made.check_guard(role_policy("implementing", project=tmp_path, level="roles")),
        lambda: cuggino.run(made.spawn(SpawnOptions(prompt="Go.", cwd=tmp_path))),
    ):
        with pytest.raises(AgentNotFound) as raised:
            attempt()
        assert "install it with `pip install 'cuggino[sdk]'`" == raised.value.hint
    assert not (tmp_path / "version_calls").exists()


@pytest.mark.usefixtures("installed")
def test_unusable_programs(tmp_path: Path) -> None:
    """A missing or outdated program is reported."""
    with pytest.raises(AgentNotFound, match="was not found"):
        ClaudeSdkAgent(path=tmp_path / "nothing").check()
    with pytest.raises(AgentTooOld, match=r"claude 2\.1\.328 is too old, at least 2\.1\.329"):
        agent(tmp_path, fake={"version": "2.1.328 (Claude Code)"}).check()


def test_which_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program on PATH is used, or else the one bundled with the SDK."""
    fake_claude(tmp_path, "")
    assert "claude" == ClaudeSdkAgent(env={"PATH": str(tmp_path)})._path
    sdk = tmp_path / "site" / "claude_agent_sdk"
    (sdk / "_bundled").mkdir(parents=True)
    (sdk / "__init__.py").touch()
    fake_claude(sdk / "_bundled", "")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, "claude_agent_sdk", raising=False)
    alone = ClaudeSdkAgent(env={"PATH": "/nonexistent"})
    assert str(sdk / "_bundled" / "claude") == alone._path
    (sdk / "_bundled" / "claude").unlink()
    assert "claude" == ClaudeSdkAgent(env={"PATH": "/nonexistent"})._path


@pytest.mark.usefixtures("installed")
def test_check_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of a working guard is silent; that of a broken one raises the reason."""
    policy = role_policy("implementing", project=tmp_path, level="roles")
    made = agent(tmp_path)
    made.check_guard(policy)
    monkeypatch.setattr("cuggino.guard.hook.answer", lambda *_given, **_named: {})
    with pytest.raises(GuardNotLive):
        made.check_guard(policy)


def test_arguments(tmp_path: Path) -> None:
    """The options match those of `ClaudeAgent`, but without a hook program."""
    policy = role_policy("implementing", project=tmp_path, level="roles")
    options = SpawnOptions(
        prompt="Go.", cwd=tmp_path, dangerously_skip_permissions=True, model="m", guard=policy
    )
    guard = make_guard(policy, {})
    argv = agent(tmp_path).arguments(options, None, guard)
    assert ["--input-format", "stream-json"] == argv[argv.index("--input-format") :][:2]
    assert ["--permission-mode", "default"] == argv[argv.index("--permission-mode") :][:2]
    assert {"--include-hook-events", "--include-partial-messages"} < set(argv)
    assert "--dangerously-skip-permissions" not in argv
    settings = json.loads(argv[argv.index("--settings") + 1])
    assert ({}, False) == (settings["hooks"], settings["disableAllHooks"])
    assert "--dangerously-skip-permissions" in agent(tmp_path).arguments(options, None)


@pytest.mark.usefixtures("installed")
def test_in_process_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program reads its servers from a private file, in-process ones by name only."""
    needs_sdk()
    from claude_agent_sdk import create_sdk_mcp_server, tool

    @tool("one", "One", {})
    async def one(_given: Any) -> dict[str, Any]:
        return {"content": []}

    files: list[Path] = []

    def session(program: Program, *_: Any, **_options: Any) -> Observable[Any]:
        assert "a-secret" not in " ".join(program.argv)
        (config,) = [word for word in program.argv if word.startswith("--mcp-config=")]
        files.append(Path(config.partition("=")[2]))
        assert 0o600 == stat.S_IMODE(files[0].stat().st_mode)
        return just(json.loads(files[0].read_text())["mcpServers"])

    monkeypatch.setattr("cuggino.agents.claude_sdk.agent.sdk_session", session)
    theirs = {"command": "x", "env": {"KEY": "a-secret"}}
    servers = {"mine": create_sdk_mcp_server("mine", tools=[one]), "theirs": theirs}
    options = SpawnOptions(prompt="Go.", cwd=tmp_path, mcp_servers=servers)
    found: Any = cuggino.run(agent(tmp_path, tools=[one]).spawn(options))
    assert {
        "mine": {"type": "sdk", "name": "mine"},
        "theirs": theirs,
        "tools": {"type": "sdk", "name": "tools", "alwaysLoad": True},
    } == found
    assert not files[0].exists()


@pytest.mark.usefixtures("installed")
def test_a_reserved_server_name(tmp_path: Path) -> None:
    """A server named like the agent's own tools is refused before anything starts."""
    options = SpawnOptions(prompt="Go.", cwd=tmp_path, mcp_servers={"tools": {"command": "x"}})
    with pytest.raises(ConfigError, match='cannot be named "tools"'):
        cuggino.run(agent(tmp_path, tools=[object()]).spawn(options))


def test_by_its_import_path(tmp_path: Path) -> None:
    """The agent can be selected by its import path, with a given program."""
    program = fake_claude(tmp_path, "")
    made = make_agent("cuggino.agents.claude_sdk:ClaudeSdkAgent", cwd=tmp_path, path=str(program))
    assert isinstance(made, ClaudeSdkAgent)


def test_nothing_is_imported_before_a_session() -> None:
    """The module and the agent work without importing `claude-agent-sdk`."""
    code = (
        "import sys; sys.modules['claude_agent_sdk'] = sys.modules['mcp'] = None\n"
        "from cuggino.agents.claude_sdk import ClaudeSdkAgent\n"
        "print(ClaudeSdkAgent(path='claude').capabilities.guard)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert b"calls\n" == said
