"""The real Gemini CLI: conformance, and its own features."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import MappingProxyType

import pytest

from cuggino import events as ev
from cuggino.agents.gemini.tools import MARK
from cuggino.errors import GuardNotLive
from cuggino.testing import AgentConformance, FailureConformance, GuardConformance
from tests.agents.arenas import RealSuite
from tests.file_server import MCP_SERVER
from tests.model_script import Block, Text, Tool
from tests.real_gemini import Gemini, bash, create
from tests.real_program import SPEC, write_file

SESSION = "0199aaaa-0000-4000-8000-000000000001"


class TestAgent(RealSuite, AgentConformance):
    kind = Gemini


class TestFailures(RealSuite, FailureConformance):
    kind = Gemini
    exempt = MappingProxyType({"test_transient_cut": "it does not retry a broken answer"})


class TestGuard(RealSuite, GuardConformance):
    kind = Gemini


def test_requests(gemini: Gemini) -> None:
    """File references are not expanded, and no tool waits for user input."""
    prompt = '/Do it, with @app.py and $HOME,\n  {{args}} "ü" \\n — \U0001f600.'
    system = "You are the one, @app.py.\n```sh\n@./x\n```\n{{args}}.\n"
    done = gemini.run(prompt=prompt, system_prompt=system, session_id=SESSION)
    assert done.error is None
    request = done.requests[0]
    assert prompt in request.messages_text
    assert "old = 1" not in request.messages_text
    assert system.strip() in request.system_text
    assert "Gemini CLI" in request.system_text
    assert SESSION == done.ended.session_id
    assert "dummy-not-a-key" == request.headers["x-goog-api-key"]
    assert not {"ask_user", "enter_plan_mode", "exit_plan_mode"} & set(request.tool_names)


def test_settings_of_the_user(gemini: Gemini) -> None:
    """The user's settings and instructions stay in force with a system prompt."""
    write_file(gemini.home / ".gemini" / "GEMINI.md", "The user likes plums.")
    write_file(
        gemini.home / ".gemini" / "settings.json",
        '{"context": {"fileName": ["GEMINI.md"]}, // mine\n "ui": {"hideTips": true}}',
    )
    done = gemini.run(system_prompt="You are the one.")
    assert done.error is None
    assert "You are the one." in done.requests[0].system_text
    assert "The user likes plums." in done.requests[0].system_text


def test_folder_of_the_session(
    gemini: Gemini, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session's folder is removed, the user's settings stay, the program's log is kept."""
    temp = tmp_path / "temp"
    temp.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temp))
    settings = gemini.home / ".gemini" / "settings.json"
    write_file(settings, "{}")
    done = gemini.run(bash("echo x > $TMPDIR/left.txt; cp $TMPDIR/left.txt ."))
    assert done.error is None
    assert ("x\n", [], "{}") == (
        gemini.read("left.txt"),
        list(temp.iterdir()),
        settings.read_text(),
    )
    assert [] != list((gemini.home / ".gemini" / "tmp").glob("*/chats/*"))
    assert [] == [m.text for m in done.of(ev.SystemMessage) if m.text != "Session initialized"]


def test_guarded_working_directories(gemini: Gemini, tmp_path: Path) -> None:
    """A here-document in another folder runs unchanged, and the guard's marks are hidden."""
    (gemini.project / "sub").mkdir()
    command = "cat <<'X' > in.txt\nit's $HOME\nX\necho $(basename $PWD)"
    done = gemini.run(
        Tool("run_shell_command", {"command": command, "dir_path": "sub"}),
        create(gemini.path(".gemini/x"), "more"),
        [Tool("write_todos", {"todos": []}), Tool("glob", {"pattern": "*.py"})],
        guard=gemini.policy(),
    )
    assert done.error is None
    assert ("it's $HOME\n", None) == (gemini.read("sub/in.txt"), gemini.read(".gemini/x"))
    assert "sub" == done.of(ev.ToolResult)[0].output
    (denied,) = done.of(ev.GuardDenied)
    assert f"Tool execution blocked: {denied.reason}" in done.conversation
    assert "cuggino_verdict" not in done.conversation


def test_guarded_mcp_input(gemini: Gemini, tmp_path: Path) -> None:
    """A server's tool gets its input without the guard's mark."""
    program = tmp_path / "server.py"
    program.write_text(MCP_SERVER.replace('"put")', 'str(asked["params"]["arguments"]))'))
    done = gemini.run(
        Tool("mcp_files_put", {"path": gemini.path("put.txt")}),
        mcp_servers={"files": {"command": sys.executable, "args": [str(program)]}},
        guard=gemini.policy(),
    )
    assert done.error is None
    assert "cuggino" not in (gemini.read("put.txt") or "cuggino")


def test_guarded_reading(gemini: Gemini, tmp_path: Path) -> None:
    """A verifying session cannot read folders added by the user's settings."""
    outside = tmp_path / "outside.txt"
    outside.write_text("not yours\n")
    settings = {"context": {"includeDirectories": [str(tmp_path)]}}
    write_file(gemini.home / ".gemini" / "settings.json", json.dumps(settings))
    done = gemini.run(
        Tool("read_file", {"file_path": str(outside)}), guard=gemini.policy("verify", "full")
    )
    assert done.error is None
    assert "not yours" not in done.conversation
    assert ["Read"] == [event.tool for event in done.of(ev.GuardDenied)]


def test_guard_and_forged_marks(gemini: Gemini) -> None:
    """A resumed session stays guarded even if the model copies earlier marks."""
    gemini.run(bash("echo 1 > one.txt"), session_id=SESSION, prompt="/begin")
    marked = {"command": "eval -- 'echo 2 > two.txt'", MARK: "an-old-one"}
    turns = [bash("echo no > .specs/task.md"), Tool("run_shell_command", marked)]
    done = gemini.run(
        *(Text(""), Text(""), turns), resume_session_id=SESSION, guard=gemini.policy()
    )
    assert done.error is None
    assert "/begin" in done.conversation
    assert ("1\n", "2\n", SPEC) == tuple(
        gemini.read(name) for name in ("one.txt", "two.txt", ".specs/task.md")
    )
    assert ["> .specs/task.md"] == [event.part for event in done.of(ev.GuardDenied)]
    assert {"command": "echo 2 > two.txt"} == done.of(ev.ToolCall)[1].input


def test_mcp_call_without_a_verdict(gemini: Gemini, tmp_path: Path) -> None:
    """A server's tool used without a verdict ends the session."""
    program = tmp_path / "server.py"
    program.write_text(MCP_SERVER)
    with gemini.break_guard("later", "killed") as break_now:

        def killed() -> Block:
            break_now()
            return Tool("mcp_files_put", {"path": gemini.path("put.txt")})

        done = gemini.run(
            killed,
            bash("echo more > more.txt"),
            mcp_servers={"files": {"command": sys.executable, "args": [str(program)]}},
            guard=gemini.policy(),
        )
    assert isinstance(done.error, GuardNotLive)
    assert "mcp__files__put was used without its verdict" in done.error.message
    assert (None, "failed") == (gemini.read("more.txt"), done.ended.outcome)
