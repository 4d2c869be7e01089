"""`ClaudeAgent`: locating and invoking its program."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

import cuggino
from cuggino.agents import InteractiveOptions, SpawnOptions, make_agent
from cuggino.agents.claude import ClaudeAgent
from cuggino.errors import AgentNotFound
from cuggino.events import AgentMessage, SessionEnded
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


def test_a_prompt_of_five_megabytes_arrives_whole(tmp_path: Path) -> None:
    """A prompt may be larger than an argument or a pipe buffer."""
    prompt = "0123456789abcde\n" * (5 * 1024 * 1024 // 16)
    agent = ClaudeAgent(path=tell_all(tmp_path))
    cuggino.run(agent.spawn(options(tmp_path, prompt=prompt)))
    assert prompt == recorded_call(tmp_path)["stdin"]


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


def test_a_missing_program(tmp_path: Path) -> None:
    """Without the program the stream fails immediately with installation advice."""
    events: list[Any] = []
    agent = ClaudeAgent(path="claude", env={"PATH": str(tmp_path)})
    with pytest.raises(AgentNotFound, match="the agent program claude was not found") as caught:
        cuggino.run(agent.spawn(options(tmp_path, system_prompt="x")), events.append)
    assert [] == events
    assert 2 == caught.value.code
    assert "npm install -g @anthropic-ai/claude-code" in (caught.value.hint or "")
    assert "agentPath" in (caught.value.hint or "")


def test_a_program_that_is_too_old(tmp_path: Path) -> None:
    """An unsupported old version is refused, and the error names both versions."""
    program = fake_claude(tmp_path, "", version="2.0.1 (Claude Code)")
    agent = ClaudeAgent(path=program)
    with pytest.raises(AgentNotFound) as caught:
        cuggino.run(agent.spawn(options(tmp_path)))
    assert "claude 2.0.1 is too old, at least 2.1.197 is needed" == caught.value.message
    assert "claude update" in (caught.value.hint or "")
    assert 2 == caught.value.code


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("2.1.197 (Claude Code)", "2.1.197"),
        ("2.2.0", "2.2.0"),
        ("10.0.0-beta.1 (Claude Code)", "10.0.0"),
    ],
)
def test_supported_versions(tmp_path: Path, said: str, version: str) -> None:
    """The minimum version and newer ones are accepted."""
    assert version == ClaudeAgent(path=fake_claude(tmp_path, "", version=said)).check()


@pytest.mark.parametrize("said", ["Claude Code", ""])
def test_a_program_without_a_version(tmp_path: Path, said: str) -> None:
    """A program that prints no version is refused."""
    with pytest.raises(AgentNotFound, match="names no version"):
        ClaudeAgent(path=fake_claude(tmp_path, "", version=said)).check()


def test_a_program_that_does_not_start(tmp_path: Path) -> None:
    """A program that fails at `--version` is treated as missing."""
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(AgentNotFound, match="--version failed"):
        ClaudeAgent(path=program).check()


def test_a_program_that_cannot_be_executed(tmp_path: Path) -> None:
    """A file without the executable permission is not found."""
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\n")
    with pytest.raises(AgentNotFound, match="was not found"):
        ClaudeAgent(path=program).check()


def test_the_version_is_asked_once(tmp_path: Path) -> None:
    """The version is queried once for any number of sessions."""
    agent = ClaudeAgent(path=tell_all(tmp_path))
    for _ in range(3):
        cuggino.run(agent.spawn(options(tmp_path)))
    assert "2.1.329" == agent.check()
    assert "asked\n" == (tmp_path / "version_calls").read_text()


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


def test_a_program_that_vanishes_leaves_no_system_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The private file is removed if the program disappears after the version check."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    program = fake_claude(tmp_path, "")
    agent = ClaudeAgent(path=program)
    agent.check()
    program.unlink()
    with pytest.raises(OSError):
        agent.interactive(InteractiveOptions(cwd=tmp_path, system_prompt="You are."))
    assert [] == list(temporary.iterdir())
