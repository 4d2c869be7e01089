"""The real GitHub Copilot CLI when something fails it: which error, and nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
import reactivex as rx
from reactivex import operators as ops

import cuggino
from cuggino.errors import AgentFailed, QuotaExceeded
from cuggino.events import AgentMessage, Event, RateLimited, SystemMessage, ToolCall
from cuggino.operators import LoopScheduler
from tests.agents.sleepers import (
    disposed_in_a_tool,
    killed_in_a_tool,
    none_left,
    running,
    stubborn,
    wait_for,
)
from tests.model_openai import OpenAiServer
from tests.model_script import ApiError, Drop, Hang, Message, Reply, Text, always, replies
from tests.real_copilot import Copilot, bash, clean_env, copilot, copilot_cli

__all__ = ["copilot", "copilot_cli"]

pytestmark = pytest.mark.real_agent

ROOT = Path(__file__).resolve().parents[3]
SLEEP = "sleep 31415"
"""What a test's tool runs, so that it is known when it is gone."""
no_sleepers = none_left(SLEEP)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ApiError(400, "invalid_request_error", "the request is bad"), "bad_request"),
        (ApiError(401, "authentication_error", "the key is bad"), "auth"),
        (ApiError(413, "too_long", "too much"), "prompt_too_long"),
    ],
)
def test_errors_of_the_api(copilot: Copilot, reply: Reply, reason: str) -> None:
    """What the API refuses ends the session with its reason, and a hint where one helps."""
    done = copilot.run(script=always(reply))
    assert isinstance(done.error, AgentFailed)
    assert reason == done.error.reason
    assert ("copilot login" in (done.error.hint or "")) == (reason == "auth")
    assert ("failed", None) == (done.ended.outcome, done.ended.usage)


def test_a_usage_limit(copilot: Copilot) -> None:
    """A limit that the provider tells in words is told as one, and ends the session."""
    text = "You have exceeded your Copilot usage limits"
    done = copilot.run(script=always(ApiError(400, "usage_limit_reached", text)))
    assert isinstance(done.error, QuotaExceeded)
    assert text in done.error.message
    assert "quota" == done.ended.outcome
    assert ["rejected"] == [limit.status for limit in done.of(RateLimited)]


def test_a_stream_that_breaks(copilot: Copilot) -> None:
    """A broken stream is tried again, which is told, and its unfinished text is not."""
    cut = Drop(Message([Text("This will never be finished, and is long enough.")]), after_events=2)
    done = copilot.run(script=replies(cut, then=Message([Text("Whole.")])))
    assert done.error is None
    assert ["Whole."] == [message.text for message in done.of(AgentMessage)]
    told = [message.text for message in done.of(SystemMessage)]
    assert [text for text in told if text.startswith("Retrying: ")]


def test_without_an_account(copilot: Copilot) -> None:
    """Without an account and without a provider of one's own it tells how to log in."""
    env = {"COPILOT_PROVIDER_BASE_URL": "", "COPILOT_OFFLINE": ""}
    done = copilot.run(env=env)
    assert isinstance(done.error, AgentFailed)
    assert "auth" == done.error.reason
    assert "copilot login" in (done.error.hint or "")


def test_disposal_in_the_midst_of_a_tool(copilot: Copilot) -> None:
    """Disposal ends the program, its tool and what that has put into sessions of their own."""
    with OpenAiServer(always(Message([bash(stubborn(SLEEP))]))) as server:
        disposed_in_a_tool(copilot.agent(server.url).spawn(copilot.options()), SLEEP)


@pytest.mark.parametrize("when", ["at once", "starting", "waiting for the model"])
def test_disposal_at_any_time(copilot: Copilot, when: str) -> None:
    """A session can be ended before it has begun, while it begins, and while it waits."""
    with OpenAiServer(always(Hang())) as server:
        lane = LoopScheduler()
        agent = copilot.agent(server.url)
        agent.check()
        held = agent.spawn(copilot.options()).subscribe(lambda _event: None, scheduler=lane)
        if when == "starting":
            threading.Event().wait(0.3)
        elif when == "waiting for the model":
            wait_for(lambda: bool(server.requests))
        held.dispose()
        lane.close()


