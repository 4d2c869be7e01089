"""The Claude Agent SDK with the real Claude Code CLI, against a scripted model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from cuggino.errors import AgentFailed, BudgetExceeded, LlmSessionError, QuotaExceeded
from cuggino.events import (
    AgentMessage,
    MessageDelta,
    PingEvent,
    RateLimited,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UsageUpdate,
)
from tests.agents.claude.claude_lines import kind
from tests.agents.claude.test_real_guard import MCP_SERVER
from tests.model_script import (
    HELPER,
    ApiError,
    Drop,
    Message,
    Reply,
    Text,
    Thought,
    Tool,
    always,
    overloaded,
    rate_limited,
    usage_limit,
)
from tests.real_claude import VERSION
from tests.real_claude_sdk import ClaudeSdk, bash, claude_sdk

__all__ = ["claude_sdk"]

pytestmark = pytest.mark.real_agent

NO_RETRY = {"CLAUDE_CODE_MAX_RETRIES": "0"}


def test_a_session(claude_sdk: ClaudeSdk) -> None:
    """Text, thoughts, calls and results come in order, files are really written, costs add up."""
    done = claude_sdk.run(
        [Thought("Hm."), Text("Now <NOTE>I begin</NOTE>, in more than one delta."), bash("echo 1")],
        [
            Tool("Write", {"file_path": claude_sdk.path("new.txt"), "content": "new\n"}),
            bash("echo 2 >&2; exit 3"),
        ],
    )
    assert done.error is None
    assert "new\n" == claude_sdk.read("new.txt")
    assert [
        *("SystemMessage", "Thinking", "AgentMessage", "ToolCall", "ToolResult"),
        *("ToolCall", "ToolCall", "ToolResult", "ToolResult", "AgentMessage", "SessionEnded"),
    ] == sorted_calls(done.tags)
    said = done.of(AgentMessage)
    assert ["Now <NOTE>I begin</NOTE>, in more than one delta.", "<DONE>done</DONE>"] == [
        message.text for message in said
    ]
    for message in said:
        deltas = [d.text for d in done.of(MessageDelta) if d.message_id == message.message_id]
        assert message.text == "".join(deltas)
    assert len(done.of(MessageDelta)) > 2
    calls = done.of(ToolCall)
    results = {result.name: result for result in done.of(ToolResult)}
    assert {call.id for call in calls} == set(results)
    assert [False, False, True] == [results[call.id].is_error for call in calls]
    assert "1" == results[calls[0].id].output
    assert ["Hm."] == [thought.text for thought in done.of(Thinking)]
    assert Usage(input_tokens=3000, output_tokens=300) == done.ended.usage
    assert Usage(input_tokens=1000, output_tokens=100) == done.of(UsageUpdate)[0].usage
    assert "completed" == done.ended.outcome
    assert (done.ended.cost_usd or 0) > 0
    assert done.of(PingEvent)


def sorted_calls(tags: list[str]) -> list[str]:
    """The tags, as if no call of a message had been answered before its last one was told."""
    found = tags.copy()
    for place in range(len(found) - 2):
        if found[place : place + 3] == ["ToolResult", "ToolCall", "ToolResult"]:
            found[place : place + 2] = ["ToolCall", "ToolResult"]
            break
    return found


def test_what_is_asked_for(claude_sdk: ClaudeSdk) -> None:
    """Prompts of any kind, model and environment reach the session; it cannot ask questions."""
    prompt = '/compact @app.py "è" 漢 \\ $HOME\n' + "A word of 'many'. " * 16_000
    system_prompt = "-p You are the \"one\" of '漢'.\n" + "A rule. " * 30_000
    done = claude_sdk.run(
        bash("echo $MINE $MAX_THINKING_TOKENS > mine.txt; pwd >> mine.txt"),
        prompt=prompt + "\udc80",
        system_prompt=system_prompt,
        model="claude-sonnet-4-5",
        thinking=2048,
        env={"MINE": "theirs"},
    )
    assert done.error is None
    request = done.requests[0]
    assert prompt + "?" in request.messages_text
    assert "old = 1" not in request.messages_text
    assert system_prompt in request.system_text
    assert "Claude Code" in request.system_text
    assert "claude-sonnet-4-5" == request.model
    assert not {"AskUserQuestion", "ScheduleWakeup", "Monitor"} & set(request.tool_names)
    assert f"theirs 2048\n{claude_sdk.project}\n" == claude_sdk.read("mine.txt")


def test_a_session_is_resumed(claude_sdk: ClaudeSdk) -> None:
    """A resumed session knows what was said before, and has used what it took alone."""
    name = "0199aaaa-0000-4000-8000-000000000001"
    first = claude_sdk.run(Text("The word is plum."), session_id=name)
    assert (None, name) == (first.error, first.ended.session_id)
    script = always(Message([Text("Yes.")], output_tokens=300))
    again = claude_sdk.run(script=script, prompt="Which?", resume_session_id=name)
    assert (None, name) == (again.error, again.ended.session_id)
    assert "The word is plum." in again.requests[0].messages_text
    assert Usage(input_tokens=1000, output_tokens=300) == again.ended.usage


def test_an_unknown_session(claude_sdk: ClaudeSdk) -> None:
    """A session that is not there cannot be resumed, and it says so before anything else."""
    done = claude_sdk.run(resume_session_id="0199aaaa-0000-4000-8000-00000000ffff")
    assert isinstance(done.error, AgentFailed)
    assert "bad_request" == done.error.reason
    assert "start a new one" in (done.error.hint or "")
    assert ([], ["SessionEnded"]) == (done.requests, done.tags)


def test_tools_of_this_process(claude_sdk: ClaudeSdk, tmp_path: Path) -> None:
    """The agent's own tools, a server of this process, and programs go together."""
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
    assert "MCP server broken failed" in [message.text for message in done.of(SystemMessage)]
    assert {"mcp__tools__price", "mcp__mine__note"} < set(done.requests[0].tool_names)
    assert {"pear": 3, "plum": 0} == prices
    assert "put" == claude_sdk.read("put.txt")
    results = {result.name: result for result in done.of(ToolResult)}
    assert ("it costs 3", False) == (results["toolu_1_0"].output, results["toolu_1_0"].is_error)
    # One is called with the wrong input, and one fails.
    assert [True, True] == [results[call].is_error for call in ("toolu_1_1", "toolu_2_1")]
    assert "fig" in results["toolu_2_1"].output


