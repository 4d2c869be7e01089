"""The real Codex CLI: conformance, and its own features."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import MappingProxyType

import pytest

from cuggino.errors import AgentFailed, GuardNotLive
from cuggino.events import AgentMessage, GuardDenied, SystemMessage, ToolCall, ToolResult
from cuggino.testing import AgentConformance, FailureConformance, GuardConformance
from tests.agents.arenas import RealSuite
from tests.file_server import MCP_SERVER
from tests.model_script import Drop, Hang, Message, Text, Tool, always, replies
from tests.real_codex import CODE_MODEL, Codex, bash, code, create, patch
from tests.real_program import NOBODY, SPEC


class TestAgent(RealSuite, AgentConformance):
    kind = Codex


class TestFailures(RealSuite, FailureConformance):
    kind = Codex


class TestGuard(RealSuite, GuardConformance):
    kind = Codex
    exempt = MappingProxyType(
        {
            # See `test_guarded_verification`.
            "test_verifying": "it has no tool to read, and the guard lets `cat` read anywhere",
            # See `test_rewriting_hook`.
            "test_rewriting_hook": "its events show a replaced command only once that runs",
        }
    )


def test_patches(codex: Codex) -> None:
    """A patch is one call for each of its files."""
    done = codex.run(
        create("new.txt", "new"),
        patch("*** Update File: app.py", "@@", "-old = 1", "+new = 2", "*** Delete File: new.txt"),
    )
    assert done.error is None
    assert ("new = 2\n", None) == (codex.read("app.py"), codex.read("new.txt"))
    calls = done.of(ToolCall)
    assert ["Write", "Edit", "Edit"] == [call.name for call in calls]
    assert {"file_path": codex.path("new.txt"), "kind": "add"} == calls[0].input


def test_no_files_in_the_configuration(codex: Codex) -> None:
    """Neither long prompts nor variables leave a file in the user's configuration."""
    text = 'Ünï "q" \\ \'s 😀 \x7f \t/x\n' * 15_000  # 330 kB
    done = codex.run(
        bash('echo "$CUGGINO_X $SECRET_KEY" > mine.txt'),
        prompt=f"/-{text}",
        system_prompt=f"-{text}",
        env={"CUGGINO_X": "2", "SECRET_KEY": "3"},
    )
    assert done.error is None
    assert f"/-{text}" in done.requests[0].messages_text
    assert "Bearer dummy-not-a-key" == done.requests[0].headers["authorization"]
    assert "2 3\n" == codex.read("mine.txt")
    assert ["config.toml"] == [file.name for file in (codex.home / ".codex").glob("*.toml")]


def test_code_mode(codex: Codex) -> None:
    """Tools called by a program of the model are reported as its calls."""
    text = "*** Begin Patch\\n*** Add File: made.txt\\n+made\\n*** End Patch\\n"
    program = (
        'const r = await tools.exec_command({cmd: "echo one", yield_time_ms: 30000});'
        "text(r.output);"
        f'await tools.apply_patch("{text}");'
    )
    done = codex.run(code(program), model=CODE_MODEL)
    assert done.error is None
    assert "made\n" == codex.read("made.txt")
    assert ["Bash", "Write"] == [call.name for call in done.of(ToolCall)]
    assert "one\n" in done.conversation


@pytest.mark.parametrize("allowed", [True, False])
def test_mcp_servers(codex: Codex, tmp_path: Path, allowed: bool) -> None:
    """A server gets its variables; without permission only allowed tools may be used."""
    program = tmp_path / "server.py"
    # With a variable, which may be a key, the server is described in a private file.
    env = {"MY_KEY": "hidden"} if allowed else {}
    check = f"import os\nassert os.environ.get('MY_KEY') == {env.get('MY_KEY')!r}\n"
    program.write_text(check + MCP_SERVER)
    servers = {"my-files": {"command": sys.executable, "args": [str(program)], "env": env}}
    put = Tool("mcp__my_files__put", {"path": codex.path("put.txt")})
    first = codex.run(put, mcp_servers=servers, dangerously_skip_permissions=allowed)
    assert first.error is None
    assert ["mcp__my-files__put"] == [call.name for call in first.of(ToolCall)]
    assert [not allowed] == [result.is_error for result in first.of(ToolResult)]
    assert ("put" if allowed else None) == codex.read("put.txt")
    if not allowed:
        rules = ("mcp__my-files__put",)
        codex.run(put, mcp_servers=servers, dangerously_skip_permissions=False, allowed_tools=rules)
        assert "put" == codex.read("put.txt")