def test_a_subscriber_that_takes_few(copilot: Copilot) -> None:
    """Who takes only some events leaves nothing behind."""
    with OpenAiServer(always(Message([bash(SLEEP)]))) as server:
        stream = copilot.agent(server.url).spawn(copilot.options())
        calls = stream.pipe(ops.filter(lambda event: isinstance(event, ToolCall)), ops.take(1))
        seen: list[Event] = []
        cuggino.run(calls, seen.append)
    assert ["ToolCall"] == [event.tag for event in seen]


def test_a_subscriber_that_raises(copilot: Copilot) -> None:
    """What the subscriber raises reaches its `on_error`, and the program has ended by then."""

    def refuse(event: Event) -> Event:
        if isinstance(event, ToolCall):
            raise OSError("I do not like it")
        return event

    with OpenAiServer(always(Message([bash(SLEEP)]))) as server:
        stream = copilot.agent(server.url).spawn(copilot.options())
        with pytest.raises(OSError, match="I do not like it"):
            cuggino.run(stream.pipe(ops.map(refuse)), lambda _event: None)


def test_a_program_that_is_killed(copilot: Copilot) -> None:
    """The end of the program in the midst of a session is an error, and its tool ends too."""
    with OpenAiServer(always(Message([bash(SLEEP)]))) as server:
        error = killed_in_a_tool(
            copilot.agent(server.url).spawn(copilot.options()),
            SLEEP,
            is_program=lambda process: (
                "--headless" in process.cmdline() and process.ppid() == os.getpid()
            ),
        )
    assert isinstance(error, AgentFailed)
    assert ("crash", "copilot was ended by SIGKILL") == (error.reason, error.message)


HOLDER = """
import signal, sys
from pathlib import Path
import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.copilot import CopilotAgent
import json

signal.signal(signal.SIGINT, signal.default_int_handler)  # a test in the background ignores it
program, project, env = sys.argv[1:]
agent = CopilotAgent(path=program, env=json.loads(env))
options = SpawnOptions(prompt="Go.", cwd=Path(project), dangerously_skip_permissions=True)
cuggino.run(agent.spawn(options), lambda event: print(event.tag, flush=True))
"""


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_parent_that_is_killed(copilot: Copilot, sign: signal.Signals) -> None:
    """However the process that holds a session ends, nothing of the session lives on."""
    with OpenAiServer(always(Message([bash(f"setsid {SLEEP} & {SLEEP}")]))) as server:
        env = clean_env(copilot.home, server.url)
        words = [str(copilot.program), str(copilot.project), json.dumps(env)]
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER, *words],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for(lambda: len(running(SLEEP)) == 2)
        tree = psutil.Process(holder.pid).children(recursive=True)
        assert [process for process in tree if "--headless" in process.cmdline()]
        holder.send_signal(sign)
        holder.wait(30)
        wait_for(lambda: not any(process.is_running() for process in tree), 20.0)
        wait_for(lambda: running(SLEEP) == [], 20.0)


def test_several_at_once(copilot: Copilot) -> None:
    """Sessions side by side keep apart."""
    with OpenAiServer(lambda r: Message([Text(r.messages_text.rpartition("\n")[2])])) as server:
        streams = [
            copilot.agent(server.url).spawn(copilot.options(prompt=f"Word {n}")) for n in range(3)
        ]
        texts: list[str] = []

        def keep(event: Event) -> None:
            if isinstance(event, AgentMessage):
                texts.append(event.text)

        cuggino.run(rx.merge(*streams), keep)
    assert ["Word 0", "Word 1", "Word 2"] == sorted(texts)
