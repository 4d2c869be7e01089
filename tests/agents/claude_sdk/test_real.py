"""The Claude Agent SDK with the real Claude Code CLI: conformance, and its own features."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.claude_sdk.guard import SdkGate
from cuggino.agents.claude_sdk.link import PipeTransport
from cuggino.config import Config, configured_policy, configured_sandbox
from cuggino.errors import BudgetExceeded
from cuggino.events import (
    AgentMessage,
    GuardDenied,
    McpServerFailed,
    ToolCall,
    ToolResult,
    Usage,
)
from cuggino.testing import AgentConformance, FailureConformance, GuardConformance
from tests.agents.arenas import RealSuite
from tests.agents.claude.test_real_sandbox import WRITER
from tests.file_server import MCP_SERVER
from tests.limits import LIMIT
from tests.model_script import Message, Text, Tool, always, spoken
from tests.model_server import ModelServer
from tests.real_claude import VERSION, ClaudeSdk, bash, delegate, needs_sandbox
from tests.real_program import NOBODY, SPEC
from tests.sources.subscribers import Recorder, children, eventually


class TestAgent(RealSuite, AgentConformance):
    kind = ClaudeSdk


class TestFailures(RealSuite, FailureConformance):
    kind = ClaudeSdk


class TestGuard(RealSuite, GuardConformance):
    kind = ClaudeSdk


def test_version(claude_sdk: ClaudeSdk) -> None:
    """The version is the installed one."""
    assert VERSION == claude_sdk.agent(NOBODY).check()


def test_options(claude_sdk: ClaudeSdk) -> None:
    """Invalid characters are replaced, thinking is limited, and no tool waits for user input."""
    done = claude_sdk.run(
        bash("echo $MAX_THINKING_TOKENS > mine.txt"),
        prompt="/compact @app.py \udc80",
        system_prompt="-p You are the one.",
        thinking=2048,
    )
    assert done.error is None
    request = done.requests[0]
    assert "/compact @app.py ?" in request.messages_text
    assert "old = 1" not in request.messages_text
    assert "Claude Code" in request.system_text
    assert not {"AskUserQuestion", "ScheduleWakeup", "Monitor"} & set(request.tool_names)
    assert "2048\n" == claude_sdk.read("mine.txt")


def test_chosen_session_id(claude_sdk: ClaudeSdk) -> None:
    """A session has the requested id."""
    name = "0199aaaa-0000-4000-8000-000000000001"
    done = claude_sdk.run(Text("The word is plum."), session_id=name)
    assert (None, name) == (done.error, done.ended.session_id)


def test_tools_in_this_process(claude_sdk: ClaudeSdk, tmp_path: Path) -> None:
    """Tools of the agent, of an in-process server and of a server program work together."""
    from claude_agent_sdk import create_sdk_mcp_server, tool

    prices = {"pear": 3}

    @tool("price", "The price of an article", {"article": str})
    async def price(given: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"it costs {prices[given['article']]}"}]}

    @tool("note", "Note something", {"text": str})
    async def note(given: dict[str, Any]) -> dict[str, Any]:
        prices[given["text"]] = 0
        return {"content": [{"type": "text", "text": "noted"}]}

    program = tmp_path / "server.py"
    program.write_text(MCP_SERVER)
    broken = {"command": str(tmp_path / "nothing"), "args": []}
    done = claude_sdk.run(
        [Tool("mcp__tools__price", {"article": "pear"}), Tool("mcp__tools__price", {"article": 0})],
        [Tool("mcp__mine__note", {"text": "plum"}), Tool("mcp__tools__price", {"article": "fig"})],
        Tool("mcp__files__put", {"path": claude_sdk.path("put.txt")}),
        tools=[price],
        mcp_servers={
            "mine": {**create_sdk_mcp_server("mine", tools=[note]), "alwaysLoad": True},
            "files": {"command": sys.executable, "args": [str(program)], "alwaysLoad": True},
            "broken": broken,
        },
    )
    assert done.error is None
    assert ["broken"] == [event.server for event in done.of(McpServerFailed)]
    assert {"mcp__tools__price", "mcp__mine__note"} < set(done.requests[0].tool_names)
    assert {"pear": 3, "plum": 0} == prices
    assert "put" == claude_sdk.read("put.txt")
    results = {result.name: result for result in done.of(ToolResult)}
    assert ("it costs 3", False) == (results["toolu_1_0"].output, results["toolu_1_0"].is_error)
    # One is called with invalid input, and one fails.
    assert [True, True] == [results[call].is_error for call in ("toolu_1_1", "toolu_2_1")]
    assert "fig" in results["toolu_2_1"].output


def test_permissions(claude_sdk: ClaudeSdk) -> None:
    """Without permission the agent can read and use allowed tools only."""
    from claude_agent_sdk import tool

    called: list[Any] = []

    @tool("call", "Be called", {})
    async def call(given: dict[str, Any]) -> dict[str, Any]:
        called.append(given)
        return {"content": []}

    done = claude_sdk.run(
        [
            Tool("Read", {"file_path": claude_sdk.path("app.py")}),
            Tool("Write", {"file_path": claude_sdk.path("no.txt"), "content": "no"}),
            Tool("Bash", {"command": "echo no > no.txt"}),
        ],
        [Tool("Bash", {"command": "touch yes.txt"}), Tool("mcp__tools__call", {})],
        dangerously_skip_permissions=False,
        allowed_tools=("Bash(touch:*)",),
        tools=[call],
    )
    assert done.error is None
    assert ("", None, []) == (claude_sdk.read("yes.txt"), claude_sdk.read("no.txt"), called)
    results = {result.name: result.is_error for result in done.of(ToolResult)}
    names = ["toolu_1_0", "toolu_1_1", "toolu_1_2", "toolu_2_0", "toolu_2_1"]
    assert [False, True, True, False, True] == [results[name] for name in names]


def test_sub_agent_calls_a_tool_in_this_process(claude_sdk: ClaudeSdk) -> None:
    """A sub-agent can use in-process tools."""
    from claude_agent_sdk import tool

    called: list[Any] = []

    @tool("call", "Be called", {"with": str})
    async def call(given: dict[str, Any]) -> dict[str, Any]:
        called.append(given)
        return {"content": [{"type": "text", "text": "called"}]}

    helper = [[bash("echo sub > sub.txt"), Tool("mcp__tools__call", {"with": "it"})]]
    done = claude_sdk.run(delegate(), helper=helper, tools=[call])
    assert done.error is None
    assert ("sub\n", [{"with": "it"}]) == (claude_sdk.read("sub.txt"), called)
    assert "helped" in done.conversation
    assert Usage(input_tokens=4000, output_tokens=400) == done.ended.usage


def test_budget(claude_sdk: ClaudeSdk) -> None:
    """A spent budget ends the session after the answer that exceeds it."""
    dear = always(Message([Text("Dear.")], input_tokens=50_000, output_tokens=10_000))
    done = claude_sdk.run(script=dear, max_budget_usd=0.1)
    assert isinstance(done.error, BudgetExceeded)
    assert ["Dear."] == [message.text for message in done.of(AgentMessage)]


def test_guarded_tool_in_this_process(claude_sdk: ClaudeSdk) -> None:
    """An in-process tool is judged by its path arguments, like sensitive files."""
    from claude_agent_sdk import tool

    put: list[str] = []

    @tool("put", "Put a file", {"path": str})
    async def put_it(given: dict[str, Any]) -> dict[str, Any]:
        put.append(given["path"])
        return {"content": [{"type": "text", "text": "it is put"}]}

    done = claude_sdk.run(
        [Tool("mcp__tools__put", {"path": name}) for name in ("a.txt", ".specs/task.md")],
        Tool("Write", {"file_path": claude_sdk.path(".npmrc"), "content": "x"}),
        tools=[put_it],
        guard=claude_sdk.policy(),
    )
    assert done.error is None
    assert (["a.txt"], "x") == (put, claude_sdk.read(".npmrc"))
    (denied,) = done.of(GuardDenied)
    assert ("mcp__tools__put", "toolu_1_1") == (denied.tool, denied.tool_use_id)
    assert f"hook error: {denied.reason}" in done.conversation


def test_guard_and_permissions(claude_sdk: ClaudeSdk) -> None:
    """A call allowed by the guard still needs the program's permission."""
    calls = ("echo no > no.txt", "touch yes.txt", "touch .specs/no.md")
    done = claude_sdk.run(
        [Tool("Bash", {"command": command}) for command in calls],
        dangerously_skip_permissions=False,
        allowed_tools=("Bash(touch:*)",),
        guard=claude_sdk.policy(),
    )
    assert done.error is None
    names = ["no.txt", "yes.txt", ".specs/no.md"]
    assert [None, "", None] == [claude_sdk.read(name) for name in names]
    assert ["toolu_1_2"] == [event.tool_use_id for event in done.of(GuardDenied)]


