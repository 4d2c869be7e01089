"""`ClaudeAgent`: its program, the program's invocation, private files and sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

import cuggino
from cuggino.agents import InteractiveOptions, SpawnOptions, make_agent
from cuggino.agents.claude import ClaudeAgent, sandbox as claude_sandbox, sandbox as sandboxes
from cuggino.agents.claude.sandbox import (
    git_ignores,
    sandbox_settings,
    sandbox_unavailable,
    with_git_ignores,
)
from cuggino.errors import GuardNotLive
from cuggino.events import AgentMessage, SessionEnded
from cuggino.guard.policy import Policy
from cuggino.guard.sandbox import Sandbox
from cuggino.sandbox import role_view
from tests.agents.claude.fake_claude import fake_claude, recorded_call, tell_all
from tests.limits import LIMIT
from tests.sandbox.arena import needs_bubblewrap

pytestmark = pytest.mark.usefixtures("nothing_is_left")

FLAGS = ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]
FORBIDDEN = "--disallowedTools=AskUserQuestion,ScheduleWakeup,Monitor"


def options(cwd: Path, **changes: Any) -> SpawnOptions:
    return SpawnOptions(**{"prompt": "Go.", "cwd": cwd, **changes})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"session_id": "new"}, ["--session-id", "new"]),
        ({"resume_session_id": "old"}, ["--resume", "old"]),
        ({"session_id": "new", "resume_session_id": "old"}, ["--resume", "old"]),
        ({"model": "opus"}, ["--model", "opus"]),
        ({"max_budget_usd": 2.5}, ["--max-budget-usd", "2.5"]),
        ({"max_budget_usd": 10.0}, ["--max-budget-usd", "10"]),
        ({"max_budget_usd": 1 / 3}, ["--max-budget-usd", "0.3333"]),
        ({"max_budget_usd": 1e-7}, ["--max-budget-usd", "0.01"]),
        ({"max_budget_usd": -1.0}, ["--max-budget-usd", "0.01"]),
        ({"max_budget_usd": 1e20}, ["--max-budget-usd", "100000000000000000000"]),
        ({"dangerously_skip_permissions": True}, ["--dangerously-skip-permissions"]),
        (
            {"dangerously_skip_permissions": True, "model": "opus", "session_id": "new"},
            ["--dangerously-skip-permissions", "--model", "opus", "--session-id", "new"],
        ),
    ],
)
def test_the_command_line(tmp_path: Path, changes: dict[str, Any], expected: list[str]) -> None:
    """Each option has its flag; the prompt is not an argument, and resuming beats a new session."""
    agent = ClaudeAgent(path="/opt/claude")
    argv = agent.arguments(options(tmp_path, **changes), None)
    assert ["/opt/claude", *FLAGS, FORBIDDEN, *expected] == argv


def test_the_system_prompt_is_a_private_file(tmp_path: Path) -> None:
    """The program reads the system prompt from a file that only the user can read."""
    system = "You are è, 漢 and \U0001f600.\n" * 20_000
    agent = ClaudeAgent(path=tell_all(tmp_path))
    last = cuggino.run(agent.spawn(options(tmp_path, system_prompt=system)))
    assert isinstance(last, SessionEnded)
    seen = recorded_call(tmp_path)
    assert system == seen["system"]
    assert 0o600 == seen["mode"]
    file = Path(seen["argv"][seen["argv"].index("--append-system-prompt-file") + 1])
    assert not file.exists()


def test_the_servers_are_a_private_file(tmp_path: Path) -> None:
    """The program reads its MCP servers and their keys from a file that only the user can read."""
    servers = {"s": {"command": "x", "env": {"KEY": "a-secret"}}}
    agent = ClaudeAgent(path=tell_all(tmp_path))
    cuggino.run(agent.spawn(options(tmp_path, mcp_servers=servers)))
    seen = recorded_call(tmp_path)
    assert (servers, 0o600) == (seen["servers"], seen["servers_mode"])
    assert "a-secret" not in " ".join(seen["argv"])
    (config,) = [word for word in seen["argv"] if word.startswith("--mcp-config=")]
    assert not Path(config.partition("=")[2]).exists()


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("/compact the plan", b" /compact the plan"),
        ("Look at /etc/hosts", b"Look at /etc/hosts"),
        ("--help", b"--help"),
        ("è 漢 \U0001f600\r\n", "è 漢 \U0001f600\r\n".encode()),
        ("half \ud83d of a pair", b"half ? of a pair"),
        ("", b""),
    ],
)
def test_the_prompt_goes_to_standard_input(tmp_path: Path, prompt: str, expected: bytes) -> None:
    """A prompt is passed unchanged, except that a leading slash is escaped."""
    events: list[Any] = []
    agent = ClaudeAgent(path=tell_all(tmp_path))
    cuggino.run(agent.spawn(options(tmp_path, prompt=prompt)), events.append)
    seen = recorded_call(tmp_path)
    assert expected == seen["stdin"].encode("latin-1")
    assert [*FLAGS, FORBIDDEN] == seen["argv"]
    assert ["AgentMessage", "SessionEnded"] == [event.tag for event in events]


def test_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program gets this process's environment, the agent's variables and the session's."""
    monkeypatch.setenv("FROM_OUTSIDE", "1")
    agent = ClaudeAgent(path=tell_all(tmp_path))
    cuggino.run(agent.spawn(options(tmp_path, env={"CUGGINO_ROLE": "planning"})))
    env = recorded_call(tmp_path)["env"]
    assert ("1", "planning") == (env["FROM_OUTSIDE"], env["CUGGINO_ROLE"])
    assert "1" == env["CLAUDE_CODE_DISABLE_FILE_MENTIONS"]
    assert "1" == env["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"]


