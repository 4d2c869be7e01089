"""The guard of the Claude Agent SDK on the real Claude Code CLI: what it lets pass, and what not.

And what happens when it is broken, switched off or not asked: then nothing runs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from cuggino.agents.claude_sdk import guard as claude_sdk_guard
from cuggino.agents.claude_sdk.guard import SdkGate
from cuggino.agents.claude_sdk.link import PipeTransport
from cuggino.agents.guard import Guard, make_guard
from cuggino.config import Config, configured_policy, configured_sandbox
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied, ToolResult
from cuggino.security import hook
from tests.agents.claude.test_real_guard_failures import OFF
from tests.agents.claude.test_real_sandbox import WRITER
from tests.model_script import HELPER, Tool
from tests.real_claude import needs_sandbox
from tests.real_claude_sdk import SPEC, ClaudeSdk, bash, claude_sdk

__all__ = ["claude_sdk"]

pytestmark = pytest.mark.real_agent


def test_calls(claude_sdk: ClaudeSdk) -> None:
    """Commands, files and tools of this process are judged, a sub-agent's too; the model is told.

    What the program itself would ask about is the guard's to judge as well.
    """
    from claude_agent_sdk import tool

    put: list[str] = []

    @tool("put", "Put a file", {"path": str})
    async def put_it(given: dict[str, Any]) -> dict[str, Any]:
        put.append(given["path"])
        return {"content": [{"type": "text", "text": "it is put"}]}

    spec = claude_sdk.path(".specs/task.md")
    start = {"description": "d", "prompt": HELPER, "subagent_type": "general-purpose"}
    done = claude_sdk.run(
        [bash("echo yes > new.txt"), bash("echo x > .specs/task.md; echo y > y.txt")],
        [
            Tool("Write", {"file_path": claude_sdk.path(".npmrc"), "content": "x"}),
            Tool("Write", {"file_path": claude_sdk.path(".cuggino/lock"), "content": "x"}),
            Tool("Read", {"file_path": spec}),
        ],
        [Tool("mcp__tools__put", {"path": name}) for name in ("a.txt", ".specs/task.md")],
        Tool("Task", start),
        helper=[[bash("echo sub > sub.txt"), bash("echo no > .specs/task.md")]],
        tools=[put_it],
        guard=claude_sdk.policy(),
    )
    assert done.error is None
    assert ("yes\n", None, SPEC) == tuple(
        claude_sdk.read(name) for name in ("new.txt", "y.txt", ".specs/task.md")
    )
    assert ("x", None) == (claude_sdk.read(".npmrc"), claude_sdk.read(".cuggino/lock"))
    assert (["a.txt"], "sub\n") == (put, claude_sdk.read("sub.txt"))
    denied = done.of(GuardDenied)
    assert ["Bash", "Write", "mcp__tools__put", "Bash"] == [event.tool for event in denied]
    assert ["toolu_1_1", "toolu_2_1", "toolu_3_1"] == [e.tool_use_id for e in denied][:3]
    assert "> .specs/task.md" == denied[0].part
    for event in denied[:3]:
        assert f"hook error: {event.reason}" in done.told
    results = {result.name: result.is_error for result in done.of(ToolResult)}
    assert [False, True] == [results["toolu_1_0"], results["toolu_1_1"]]
    assert "completed" == done.ended.outcome


def test_a_session_that_may_not_skip_permissions(claude_sdk: ClaudeSdk) -> None:
    """What the guard lets pass is still left to the agent's own rules, which are denied here."""
    done = claude_sdk.run(
        [bash("echo no > no.txt"), bash("touch yes.txt"), bash("touch .specs/no.md")],
        dangerously_skip_permissions=False,
        allowed_tools=("Bash(touch:*)",),
        guard=claude_sdk.policy(),
    )
    assert done.error is None
    names = ["no.txt", "yes.txt", ".specs/no.md"]
    assert [None, "", None] == [claude_sdk.read(name) for name in names]
    assert ["toolu_1_2"] == [event.tool_use_id for event in done.of(GuardDenied)]


FAULTS = {"raises": OSError("no more files"), "is slow": 3.0, "talks nonsense": {"x": "y"}}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_judge_that_fails(
    claude_sdk: ClaudeSdk, monkeypatch: pytest.MonkeyPatch, fault: Any
) -> None:
    """From its first failure on no tool runs, the model is told so, and the session goes on."""
    answer = hook.answer
    broken: list[bool] = []

    def failing(data: Mapping[str, Any], *given: Any, **named: Any) -> dict[str, Any]:
        if not broken:
            return answer(data, *given, **named)
        match fault:
            case OSError():
                raise fault
            case float(seconds):
                time.sleep(seconds)  # the judge itself hangs: the real program waits for it
                return answer(data, *given, **named)
            case said:
                return dict(said)

    def break_it() -> list[Tool]:
        broken.append(True)
        target = claude_sdk.path("two.txt")
        return [bash("echo two > two.txt"), Tool("Write", {"file_path": target, "content": "2"})]

    monkeypatch.setattr(claude_sdk_guard, "JUDGE_SECONDS", 1.0)
    monkeypatch.setattr(hook, "answer", failing)
    done = claude_sdk.run(
        bash("echo one > one.txt"), break_it, bash("ls"), guard=claude_sdk.policy()
    )
    assert done.error is None
    assert ["one\n", None] == [claude_sdk.read(f"{n}.txt") for n in ("one", "two")]
    assert ["Bash", "Write", "Bash"] == [event.tool for event in done.of(GuardDenied)]
    assert 3 == done.told.count("hook error: The guard could not judge this call")
    assert [False, True, True, True] == [result.is_error for result in done.of(ToolResult)]