def test_reading_only(claude_sdk: ClaudeSdk) -> None:
    """Without leave to skip permissions the agent reads, uses what is allowed, and no more."""
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
            bash("echo no > no.txt"),
        ],
        [bash("touch yes.txt"), Tool("mcp__tools__call", {})],
        dangerously_skip_permissions=False,
        allowed_tools=("Bash(touch:*)",),
        tools=[call],
    )
    assert done.error is None
    assert ("", None, []) == (claude_sdk.read("yes.txt"), claude_sdk.read("no.txt"), called)
    results = {result.name: result.is_error for result in done.of(ToolResult)}
    names = ["toolu_1_0", "toolu_1_1", "toolu_1_2", "toolu_2_0", "toolu_2_1"]
    assert [False, True, True, False, True] == [results[name] for name in names]


def test_a_sub_agent(claude_sdk: ClaudeSdk) -> None:
    """A sub-agent works before the session goes on, and may use the tools of this process."""
    from claude_agent_sdk import tool

    called: list[Any] = []

    @tool("call", "Be called", {"with": str})
    async def call(given: dict[str, Any]) -> dict[str, Any]:
        called.append(given)
        return {"content": [{"type": "text", "text": "called"}]}

    order = {"description": "d", "prompt": HELPER, "subagent_type": "general-purpose"}
    helper = [[bash("echo sub > sub.txt"), Tool("mcp__tools__call", {"with": "it"})]]
    done = claude_sdk.run(Tool("Task", order), helper=helper, tools=[call])
    assert done.error is None
    assert ("sub\n", [{"with": "it"}]) == (claude_sdk.read("sub.txt"), called)
    assert "helped" in done.told
    assert Usage(input_tokens=4000, output_tokens=400) == done.ended.usage


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ApiError(401, "authentication_error", "invalid x-api-key"), "auth"),
        (rate_limited(3600), "rate_limit"),
        (overloaded(), "overloaded"),
        (Drop(), "connection"),
    ],
    ids=["401", "429", "529", "reset"],
)
def test_failures_of_the_api(claude_sdk: ClaudeSdk, reply: Reply, reason: str) -> None:
    """What the API refuses has its reason, and the session is over at once."""
    done = claude_sdk.run(script=always(reply), env=NO_RETRY)
    assert isinstance(done.error, LlmSessionError)
    assert reason == kind(done.error)
    assert ("failed", 0.0) == (done.ended.outcome, done.ended.cost_usd)
    assert 1 == len(done.requests)
    assert [] == done.of(AgentMessage)


def test_limits(claude_sdk: ClaudeSdk) -> None:
    """A usage limit is a quota with its time; a budget that is spent ends the session."""
    message = "You've hit your usage limit. It resets in 2 hours."
    done = claude_sdk.run(script=always(usage_limit(0, message)), env=NO_RETRY)
    assert isinstance(done.error, QuotaExceeded)
    assert done.error.resets_at is not None
    assert RateLimited(status="rejected", resets_at=done.error.resets_at) == done.events[-2]
    assert "quota" == done.ended.outcome
    dear = always(Message([Text("Dear.")], input_tokens=50_000, output_tokens=10_000))
    done = claude_sdk.run(script=dear, max_budget_usd=0.1)
    assert isinstance(done.error, BudgetExceeded)
    assert ["Dear."] == [message.text for message in done.of(AgentMessage)]


def test_the_version(claude_sdk: ClaudeSdk) -> None:
    """The program's version is what was installed."""
    assert VERSION == claude_sdk.agent("http://127.0.0.1:9").check()
