"""How sessions of the real Codex CLI fail and are ended: by name, in time, and nothing is left."""

from __future__ import annotations

import os
import socket
import time
from datetime import UTC, datetime

import pytest

import cuggino
from cuggino.errors import AgentFailed, QuotaExceeded
from cuggino.events import AgentMessage, RateLimited, SystemMessage
from cuggino.operators import LoopScheduler
from tests.agents.sleepers import (
    disposed_in_a_tool,
    killed_in_a_tool,
    none_left,
    stubborn,
    wait_for,
)
from tests.model_responses import ResponsesServer, UsageLimit
from tests.model_script import ApiError, Drop, Hang, Message, Reply, Text, always, replies
from tests.real_codex import MODEL, Codex, bash, clean_env, codex, codex_cli

__all__ = ["codex", "codex_cli"]

pytestmark = pytest.mark.real_agent

SLEEP = "sleep 31416"
"""What a test's tool runs, so that it is known when it is gone."""
no_sleepers = none_left(SLEEP)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ApiError(400, "invalid_request_error", "the request is bad"), "bad_request"),
        (ApiError(401, "authentication_error", "the key is bad"), "auth"),
        (ApiError(429, "rate_limit_exceeded", "slower"), "rate_limit"),
        (ApiError(429, "insufficient_quota", "no credit"), "billing"),
        (ApiError(500, "server_error", "broken"), "server"),
        (ApiError(503, "server_is_overloaded", "busy"), "overloaded"),
        (ApiError(400, "context_length_exceeded", "too much"), "prompt_too_long"),
        (Drop(), "connection"),
        (Drop(Message([Text("This will never be finished, and is long.")]), 2), "connection"),
    ],
)
def test_errors_of_the_api(codex: Codex, reply: Reply, reason: str) -> None:
    """What the API refuses ends the session with its reason, and a hint where one helps; a text
    that was begun is not told."""
    done = codex.run(script=always(reply))
    assert isinstance(done.error, AgentFailed)
    assert reason == done.error.reason
    assert ("codex login" in (done.error.hint or "")) == (reason == "auth")
    assert (["SessionEnded"], "failed") == (done.tags, done.ended.outcome)


def test_a_usage_limit(codex: Codex) -> None:
    """A usage limit is told as one, with the time when it is lifted, and ends the session."""
    lifted = int(time.time()) // 60 * 60 + 7200
    done = codex.run(script=always(UsageLimit(resets_at=lifted)))
    assert isinstance(done.error, QuotaExceeded)
    assert datetime.fromtimestamp(lifted, UTC) == done.error.resets_at
    (limit,) = done.of(RateLimited)
    assert ("rejected", done.error.resets_at) == (limit.status, limit.resets_at)
    assert "quota" == done.ended.outcome


def test_a_stream_that_breaks(codex: Codex) -> None:
    """A broken stream is tried again, which is told, and its unfinished text is not."""
    clean_env(codex.home, "http://127.0.0.1:9", retries=1)
    cut = Drop(Message([Text("This will never be finished, and is long enough.")]), after_events=2)
    done = codex.run(script=replies(cut, then=Message([Text("Whole.")])))
    assert done.error is None
    assert ["Whole."] == [message.text for message in done.of(AgentMessage)]
    told = [message.text for message in done.of(SystemMessage)]
    assert [text for text in told if text.startswith("Reconnecting... 1/1")]


def test_nobody_there(codex: Codex) -> None:
    """Where nobody listens the session ends, and is tried no longer than it is bound to."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    clean_env(codex.home, address, retries=1)
    begun = time.monotonic()
    with pytest.raises(AgentFailed) as caught:
        cuggino.run(codex.agent(address).spawn(codex.options()))
    assert "connection" == caught.value.reason
    assert time.monotonic() - begun < 30


def test_an_answer_that_stalls(codex: Codex) -> None:
    """A stream that says no more ends the session after the time that the provider has."""
    provider = 'model_provider = "mock"\n[model_providers.mock]\nname = "mock"\n'
    provider += 'env_key = "MOCK_KEY"\nwire_api = "responses"\nbase_url = "none"\n'
    ends = "request_max_retries = 0\nstream_max_retries = 0\nstream_idle_timeout_ms = 500\n"
    codex.configure(provider + ends)
    done = codex.run(
        script=always(Hang(message=Message([Text("Never finished.")]), after_events=2))
    )
    assert isinstance(done.error, AgentFailed)
    assert ("connection", True) == (done.error.reason, "idle timeout" in done.error.message)


def test_without_a_key(codex: Codex) -> None:
    """A provider without its key tells how to log in."""
    done = codex.run(env={"MOCK_KEY": ""})
    assert isinstance(done.error, AgentFailed)
    assert "auth" == done.error.reason


def test_disposal_in_the_midst_of_a_tool(codex: Codex) -> None:
    """Disposal ends the program, its tool and what that has put into sessions of their own, and
    leaves no file."""
    with ResponsesServer(always(Message([bash(stubborn(SLEEP))]))) as server:
        disposed_in_a_tool(
            codex.agent(server.url).spawn(codex.options(system_prompt="x" * 200_000)), SLEEP
        )
    assert ["config.toml"] == [file.name for file in (codex.home / ".codex").glob("*.toml")]


@pytest.mark.parametrize("when", ["at once", "waiting for the model", "in a message"])
def test_disposal_at_any_time(codex: Codex, when: str) -> None:
    """A session can be ended before it has begun, while it waits, and while the model speaks."""
    speaks = Message([Text("A long word that is not finished yet.")]) if when[:2] == "in" else None
    with ResponsesServer(always(Hang(message=speaks, after_events=3))) as server:
        lane = LoopScheduler()
        agent = codex.agent(server.url)
        agent.check()
        held = agent.spawn(codex.options()).subscribe(lambda _event: None, scheduler=lane)
        if when != "at once":
            wait_for(lambda: bool(server.requests))
        held.dispose()
        lane.close()


def test_a_program_that_is_killed(codex: Codex) -> None:
    """The end of the program in the midst of a session is an error, and its tool ends too."""
    with ResponsesServer(always(Message([bash(f"setsid {SLEEP} & {SLEEP}")]))) as server:
        error = killed_in_a_tool(
            codex.agent(server.url).spawn(codex.options(guard=codex.policy())),
            SLEEP,
            is_program=lambda process: MODEL in process.cmdline() and process.ppid() == os.getpid(),
            tools=2,
        )
    assert isinstance(error, AgentFailed)
    assert ("crash", "codex was ended by SIGKILL") == (error.reason, error.message)