@pytest.mark.parametrize("way", ["raises", "answers nothing", "hangs up"])
def test_lost_verdict(claude_sdk: ClaudeSdk, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """A call whose verdict does not reach the program never runs."""
    answer, write = SdkGate.answer, PipeTransport.write
    calls: list[str] = []

    async def lost(gate: SdkGate, data: Any, call: str | None, context: Any) -> Any:
        if data.get("hook_event_name") != "PreToolUse" or way == "hangs up":
            return await answer(gate, data, call, context)
        calls.append(str(call))
        if way == "raises":
            raise OSError("lost")
        return None

    async def hang_up(transport: PipeTransport, data: str) -> None:
        if way == "hangs up" and "permissionDecision" in data:
            calls.append(data)
            await transport.end_input()
            return
        await write(transport, data)

    monkeypatch.setattr(SdkGate, "answer", lost)
    monkeypatch.setattr(PipeTransport, "write", hang_up)
    done = claude_sdk.run(bash("echo no > no.txt"), guard=claude_sdk.policy())
    assert 1 == len(calls)
    assert claude_sdk.read("no.txt") is None
    assert [True] == [result.is_error for result in done.of(ToolResult)]


def test_settings_that_the_program_drops(claude_sdk: ClaudeSdk) -> None:
    """One bad value makes the program drop all settings; the guard still works."""
    settings: Mapping[str, Any] = {"permissions": {"allow": 3}}
    calls = [bash("echo yes > new.txt"), bash("echo no > .specs/task.md")]
    done = claude_sdk.run(calls, settings=settings, guard=claude_sdk.policy())
    assert done.error is None
    assert ("yes\n", SPEC) == (claude_sdk.read("new.txt"), claude_sdk.read(".specs/task.md"))


def test_sandbox(claude_sdk: ClaudeSdk) -> None:
    """The sandbox confines a program that the guard cannot inspect."""
    needs_sandbox()
    policy = configured_policy(Config(), "implementing", project=claude_sdk.project)
    sandbox = configured_sandbox(Config(), policy)
    assert sandbox is not None
    claude_sdk.write("write.py", WRITER)
    claude_sdk.write("places.txt", "new.txt .specs/task.md")
    call = bash("xargs python3 write.py < places.txt")
    done = claude_sdk.run(call, guard=policy, sandbox=sandbox)
    assert done.error is None
    assert ("written", SPEC) == (claude_sdk.read("new.txt"), claude_sdk.read(".specs/task.md"))
    assert "could not .specs/task.md" in done.of(ToolResult)[0].output


def begin(claude_sdk: ClaudeSdk, server: ModelServer, tools: Any) -> Recorder:
    """Start a session with in-process tools."""
    claude_sdk.tools = tools
    return Recorder(claude_sdk.agent(server.url).spawn(claude_sdk.options()))


def sdk_threads() -> bool:
    return any(thread.name.startswith("cuggino-claude") for thread in threading.enumerate())


def test_dispose_cancels_a_tool_in_this_process(claude_sdk: ClaudeSdk) -> None:
    """Disposal from any thread cancels an in-process tool."""
    from claude_agent_sdk import tool

    waiting, cancelled = threading.Event(), threading.Event()

    @tool("wait", "Wait", {})
    async def wait(_given: dict[str, Any]) -> dict[str, Any]:
        waiting.set()
        try:
            await asyncio.sleep(600)
        finally:
            cancelled.set()
        return {"content": []}

    with claude_sdk.serve(spoken([Tool("mcp__tools__wait", {})])) as server:
        recorder = begin(claude_sdk, server, [wait])
        assert waiting.wait(LIMIT)
        assert [event for event in recorder.items if isinstance(event, ToolCall)]
        other = threading.Thread(target=recorder.subscription.dispose)
        other.start()
        other.join(LIMIT)
        assert not other.is_alive()
        assert cancelled.is_set()
        assert (set(), False) == (children(), sdk_threads())


def test_tool_that_disposes_of_its_session(claude_sdk: ClaudeSdk) -> None:
    """An in-process tool may dispose of its own session."""
    from claude_agent_sdk import tool

    begun: list[Recorder] = []
    done = threading.Event()

    @tool("stop", "Stop", {})
    async def stop(_given: dict[str, Any]) -> dict[str, Any]:
        begun[0].subscription.dispose()
        done.set()
        return {"content": []}

    with claude_sdk.serve(spoken([Tool("mcp__tools__stop", {})])) as server:
        begun.append(begin(claude_sdk, server, [stop]))
        assert done.wait(LIMIT)
        assert set() == children()
        assert eventually(lambda: not sdk_threads())


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.3])
def test_dispose_while_starting(claude_sdk: ClaudeSdk, seconds: float) -> None:
    """A session disposed before its first event leaves nothing behind."""
    with claude_sdk.serve(always(Message([Text("Hello.")]))) as server:
        agent = claude_sdk.agent(server.url)
        recorder = Recorder(agent.spawn(claude_sdk.options(guard=claude_sdk.policy())))
        threading.Event().wait(seconds)
        recorder.subscription.dispose()
        assert (set(), False) == (children(), sdk_threads())