@pytest.mark.parametrize("way", ["raises", "answers nothing", "hangs up"])
def test_an_answer_that_is_lost(
    claude_sdk: ClaudeSdk, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """A call whose answer does not reach the program is not run."""
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


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PreToolUse"])
def test_a_guard_that_is_not_asked(
    claude_sdk: ClaudeSdk, monkeypatch: pytest.MonkeyPatch, event: Any
) -> None:
    """A program that does not ask at the start, or about a call, is found out."""
    hooks = SdkGate.hooks

    def without(gate: SdkGate) -> Any:
        return {name: asked for name, asked in hooks(gate).items() if name != event}

    monkeypatch.setattr(SdkGate, "hooks", without)
    done = claude_sdk.run(bash("ls"), bash("echo no > no.txt"), guard=claude_sdk.policy())
    assert isinstance(done.error, GuardNotLive)
    assert "failed" == done.ended.outcome
    assert claude_sdk.read("no.txt") is None
    seen = [result.is_error for result in done.of(ToolResult)]
    # Without any answer what reads runs by the program's own rules: that is one too many.
    assert seen == ([] if event == "UserPromptSubmit" else [False])


def test_a_parser_that_does_not_work(
    claude_sdk: ClaudeSdk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guard that does not judge rightly ends the session before the model hears a word."""

    def without(*given: Any) -> Guard:
        return replace(make_guard(*given), shfmt="/bin/false")

    monkeypatch.setattr("cuggino.agents.claude.agent.make_guard", without)
    done = claude_sdk.run(bash("echo no > no.txt"), guard=claude_sdk.policy())
    assert isinstance(done.error, GuardNotLive)
    assert "it answers deny to `echo ready`" in done.error.message
    assert ([], "failed") == (done.requests, done.ended.outcome)


@pytest.mark.parametrize("switch", [{**OFF[0], **OFF[1], **OFF[3]}, OFF[2]], ids=["off", "empty"])
def test_settings_of_the_project(claude_sdk: ClaudeSdk, switch: dict[str, Any]) -> None:
    """Settings of the project do not switch the guard off, at the start or in the midst."""
    folder = claude_sdk.project / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(switch))

    def write() -> Tool:
        (folder / "settings.local.json").write_text(json.dumps(switch))
        return bash("python3 -c 'import time; time.sleep(1.5)'")  # the program looks for changes

    done = claude_sdk.run(
        [bash("echo yes > new.txt"), bash("echo no > .specs/task.md")],
        write,
        [bash("echo more > new.txt"), bash("echo no > .specs/task.md")],
        guard=claude_sdk.policy(),
    )
    assert done.error is None
    assert ("more\n", SPEC) == (claude_sdk.read("new.txt"), claude_sdk.read(".specs/task.md"))
    assert 2 == len(done.of(GuardDenied))


def test_settings_that_the_program_drops(claude_sdk: ClaudeSdk) -> None:
    """One bad value makes the program drop all settings, and the guard holds all the same."""
    settings = {"permissions": {"allow": 3}}
    calls = [bash("echo yes > new.txt"), bash("echo no > .specs/task.md")]
    done = claude_sdk.run(calls, settings=settings, guard=claude_sdk.policy())
    assert done.error is None
    assert ("yes\n", SPEC) == (claude_sdk.read("new.txt"), claude_sdk.read(".specs/task.md"))


def test_a_resumed_session(claude_sdk: ClaudeSdk) -> None:
    """A session that is gone on with is held as it was."""
    first = claude_sdk.run(guard=claude_sdk.policy())
    done = claude_sdk.run(
        bash("true"),  # what the model said in the first session
        [bash("echo two > new.txt"), bash("echo no > .specs/task.md")],
        resume_session_id=first.ended.session_id,
        guard=claude_sdk.policy(),
    )
    assert (None, None) == (first.error, done.error)
    assert ("two\n", SPEC) == (claude_sdk.read("new.txt"), claude_sdk.read(".specs/task.md"))
    assert 1 == len(done.of(GuardDenied))


def test_the_sandbox(claude_sdk: ClaudeSdk) -> None:
    """Where the machine has a sandbox, a program that no guard looks into is held by that."""
    needs_sandbox()
    policy = configured_policy(Config(), "implementing", project=claude_sdk.project)
    sandbox = configured_sandbox(Config(), policy)
    assert sandbox is not None
    (claude_sdk.project / "write.py").write_text(WRITER)
    (claude_sdk.project / "places.txt").write_text("new.txt .specs/task.md")
    call = bash("xargs python3 write.py < places.txt")
    done = claude_sdk.run(call, guard=policy, sandbox=sandbox)
    assert done.error is None
    assert ("written", SPEC) == (claude_sdk.read("new.txt"), claude_sdk.read(".specs/task.md"))
    assert "could not .specs/task.md" in done.of(ToolResult)[0].output


def test_a_hook_that_rewrites(claude_sdk: ClaudeSdk) -> None:
    """What another hook makes of a call is not judged, so the session ends at the first one."""
    other = {"hookEventName": "PreToolUse", "updatedInput": {"command": "echo no > .specs/task.md"}}
    command = f"echo '{json.dumps({'hookSpecificOutput': other})}'"
    entry = {"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}
    (claude_sdk.project / ".claude").mkdir()
    settings = json.dumps({"hooks": {"PreToolUse": [entry]}})
    (claude_sdk.project / ".claude" / "settings.json").write_text(settings)
    done = claude_sdk.run(bash("echo yes"), bash("echo more > more.txt"), guard=claude_sdk.policy())
    assert isinstance(done.error, GuardNotLive)
    assert "rewrites the calls of tools" in done.error.message
    assert claude_sdk.read("more.txt") is None