def test_server_that_does_not_start(codex: Codex, tmp_path: Path) -> None:
    """The session fails before its first request, and the error names the server."""
    servers = {"broken": {"command": str(tmp_path / "nothing"), "args": []}}
    done = codex.run(Text("hi"), mcp_servers=servers)
    assert isinstance(done.error, AgentFailed)
    assert "broken" in done.error.message
    assert [] == done.requests


def test_command_outlives_the_session(codex: Codex) -> None:
    """A command still running at the end has a result and accepts no input."""

    def typed(request: object) -> Tool:
        (number,) = re.findall(r"session ID (\d+)", str(getattr(request, "messages_text", "")))
        return Tool("write_stdin", {"session_id": int(number), "chars": "x\n"})

    done = codex.run(bash("sleep 600; cat > no.txt", yield_time_ms=300), typed)
    assert done.error is None
    assert "stdin is closed" in done.conversation
    (call,), (result,) = done.of(ToolCall), done.of(ToolResult)
    assert (call.id, True) == (result.name, result.is_error)


def test_messages_of_the_program(codex: Codex) -> None:
    """A message of the program itself is emitted once, as a `SystemMessage`."""
    done = codex.run(model="a-model-of-nobody")
    texts = [message.text for message in done.of(SystemMessage)]
    assert 1 == sum("Model metadata" in text for text in texts)
    assert done.error is None


def test_retries_are_reported(codex: Codex) -> None:
    """A retry of the program is a `SystemMessage`."""
    cut = Drop(Message([Text("This will never be finished, and is long enough.")]), after_events=2)
    done = codex.run(script=replies(cut, then=Message([Text("Whole.")])), retries=1)
    assert done.error is None
    assert ["Whole."] == [message.text for message in done.of(AgentMessage)]
    texts = [message.text for message in done.of(SystemMessage)]
    assert [text for text in texts if text.startswith("Reconnecting... 1/1")]


def test_idle_timeout_of_the_provider(codex: Codex) -> None:
    """A stream that stalls ends the session after the timeout of the provider."""
    provider = 'model_provider = "mock"\n[model_providers.mock]\nname = "mock"\n'
    provider += 'env_key = "MOCK_KEY"\nwire_api = "responses"\nbase_url = "none"\n'
    ends = "request_max_retries = 0\nstream_max_retries = 0\nstream_idle_timeout_ms = 500\n"
    codex.configure(provider + ends)
    half = Hang(message=Message([Text("Never finished.")]), after_events=2)
    done = codex.run(script=always(half))
    assert isinstance(done.error, AgentFailed)
    assert ("connection", True) == (done.error.reason, "idle timeout" in done.error.message)


def test_guarded_patch(codex: Codex) -> None:
    """A patch that moves a file to a protected place is denied, as is `.git`."""
    done = codex.run(
        patch("*** Update File: app.py", "*** Move to: .codex/config.toml", "@@", "-old = 1", "+x"),
        [bash("touch .git/x"), bash("echo last; echo 'it''s'")],
        guard=codex.policy(),
    )
    assert done.error is None
    assert ("old = 1\n", None) == (codex.read("app.py"), codex.read(".codex/config.toml"))
    assert ["MultiEdit", "Bash"] == [event.tool for event in done.of(GuardDenied)]
    assert {"command": "echo last; echo 'it''s'"} in [call.input for call in done.of(ToolCall)]


