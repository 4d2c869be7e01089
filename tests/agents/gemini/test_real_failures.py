"""The real Gemini CLI when something fails it: which error, and nothing is left."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import reactivex as rx

import cuggino
from cuggino.errors import AgentFailed, QuotaExceeded
from cuggino.events import AgentMessage, Event, MessageDelta, RateLimited
from cuggino.operators import LoopScheduler
from tests.agents.sleepers import (
    disposed_in_a_tool,
    killed_in_a_tool,
    none_left,
    stubborn,
    wait_for,
)
from tests.model_gemini import GeminiServer, usage_limit
from tests.model_script import ApiError, Drop, Hang, Message, Reply, Text, always, replies
from tests.real_gemini import Gemini, bash, gemini, gemini_cli

__all__ = ["gemini", "gemini_cli"]

pytestmark = pytest.mark.real_agent

SLEEP = "sleep 31417"
"""What a test's tool runs, so that it is known when it is gone."""
no_sleepers = none_left(SLEEP)

ONCE: dict[str, Any] = {"general": {"maxAttempts": 1}}
"""Settings of a session that asks the API once, as its patience is none of the test's matter."""


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No folder of a session is left."""
    temp = tmp_path / "temp"
    temp.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    yield
    assert [] == list(temp.iterdir())


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ApiError(400, "", "the request is bad"), "bad_request"),
        (ApiError(401, "", "the key is bad"), "auth"),
        (ApiError(429, "", "too many requests"), "rate_limit"),
        (ApiError(500, "", "it is broken"), "server"),
        (ApiError(503, "", "The model is overloaded."), "overloaded"),
    ],
)
def test_errors_of_the_api(gemini: Gemini, reply: Reply, reason: str) -> None:
    """What the API refuses ends the session with its reason, and a hint where one helps."""
    done = gemini.run(script=always(reply), settings=ONCE)
    assert isinstance(done.error, AgentFailed)
    assert reason == done.error.reason
    assert ("GEMINI_API_KEY" in (done.error.hint or "")) == (reason == "auth")
    assert ("failed", None) == (done.ended.outcome, done.ended.usage)


@pytest.mark.parametrize("after", ["3600s", None])
def test_a_usage_limit(gemini: Gemini, after: str | None) -> None:
    """A limit is told with the time at which it is lifted, if that is told, and not waited for."""
    before = datetime.now(UTC)
    done = gemini.run(script=always(usage_limit(after)))
    assert isinstance(done.error, QuotaExceeded)
    assert "quota" == done.ended.outcome
    assert ["rejected"] == [limit.status for limit in done.of(RateLimited)]
    if after is None:
        assert done.error.resets_at is None
    else:
        assert done.error.resets_at is not None
        late = done.error.resets_at - before - timedelta(hours=1)
        assert timedelta() <= late < timedelta(minutes=2)


def test_an_error_that_passes(gemini: Gemini) -> None:
    """One failure of the API is tried again."""
    then = Message([Text("Whole.")])
    done = gemini.run(script=replies(ApiError(500, "", "it is broken"), then=then))
    assert done.error is None
    assert ["Whole."] == [message.text for message in done.of(AgentMessage)]


def test_no_connection(gemini: Gemini) -> None:
    """An API that cannot be reached is told after a bounded time."""
    env = {"GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9"}
    started = time.monotonic()
    done = gemini.run(env=env)
    assert isinstance(done.error, AgentFailed)
    assert "connection" == done.error.reason
    assert time.monotonic() - started < 90


def test_a_stream_that_always_breaks(gemini: Gemini) -> None:
    """A message that is never completed is told in deltas alone, and its session fails."""
    cut = Drop(Message([Text("This will never be finished, and is long enough.")]), after_events=2)
    done = gemini.run(script=always(cut))
    assert isinstance(done.error, AgentFailed)
    assert "connection" == done.error.reason
    assert ([], True) == (done.of(AgentMessage), bool(done.of(MessageDelta)))


def test_without_an_account(gemini: Gemini) -> None:
    """Without a login it tells how to come by one."""
    done = gemini.run(env={"GEMINI_API_KEY": "", "GOOGLE_GEMINI_BASE_URL": ""})
    assert isinstance(done.error, AgentFailed)
    assert "auth" == done.error.reason
    assert "GEMINI_API_KEY" in (done.error.hint or "")


def test_disposal_in_the_midst_of_a_tool(gemini: Gemini) -> None:
    """Disposal ends the program, its tool and what that has put into sessions of their own."""
    with GeminiServer(always(Message([bash(stubborn(SLEEP))]))) as server:
        disposed_in_a_tool(gemini.agent(server.url).spawn(gemini.options()), SLEEP)


@pytest.mark.parametrize("when", ["at once", "starting", "in a message"])
def test_disposal_at_any_time(gemini: Gemini, when: str) -> None:
    """A session can be ended before it has begun, while it begins, and while a message comes."""
    half = Hang(message=Message([Text("This is a long text, which will not end.")]), after_events=1)
    with GeminiServer(always(half)) as server:
        lane = LoopScheduler()
        agent = gemini.agent(server.url)
        agent.check()
        seen: list[Event] = []
        held = agent.spawn(gemini.options()).subscribe(seen.append, scheduler=lane)
        if when == "starting":
            threading.Event().wait(0.5)
        elif when == "in a message":
            wait_for(lambda: any(isinstance(event, MessageDelta) for event in seen))
        held.dispose()
        lane.close()


def test_a_program_that_is_killed(gemini: Gemini) -> None:
    """The end of the program in the midst of a session is an error, and its tool ends too."""
    with GeminiServer(always(Message([bash(SLEEP)]))) as server:
        error = killed_in_a_tool(
            gemini.agent(server.url).spawn(gemini.options()),
            SLEEP,
            is_program=lambda process: (
                process.name() == "node" and "--output-format" in process.cmdline()
            ),
        )
    assert isinstance(error, AgentFailed)
    assert ("crash", "gemini was ended by SIGKILL") == (error.reason, error.message)


def test_several_at_once(gemini: Gemini) -> None:
    """Sessions side by side keep apart."""
    with GeminiServer(lambda r: Message([Text(r.messages_text.rpartition("\n")[2])])) as server:
        streams = [
            gemini.agent(server.url).spawn(gemini.options(prompt=f"Word {n}")) for n in range(2)
        ]
        texts: list[str] = []

        def keep(event: Event) -> None:
            if isinstance(event, AgentMessage):
                texts.append(event.text)

        cuggino.run(rx.merge(*streams), keep)
    assert ["Word 0", "Word 1"] == sorted(texts)
