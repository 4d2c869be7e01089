"""Disposal of a session of the Claude Agent SDK on the real CLI: at any moment, nothing is left."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import psutil
import pytest

from cuggino.events import PingEvent, ToolCall
from tests.model_script import Hang, Message, Script, Text, Tool, always, spoken
from tests.model_server import ModelServer
from tests.real_claude_sdk import ClaudeSdk, bash, claude_sdk
from tests.sources.subscribers import Recorder, alive, children, eventually

__all__ = ["claude_sdk"]

pytestmark = pytest.mark.real_agent

LONG = Message([Text("A text that is longer than one delta of the stream, so it can be cut.")])


class Begun:
    """A session that is under way."""

    def __init__(self, claude_sdk: ClaudeSdk, server: ModelServer, **options: Any) -> None:
        tools = options.pop("tools", ())
        agent = claude_sdk.agent(server.url, tools=tools)
        self.recorder = Recorder(agent.spawn(claude_sdk.options(**options)))

    def dispose(self) -> float:
        """The seconds that it took."""
        started = time.monotonic()
        self.recorder.subscription.dispose()
        return time.monotonic() - started

    def has(self, kind: type[object]) -> bool:
        return any(isinstance(event, kind) for event in self.recorder.items)


def test_in_the_midst_of_a_message(claude_sdk: ClaudeSdk) -> None:
    """While the model speaks, disposal ends program and thread before it returns."""
    hanging: Script = always(Hang(message=LONG, after_events=4))
    with ModelServer(hanging) as server:
        begun = Begun(claude_sdk, server, guard=claude_sdk.policy())
        assert eventually(lambda: begun.has(PingEvent))
        assert children()
        assert begun.dispose() < 15
        assert (set(), False) == (children(), sdk_threads())
    assert (None, False) == (begun.recorder.error, begun.recorder.completed)


def test_while_a_command_runs(claude_sdk: ClaudeSdk) -> None:
    """A command that hides in a session of its own is ended with its agent."""
    hide = "setsid sh -c 'echo $$ > pid; exec sleep 600' & wait"
    with ModelServer(spoken([bash(hide)])) as server:
        begun = Begun(claude_sdk, server, guard=claude_sdk.policy())
        assert eventually(lambda: bool(claude_sdk.read("pid")))
        pid = int(claude_sdk.read("pid") or 0)
        assert alive(pid)
        assert begun.dispose() < 15
        assert (False, set(), False) == (alive(pid), children(), sdk_threads())


def test_while_a_tool_of_this_process_runs(claude_sdk: ClaudeSdk) -> None:
    """A tool of this process is cancelled, from whatever thread the session is disposed."""
    from claude_agent_sdk import tool

    begun_to_wait, cancelled = threading.Event(), threading.Event()

    @tool("wait", "Wait", {})
    async def wait(_given: dict[str, Any]) -> dict[str, Any]:
        begun_to_wait.set()
        try:
            await asyncio.sleep(600)
        finally:
            cancelled.set()
        return {"content": []}

    with ModelServer(spoken([Tool("mcp__tools__wait", {})])) as server:
        begun = Begun(claude_sdk, server, tools=[wait])
        assert begun_to_wait.wait(20)
        assert begun.has(ToolCall)
        other = threading.Thread(target=begun.dispose)
        other.start()
        other.join(15)
        assert not other.is_alive()
        assert cancelled.is_set()
        assert (set(), False) == (children(), sdk_threads())


def test_a_tool_that_disposes_its_own_session(claude_sdk: ClaudeSdk) -> None:
    """Even a tool may end the session in which it runs."""
    from claude_agent_sdk import tool

    held: list[Begun] = []
    done = threading.Event()

    @tool("stop", "Stop", {})
    async def stop(_given: dict[str, Any]) -> dict[str, Any]:
        held[0].dispose()
        done.set()
        return {"content": []}

    with ModelServer(spoken([Tool("mcp__tools__stop", {})])) as server:
        held.append(Begun(claude_sdk, server, tools=[stop]))
        assert done.wait(20)
        assert set() == children()
        assert eventually(lambda: not sdk_threads())


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.3])
def test_at_the_start(claude_sdk: ClaudeSdk, seconds: float) -> None:
    """A session that is disposed before its first event leaves nothing either."""
    with ModelServer(always(LONG)) as server:
        begun = Begun(claude_sdk, server, system_prompt="One.", guard=claude_sdk.policy())
        threading.Event().wait(seconds)
        assert begun.dispose() < 15
        assert (set(), False) == (children(), sdk_threads())


def test_an_agent_that_dies(claude_sdk: ClaudeSdk) -> None:
    """A program that is killed in the midst is a crash, and its link ends with it."""
    with ModelServer(always(Hang())) as server:
        begun = Begun(claude_sdk, server, guard=claude_sdk.policy())
        assert eventually(lambda: bool(server.requests))
        (program,) = children()
        psutil.Process(program).kill()
        begun.recorder.wait()
    assert "crash" == getattr(begun.recorder.error, "reason", None)
    assert "SIGKILL" in str(begun.recorder.error)
    assert eventually(lambda: not sdk_threads())


def sdk_threads() -> bool:
    return any(thread.name.startswith("cuggino-claude") for thread in threading.enumerate())
