"""The real Gemini CLI against a scripted model: what it does is what is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cuggino.errors import AgentFailed
from cuggino.events import (
    AgentMessage,
    MessageDelta,
    SystemMessage,
    ToolCall,
    ToolResult,
    Usage,
    UsageUpdate,
)
from tests.agents.copilot.test_real import MCP_SERVER
from tests.model_script import HELPER, Text, Thought, Tool
from tests.real_gemini import VERSION, Gemini, bash, create, gemini, gemini_cli

__all__ = ["gemini", "gemini_cli"]

pytestmark = pytest.mark.real_agent

SESSION = "0199aaaa-0000-4000-8000-000000000001"


def test_a_session(gemini: Gemini) -> None:
    """Text, calls and results come in order, files are really written, tokens add up."""
    done = gemini.run(
        [Thought("Hm."), Text("Now <NOTE>I begin</NOTE>, in more than one delta."), bash("echo 1")],
        [create(gemini.path("new.txt"), "new\n"), Tool("read_file", {"file_path": "none.txt"})],
        bash("echo two; exit 3"),
    )
    assert done.error is None
    assert "new\n" == gemini.read("new.txt")
    assert [
        *("AgentMessage", "ToolCall", "ToolResult"),
        *("ToolCall", "ToolCall", "ToolResult", "ToolResult", "ToolCall", "ToolResult"),
        *("AgentMessage", "SessionEnded"),
    ] == done.tags
    first, last = done.of(AgentMessage)
    assert "Now <NOTE>I begin</NOTE>, in more than one delta." == first.text
    assert "<DONE>done</DONE>" == last.text
    for message in (first, last):
        mine = [d.text for d in done.of(MessageDelta) if d.message_id == message.message_id]
        assert message.text == "".join(mine)
    calls = done.of(ToolCall)
    assert ["Bash", "Write", "Read", "Bash"] == [call.name for call in calls]
    assert {"file_path": gemini.path("new.txt"), "content": "new\n"} == calls[1].input
    assert {"file_path": gemini.path("none.txt")} == calls[2].input
    results = {result.name: result for result in done.of(ToolResult)}
    assert [False, False, True, True] == [results[call.id].is_error for call in calls]
    assert ("1", "two") == (results[calls[0].id].output, results[calls[3].id].output)
    assert Usage(input_tokens=4000, output_tokens=400) == done.ended.usage
    assert done.ended.usage == done.of(UsageUpdate)[-1].usage
    assert ("completed", None, 4) == (
        done.ended.outcome,
        done.ended.cost_usd,
        done.ended.num_turns,
    )


def test_what_is_asked_for(gemini: Gemini) -> None:
    """Prompt, system prompt, model, session id and environment reach the session as they are."""
    prompt = '/Do it, with @app.py and $HOME,\n  {{args}} "ü" \\n — \U0001f600.'
    system = (
        "You are the one, @app.py.\n```sh\n@./x\n```\n" + 'é"\\\U0001f600 $HOME {{args}}.\n' * 9000
    )
    done = gemini.run(
        bash("echo $MINE > mine.txt; pwd >> mine.txt"),
        prompt=prompt,
        system_prompt=system,
        model="gemini-2.5-pro",
        session_id=SESSION,
        env={"MINE": "theirs"},
    )
    assert done.error is None
    request = done.requests[0]
    assert prompt in request.messages_text
    assert "old = 1" not in request.messages_text
    assert system.strip() in request.system_text
    assert "Gemini CLI" in request.system_text
    assert "gemini-2.5-pro" == request.model
    assert SESSION == done.ended.session_id
    assert "dummy-not-a-key" == request.headers["x-goog-api-key"]
    assert not {"ask_user", "enter_plan_mode", "exit_plan_mode"} & set(request.tool_names)
    assert f"theirs\n{gemini.project}\n" == gemini.read("mine.txt")


def test_a_long_prompt(gemini: Gemini) -> None:
    """A prompt longer than an argument may be reaches the model, and so do the user's own words."""
    (gemini.home / ".gemini").mkdir(parents=True)
    (gemini.home / ".gemini" / "GEMINI.md").write_text("The user likes plums.")
    (gemini.home / ".gemini" / "settings.json").write_text(
        '{"context": {"fileName": ["GEMINI.md"]}, // mine\n "ui": {"hideTips": true}}'
    )
    prompt = "--help " + "word @nobody ü\n" * 20_000
    done = gemini.run(prompt=prompt, system_prompt="You are the one.")
    assert done.error is None
    assert prompt.strip() in done.requests[0].messages_text
    assert "You are the one." in done.requests[0].system_text
    assert "The user likes plums." in done.requests[0].system_text