def test_an_explicit_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent with `env` passes only that, and nothing of this process."""
    monkeypatch.setenv("FROM_OUTSIDE", "1")
    agent = ClaudeAgent(path=tell_all(tmp_path), env={"PATH": os.defpath, "MINE": "2"})
    cuggino.run(agent.spawn(options(tmp_path)))
    env = recorded_call(tmp_path)["env"]
    assert "2" == env["MINE"]
    assert "FROM_OUTSIDE" not in env


def test_a_spawn_is_cold(tmp_path: Path) -> None:
    """Nothing starts before the subscription; each subscription is a session."""
    seen: list[Any] = []
    agent = ClaudeAgent(path=tell_all(tmp_path))
    stream = agent.spawn(options(tmp_path, system_prompt="x"))
    assert [] == [path.name for path in tmp_path.iterdir() if path.name != "claude"]
    for _ in range(2):
        ended = threading.Event()
        stream.subscribe(seen.append, on_completed=ended.set)
        assert ended.wait(LIMIT)
    assert ["told", "told"] == [event.text for event in seen if isinstance(event, AgentMessage)]


def test_a_relative_path_is_resolved_in_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`agentPath` with a slash is resolved in the project, not in the working directory."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    (project / "bin").mkdir(parents=True)
    elsewhere.mkdir()
    tell_all(project / "bin")
    monkeypatch.chdir(elsewhere)
    agent = make_agent("claude", cwd=project, path="bin/claude")
    cuggino.run(agent.spawn(options(elsewhere)))
    assert "" != recorded_call(elsewhere)["stdin"]
    monkeypatch.chdir(project)
    cuggino.run(ClaudeAgent(path="bin/claude").spawn(options(tmp_path)))
    assert "Go." == recorded_call(tmp_path)["stdin"]


def test_the_terminal_belongs_to_the_program(tmp_path: Path) -> None:
    """Ctrl-C in an interactive session goes to the program, which determines the exit code."""
    body = """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert (sys.argv[1:], os.environ["CUGGINO_ROLE"]) == ([], "pm")
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(0.5)  # so that the signal comes while it still runs
    sys.exit(7)
    """
    agent = ClaudeAgent(path=fake_claude(tmp_path, body))
    assert 7 == agent.interactive(InteractiveOptions(cwd=tmp_path))


def test_an_interactive_session_has_a_view(tmp_path: Path) -> None:
    """The project manager's program writes specifications, and nothing else of the project."""
    needs_bubblewrap(tmp_path)
    project = tmp_path / "project"
    (project / ".specs").mkdir(parents=True)
    (project / "app.py").write_text("code")
    body = """
    open(".specs/a.md", "w").write("spec")
    try:
        open("app.py", "w").write("changed")
    except OSError:
        sys.exit(7)
    """
    agent = ClaudeAgent(path=fake_claude(tmp_path, body))
    view = role_view("pm", project=project)
    assert 7 == agent.interactive(InteractiveOptions(cwd=project, view=view))
    assert "spec" == (project / ".specs" / "a.md").read_text()
    assert "code" == (project / "app.py").read_text()


@pytest.mark.parametrize("ending", ["sys.exit(0)", "os.kill(os.getpid(), 9)"])
def test_the_system_prompt_of_an_interactive_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """The system prompt is passed in a private file, which is removed afterwards."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    body = f"""
    [flag, name] = sys.argv[1:]
    told = [flag, open(name, encoding="utf-8").read(), os.stat(name).st_mode & 0o777]
    json.dump([os.path.dirname(name), *told], open("told.json", "w"))
    {ending}
    """
    system = "You are è, 漢 and \U0001f600.\n" * 20_000
    agent = ClaudeAgent(path=fake_claude(tmp_path, body))
    agent.interactive(InteractiveOptions(cwd=tmp_path, system_prompt=system))
    expected = [str(temporary), "--append-system-prompt-file", system, 0o600]
    assert expected == json.loads((tmp_path / "told.json").read_text())
    assert [] == list(temporary.iterdir())


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder for temporary files on a machine with sandbox support."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(claude_sandbox, "sandbox_unavailable", lambda _env: "")
    return folder


def sandboxed(folder: Path) -> SpawnOptions:
    sandbox = Sandbox(deny_write=(), allow_write=(), domains=())
    return SpawnOptions(prompt="Go.", cwd=folder, system_prompt="Be brief.", sandbox=sandbox)


@pytest.mark.skipif(sys.platform != "linux", reason="git needs no ignore file elsewhere")
def test_git_ignores(tmp_path: Path, temp: Path) -> None:
    """Git ignores the device files that mask denied paths in the sandbox."""
    with ExitStack() as stack:
        env = ClaudeAgent(env={})._session_env(sandboxed(tmp_path), stack)
        count = int(env["GIT_CONFIG_COUNT"])
        given = {env[f"GIT_CONFIG_KEY_{n}"]: env[f"GIT_CONFIG_VALUE_{n}"] for n in range(count)}
        assert "/.bashrc\n" in Path(given["core.excludesFile"]).read_text()
    assert [] == list(temp.iterdir())


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
