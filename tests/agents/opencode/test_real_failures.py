"""The real OpenCode CLI when something fails it: which error, and nothing is left."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from typing_extensions import override

from cuggino.errors import AgentFailed, QuotaExceeded
from cuggino.events import RateLimited, SystemMessage
from cuggino.operators import LoopScheduler
from tests.agents.sleepers import (
    disposed_in_a_tool,
    killed_in_a_tool,
    none_left,
    stubborn,
    wait_for,
)
from tests.model_openai import OpenAiServer, _OpenAiHandler
from tests.model_script import ApiError, Drop, Hang, Message, Reply, Text, always
from tests.real_opencode import OpenCode, bash, opencode, opencode_cli

__all__ = ["opencode", "opencode_cli"]

pytestmark = pytest.mark.real_agent

SLEEP = "sleep 27182"
"""What a test's tool runs, so that it is known when it is gone."""
no_sleepers = none_left(SLEEP)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ApiError(400, "invalid_request_error", "the request is bad"), "bad_request"),
        (ApiError(401, "authentication_error", "the key is bad"), "auth"),
    ],
)
def test_errors_of_the_api(opencode: OpenCode, reply: Reply, reason: str) -> None:
    """What the API refuses ends the session with its reason, and a hint where one helps."""
    done = opencode.run(script=always(reply))
    assert isinstance(done.error, AgentFailed)
    assert (reason, 1) == (done.error.reason, len(done.requests))
    assert ("auth login" in (done.error.hint or "")) == (reason == "auth")
    assert ("failed", None) == (done.ended.outcome, done.ended.usage)


def test_an_unknown_model(opencode: OpenCode) -> None:
    """A model that the program does not know is told by name."""
    done = opencode.run(model="mock/nothing")
    assert isinstance(done.error, AgentFailed)
    assert ("bad_request", True) == (done.error.reason, "mock/nothing" in done.error.message)


def test_a_limit_for_hours(opencode: OpenCode) -> None:
    """A limit that is lifted in hours ends the session at once, with its time."""
    headers = {"retry-after": "7200"}
    done = opencode.run(script=always(ApiError(429, "rate_limit_error", "slow down", headers)))
    assert isinstance(done.error, QuotaExceeded)
    assert done.error.resets_at is not None
    left = (done.error.resets_at - datetime.now(UTC)).total_seconds()
    assert 7000 < left <= 7200
    assert ["rejected"] == [limit.status for limit in done.of(RateLimited)]
    assert ("quota", 1) == (done.ended.outcome, len(done.requests))


def test_a_usage_limit(opencode: OpenCode) -> None:
    """A limit that is told in words ends the session at once, and no time is made up."""
    text = "You have hit your usage limit"
    done = opencode.run(script=always(ApiError(429, "usage_limit_reached", text)))
    assert isinstance(done.error, QuotaExceeded)
    assert (text, None, 1) == (done.error.message, done.error.resets_at, len(done.requests))
    assert [text] == [m.text.rpartition(": ")[2] for m in done.of(SystemMessage)[1:]]


class _Cutting(_OpenAiHandler):
    """An answer that breaks off ends as if it were whole."""

    @override
    def _reset(self) -> None:
        self.wfile.write(b"0\r\n\r\n")


def test_answers_that_break_off(opencode: OpenCode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program asks again for ever when answers break off: that is ended, and named."""
    monkeypatch.setattr("tests.model_openai._OpenAiHandler", _Cutting)
    cut = Drop(Message([Text("This will never be finished.")]), after_events=2)
    done = opencode.run(script=always(cut))
    assert isinstance(done.error, AgentFailed)
    assert ("connection", "the model's answer broke off 3 times") == (
        done.error.reason,
        done.error.message,
    )


def test_disposal_in_the_midst_of_a_tool(opencode: OpenCode) -> None:
    """Disposal ends the program, its tool and what that has put into sessions of their own."""
    with OpenAiServer(always(Message([bash(stubborn(SLEEP))]))) as server:
        disposed_in_a_tool(
            opencode.agent(server.url).spawn(opencode.options(guard=opencode.policy())), SLEEP
        )
    assert [] == list((opencode.home / "tmp").glob("cuggino-*"))


@pytest.mark.parametrize("when", ["starting", "in a message"])
def test_disposal_at_any_time(opencode: OpenCode, when: str) -> None:
    """A session can be ended while it begins, and in the midst of a message."""
    hang = Hang(message=Message([Text("This takes its time.")]), after_events=2)
    with OpenAiServer(always(hang)) as server:
        lane = LoopScheduler()
        agent = opencode.agent(server.url)
        agent.check()
        seen: list[str] = []
        held = agent.spawn(opencode.options()).subscribe(
            lambda event: seen.append(event.tag), scheduler=lane
        )
        if when == "in a message":
            wait_for(lambda: "MessageDelta" in seen)
        held.dispose()
        lane.close()


def test_a_program_that_is_killed(opencode: OpenCode) -> None:
    """The end of the program in the midst of a session is an error, and its tool ends too."""
    with OpenAiServer(always(Message([bash(SLEEP)]))) as server:
        error = killed_in_a_tool(
            opencode.agent(server.url).spawn(opencode.options()),
            SLEEP,
            is_program=lambda process: process.cmdline()[:2] == [str(opencode.program), "run"],
        )
    assert isinstance(error, AgentFailed)
    assert ("crash", "opencode was ended by SIGKILL") == (error.reason, error.message)