def test_a_session_is_resumed(gemini: Gemini) -> None:
    """A resumed session knows what was said, and has the system prompt that is given now."""
    first = gemini.run(
        Text("The word is plum."),
        prompt="Read @app.py first.",
        session_id=SESSION,
        system_prompt="One is here.",
    )
    assert (None, SESSION) == (first.error, first.ended.session_id)
    again = gemini.run(
        *(Text(""), Text("Yes.")),
        prompt="Which?",
        resume_session_id=SESSION,
        system_prompt="Two is here.",
    )
    assert (None, SESSION) == (again.error, again.ended.session_id)
    assert "The word is plum." in again.requests[0].messages_text
    assert "Read @app.py first." in again.requests[0].messages_text
    said = again.requests[0].system_text
    assert (False, True) == ("One is here." in said, "Two is here." in said)
    assert Usage(input_tokens=1000, output_tokens=100) == again.ended.usage


def test_an_unknown_session(gemini: Gemini) -> None:
    """A session that is not there cannot be resumed, and it says so."""
    done = gemini.run(resume_session_id="0199aaaa-0000-4000-8000-00000000ffff")
    assert isinstance(done.error, AgentFailed)
    assert "bad_request" == done.error.reason
    assert "start a new one" in (done.error.hint or "")
    assert ([], ["SessionEnded"]) == (done.requests, done.tags)


def test_a_sub_agent(gemini: Gemini) -> None:
    """What a sub-agent does is done; the program tells its call and its answer alone."""
    order = {"agent_name": "generalist", "prompt": HELPER}
    done = gemini.run(Tool("invoke_agent", order), helper=[bash("echo sub > sub.txt")])
    assert done.error is None
    assert "sub\n" == gemini.read("sub.txt")
    (task,) = done.of(ToolCall)
    assert ("Task", {"subagent_type": "generalist", "prompt": HELPER}) == (task.name, task.input)
    assert ["<DONE>done</DONE>"] == [message.text for message in done.of(AgentMessage)]
    assert Usage(input_tokens=4000, output_tokens=400) == done.ended.usage


def test_mcp_servers(gemini: Gemini, tmp_path: Path) -> None:
    """A server's tools can be called."""
    program = tmp_path / "server.py"
    program.write_text(MCP_SERVER)
    servers = {"my_files": {"command": sys.executable, "args": [str(program)]}}
    put = Tool("mcp_my_files_put", {"path": gemini.path("put.txt")})
    done = gemini.run(put, mcp_servers=servers)
    assert done.error is None
    assert "put" == gemini.read("put.txt")
    assert ["mcp__my_files__put"] == [call.name for call in done.of(ToolCall)]


def test_reading_only(gemini: Gemini) -> None:
    """Without leave to skip permissions the agent reads, uses what is allowed, and no more."""
    gemini.write(".gemini/settings.json", '{"tools": {"allowed": ["run_shell_command"]}}')
    done = gemini.run(
        [Tool("read_file", {"file_path": "app.py"}), bash("echo no > no.txt")],
        [create(gemini.path("yes.txt"), "yes"), Tool("replace", {**EDIT, "file_path": "app.py"})],
        dangerously_skip_permissions=False,
        allowed_tools=("Write",),
    )
    assert done.error is None
    assert ("yes", None, "old = 1\n") == tuple(
        gemini.read(name) for name in ("yes.txt", "no.txt", "app.py")
    )
    results = {result.name: result.is_error for result in done.of(ToolResult)}
    assert [False, True, False, True] == [results[call.id] for call in done.of(ToolCall)]
    assert not {"run_shell_command", "replace"} & set(done.requests[0].tool_names)


EDIT = {"instruction": "i", "old_string": "old", "new_string": "new"}


def test_the_version(gemini: Gemini) -> None:
    """The program's version is what was installed."""
    assert VERSION == gemini.agent("http://127.0.0.1:9").check()


def test_nothing_is_left(gemini: Gemini, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session's folder is removed, the user's settings are as they were, the log is kept."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    settings = gemini.home / ".gemini" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text("{}")
    done = gemini.run(bash("echo x > $TMPDIR/left.txt; cp $TMPDIR/left.txt ."))
    assert done.error is None
    assert ("x\n", [], "{}") == (
        gemini.read("left.txt"),
        list((tmp_path / "temp").iterdir()),
        settings.read_text(),
    )
    assert [] != list((gemini.home / ".gemini" / "tmp").glob("*/chats/*"))
    assert [] == [m.text for m in done.of(SystemMessage) if m.text != "Session initialized"]