def test_guarded_alternatives(codex: Codex) -> None:
    """Shells, patches in commands, terminals, model programs and sub-agents are all guarded."""
    trick = "echo $'a\\'; touch .specs/x #'"
    done = codex.run(
        bash(trick, shell="sh"),
        bash(f"apply_patch <<'EOF'\n{create('.specs/y', 'y').input['input']}EOF\n"),
        bash("python3 -i", tty=True),
        bash("touch .specs/z", sandbox_permissions="require_escalated", justification="please"),
        guard=codex.policy(),
    )
    assert done.error is None
    assert "a'; touch .specs/x #\n" in done.conversation
    assert "TTY execution is disabled" in done.conversation
    program = 'try { await tools.exec_command({cmd: "touch .specs/w"}) } catch (e) { text(`${e}`) }'
    coded = codex.run(
        code(program),
        Tool("collaboration__spawn_agent", {"message": "Go.", "task_name": "x"}),
        model=CODE_MODEL,
        guard=codex.policy(),
    )
    assert coded.error is None
    denied = [event.tool for event in coded.of(GuardDenied)]
    assert ["Bash", "collaborationspawn_agent"] == denied
    assert ["task.md"] == [file.name for file in (codex.project / ".specs").iterdir()]


def test_guarded_working_directories(codex: Codex) -> None:
    """A command is judged for its working directory and runs there."""
    specs, made = codex.path(".specs"), codex.project / "made it's"
    made.mkdir()
    done = codex.run(
        bash("touch v", workdir=".specs"),
        bash("touch w", workdir=specs),
        bash("touch x", workdir="made it's/../.specs"),
        bash("touch y", workdir="made it's"),
        bash("touch z; pwd", workdir=str(made)),
        guard=codex.policy(),
    )
    assert done.error is None
    assert ["task.md"] == [file.name for file in Path(specs).iterdir()]
    assert {"y", "z"} == {file.name for file in made.iterdir()}
    assert f"{made}\n" in done.conversation
    assert 3 == len(done.of(GuardDenied))
    program = (
        'for (const [cmd, workdir] of [["touch a", ".specs"], ["touch b", "made it\'s"]]) '
        "try { await tools.exec_command({cmd, workdir, yield_time_ms: 30000}) } "
        "catch (e) { text(`${e}`) }"
    )
    coded = codex.run(code(program), model=CODE_MODEL, guard=codex.policy())
    assert coded.error is None
    assert (None, "") == (codex.read(".specs/a"), codex.read("made it's/b"))


def test_rewriting_hook(codex: Codex) -> None:
    """A command rewritten by a hook of the user was not judged, so the session ends."""
    codex.rewriting_hook("touch rewritten")
    done = codex.run(bash("echo 1"), Text("on"), bash("touch no.txt"), guard=codex.policy())
    assert isinstance(done.error, GuardNotLive)
    assert "Bash was used without its verdict" in done.error.message
    assert [{"command": "touch rewritten"}] == [call.input for call in done.of(ToolCall)]
    assert codex.read("no.txt") is None


def test_check_guard_starts_no_session(codex: Codex) -> None:
    """The guard is checked without a session of the program."""
    agent = codex.agent(NOBODY)
    agent.check_guard(codex.policy())
    assert not list((codex.home / ".codex").glob("sessions/**/*.jsonl"))


def test_guarded_verification(codex: Codex, tmp_path: Path) -> None:
    """A verifying agent writes nothing; only its shell reads, and also in other folders."""
    outside = tmp_path / "outside.txt"
    outside.write_text("not yours\n")
    done = codex.run(
        [bash("cat app.py"), bash(f"cat {outside}")],
        create("new.txt", "new"),
        bash("echo no > new.txt"),
        guard=codex.policy("verify", "full"),
    )
    assert done.error is None
    assert (None, SPEC) == (codex.read("new.txt"), codex.read(".specs/task.md"))
    assert ["MultiEdit", "Bash"] == [event.tool for event in done.of(GuardDenied)]
    outputs = {result.output for result in done.of(ToolResult) if not result.is_error}
    assert {"old = 1\n", "not yours\n"} == outputs
