"""The real Codex CLI against a scripted model: what it does is what is told."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from cuggino.errors import AgentFailed
from cuggino.events import (
    AgentMessage,
    PingEvent,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from tests.agents.copilot.test_real import MCP_SERVER
from tests.model_script import Text, Thought, Tool
from tests.real_codex import (
    CODE_MODEL,
    VERSION,
    Codex,
    bash,
    codex,
    codex_cli,
    create,
    patch,
)

__all__ = ["codex", "codex_cli"]

pytestmark = pytest.mark.real_agent


def test_a_session(codex: Codex) -> None:
    """Text, thoughts, calls and results come in order, files are really written, tokens add up."""
    done = codex.run(
        [Thought("Hm."), Text("Now <NOTE>I begin</NOTE>."), bash("echo 1")],
        create("new.txt", "new"),
        patch("*** Update File: app.py", "@@", "-old = 1", "+new = 2", "*** Delete File: new.txt"),
        bash("echo 2 >&2; exit 3"),
    )
    assert done.error is None
    assert ("new = 2\n", None) == (codex.read("app.py"), codex.read("new.txt"))
    assert ["Hm."] == [thought.text for thought in done.of(Thinking)]
    said = done.of(AgentMessage)
    assert ["Now <NOTE>I begin</NOTE>.", "<DONE>done</DONE>"] == [message.text for message in said]
    assert 2 == len({message.message_id for message in said} - {None})
    calls = done.of(ToolCall)
    assert ["Bash", "Write", "Edit", "Edit", "Bash"] == [call.name for call in calls]
    assert {"command": "echo 1"} == calls[0].input
    assert {"file_path": codex.path("new.txt"), "kind": "add"} == calls[1].input
    results = {result.name: result for result in done.of(ToolResult)}
    assert [call.id for call in calls] == list(results)
    assert [False] * 4 + [True] == [results[call.id].is_error for call in calls]
    assert "2\n" == results[calls[-1].id].output
    assert Usage(input_tokens=5000, output_tokens=500) == done.ended.usage
    assert ("completed", None) == (done.ended.outcome, done.ended.cost_usd)
    assert done.of(PingEvent)


def test_what_is_asked_for(codex: Codex) -> None:
    """Long prompts of any content reach the model as they are, as do model and environment."""
    text = 'Ünï "q" \\ \'s 😀 \x7f \t/x\n' * 15_000  # 330 kB
    done = codex.run(
        bash('echo "$MINE $CUGGINO_X $SECRET_KEY" > mine.txt; pwd >> mine.txt'),
        prompt=f"/-{text}",
        system_prompt=f"-{text}",
        model="gpt-5.5",
        env={"MINE": "1", "CUGGINO_X": "2", "SECRET_KEY": "3"},
    )
    assert done.error is None
    request = done.requests[0]
    assert f"-{text}" in request.system_text
    assert f"/-{text}" in request.messages_text
    assert "gpt-5.5" == request.model
    assert "Bearer dummy-not-a-key" == request.headers["authorization"]
    assert f"1 2 3\n{codex.project}\n" == codex.read("mine.txt")
    assert ["config.toml"] == [file.name for file in (codex.home / ".codex").glob("*.toml")]


def test_a_session_is_resumed(codex: Codex, tmp_path: Path) -> None:
    """A resumed session knows what was said, keeps its system prompt, tells its own tokens; it
    works in the folder that is given now."""
    first = codex.run(Text("The word is plum."), system_prompt="One.")
    name = first.ended.session_id
    assert name is not None
    other = tmp_path / "other"
    other.mkdir()
    turns = (Text(""), bash("pwd > where.txt"))
    again = codex.run(
        *turns, prompt="Which?", resume_session_id=name, system_prompt="Two.", cwd=other
    )
    assert (None, name) == (again.error, again.ended.session_id)
    request = again.requests[0]
    assert "The word is plum." in request.messages_text
    assert ("One." in request.system_text, "Two." in request.system_text) == (True, False)
    assert Usage(input_tokens=2000, output_tokens=200) == again.ended.usage
    assert f"{other}\n" == (other / "where.txt").read_text()


@pytest.mark.parametrize("name", ["0199aaaa-0000-4000-8000-00000000ffff", "no-id", ""])
def test_an_unknown_session(codex: Codex, name: str) -> None:
    """A session that is not there cannot be resumed, and nothing is said or done instead."""
    done = codex.run(bash("touch no.txt"), resume_session_id=name)
    assert isinstance(done.error, AgentFailed)
    assert "bad_request" == done.error.reason
    assert "start a new one" in (done.error.hint or "")
    assert ["SessionEnded"] == done.tags
    assert codex.read("no.txt") is None


def test_code_mode(codex: Codex) -> None:
    """A model that writes programs is understood as well: what these call is told."""
    text = "*** Begin Patch\\n*** Add File: made.txt\\n+made\\n*** End Patch\\n"
    program = (
        'const r = await tools.exec_command({cmd: "echo one"}); text(r.output);'
        f'await tools.apply_patch("{text}");'
    )
    done = codex.run(Tool("exec", {"input": program}), model=CODE_MODEL)
    assert done.error is None
    assert "made\n" == codex.read("made.txt")
    assert ["Bash", "Write"] == [call.name for call in done.of(ToolCall)]
    assert "one\n" in done.told


@pytest.mark.parametrize("unasked", [True, False])
def test_mcp_servers(codex: Codex, tmp_path: Path, unasked: bool) -> None:
    """A server is there from the first word on; without leave only what is allowed may be used."""
    program = tmp_path / "server.py"
    # With a variable, which may be a key, the server is described in a private file.
    env = {"MY_KEY": "hidden"} if unasked else {}
    program.write_text(f"import os\nassert os.environ.get('MY_KEY') == {env.get('MY_KEY')!r}\n")
    program.write_text(program.read_text() + MCP_SERVER)
    servers = {"my-files": {"command": sys.executable, "args": [str(program)], "env": env}}
    put = Tool("mcp__my_files__put", {"path": codex.path("put.txt")})
    first = codex.run(put, mcp_servers=servers, dangerously_skip_permissions=unasked)
    assert first.error is None
    assert ["mcp__my-files__put"] == [call.name for call in first.of(ToolCall)]
    assert [not unasked] == [result.is_error for result in first.of(ToolResult)]
    assert ("put" if unasked else None) == codex.read("put.txt")
    if not unasked:
        rules = ("mcp__my-files__put",)
        codex.run(put, mcp_servers=servers, dangerously_skip_permissions=False, allowed_tools=rules)
        assert "put" == codex.read("put.txt")


def test_a_server_that_does_not_start(codex: Codex, tmp_path: Path) -> None:
    """The session does not begin without it, and says which one it is."""
    servers = {"broken": {"command": str(tmp_path / "nothing"), "args": []}}
    done = codex.run(Text("hi"), mcp_servers=servers)
    assert isinstance(done.error, AgentFailed)
    assert "broken" in done.error.message
    assert [] == done.requests


def test_reading_only(codex: Codex) -> None:
    """Without leave to skip permissions the agent reads, and nothing is written."""
    done = codex.run(
        bash("cat app.py"),
        bash("echo no > no.txt"),
        create("no.txt", "no"),
        bash("cat .specs/task.md"),
        dangerously_skip_permissions=False,
    )
    assert done.error is None
    assert codex.read("no.txt") is None
    outputs = [result.output for result in done.of(ToolResult) if not result.is_error]
    assert ["old = 1\n", "There is a file.\n"] == outputs


def test_a_command_that_outlives_the_session(codex: Codex) -> None:
    """Its call gets a result, and nobody can type into it."""

    def typed(request: object) -> Tool:
        (number,) = re.findall(r"session ID (\d+)", str(getattr(request, "messages_text", "")))
        return Tool("write_stdin", {"session_id": int(number), "chars": "x\n"})

    done = codex.run(bash("sleep 60; cat > no.txt", yield_time_ms=300), typed)
    assert done.error is None
    assert "stdin is closed" in done.told
    (call,), (result,) = done.of(ToolCall), done.of(ToolResult)
    assert (call.id, True) == (result.name, result.is_error)


def test_the_words_of_the_program(codex: Codex) -> None:
    """What it says of itself is told, each once; it is no text of the model."""
    done = codex.run(model="a-model-of-nobody")
    told = [message.text for message in done.of(SystemMessage)]
    assert 1 == sum("Model metadata" in text for text in told)
    assert done.error is None


def test_the_version(codex: Codex) -> None:
    """The program's version is what was installed."""
    assert VERSION == codex.agent("http://127.0.0.1:9").check()
