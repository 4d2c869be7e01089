"""The real Claude Code CLI when the API fails it: which error, whose money, and nothing left."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from reactivex import Observable

import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.claude import ClaudeAgent
from cuggino.errors import AgentFailed, BudgetExceeded, LlmSessionError, QuotaExceeded
from cuggino.events import (
    AgentMessage,
    Done,
    Event,
    MessageDelta,
    PingEvent,
    RateLimited,
    SessionEnded,
    UsageUpdate,
    is_llm_terminal_marker_event,
)
from cuggino.operators import extract_markers, marker_tags, until_terminal
from cuggino.sources import process_lines
from cuggino.testing import no_leaks
from tests.agents.claude.claude_lines import kind
from tests.model_script import (
    SUBSCRIPTION,
    ApiError,
    Drop,
    Hang,
    Message,
    Reply,
    Script,
    Text,
    always,
    overloaded,
    rate_limited,
    replies,
    server_error,
    usage_limit,
)
from tests.model_server import ModelServer
from tests.real_claude import clean_env

pytestmark = pytest.mark.real_agent

ANSWER = Message([Text("<DONE>all of it</DONE>")])
LONG = Message([Text("A text that is longer than one delta of the stream, so it can be cut.")])
NO_RETRY = {"CLAUDE_CODE_MAX_RETRIES": "0"}


@dataclass(frozen=True)
class Session:
    """What one session with the program gave."""

    events: list[Event]
    error: LlmSessionError | None
    requests: int

    @property
    def ended(self) -> SessionEnded:
        assert isinstance(self.events[-1], SessionEnded)
        return self.events[-1]

    @property
    def tags(self) -> list[str]:
        return [
            event.tag for event in self.events if not isinstance(event, PingEvent | MessageDelta)
        ]


@dataclass(frozen=True)
class Claude:
    """The program as an agent, with a project and a home of its own."""

    program: Path
    folder: Path

    def agent(self, server: ModelServer, env: Mapping[str, str]) -> ClaudeAgent:
        clean = clean_env(self.folder / "home", server.url)
        return ClaudeAgent(path=self.program, env={**clean, "CLAUDE_CODE_MAX_RETRIES": "1", **env})

    def options(self, **changes: Any) -> SpawnOptions:
        skip: dict[str, Any] = {"dangerously_skip_permissions": True}
        return SpawnOptions(**{"prompt": "Go.", "cwd": self.folder, **skip, **changes})

    def run(self, script: Script, env: Mapping[str, str] | None = None, **changes: Any) -> Session:
        events: list[Event] = []
        error: LlmSessionError | None = None
        with ModelServer(script) as server:
            try:
                agent = self.agent(server, env or {})
                cuggino.run(agent.spawn(self.options(**changes)), events.append)
            except LlmSessionError as failure:
                error = failure
            return Session(events, error, len(server.requests))


@pytest.fixture
def claude(claude_cli: Path, tmp_path: Path) -> Iterator[Claude]:
    cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
    with no_leaks():
        yield Claude(claude_cli, tmp_path)


@pytest.mark.parametrize(
    ("reply", "env", "reason", "requests"),
    [
        (rate_limited(1), {}, "rate_limit", 2),
        (rate_limited(3600), {}, "rate_limit", 1),
        (overloaded(), NO_RETRY, "overloaded", 1),
        (server_error(), NO_RETRY, "server", 1),
        (Drop(), NO_RETRY, "connection", 1),
        # It asks once more without streaming.
        (Drop(LONG, after_events=4), NO_RETRY, "connection", 2),
        (Hang(), {**NO_RETRY, "API_TIMEOUT_MS": "1000"}, "connection", 1),
    ],
    ids=["429", "429-far", "529", "500", "reset", "cut", "silence"],
)
def test_failures_that_may_pass(
    claude: Claude, reply: Reply, env: dict[str, str], reason: str, requests: int
) -> None:
    """What the program could not overcome has its reason, cost nothing, and can be resumed."""
    session = claude.run(always(reply), env)
    assert reason == kind(session.error)
    assert requests == session.requests
    assert ("failed", 0.0) == (session.ended.outcome, session.ended.cost_usd)
    assert session.ended.session_id is not None
    assert "AgentMessage" not in session.tags


@pytest.mark.parametrize("reply", [rate_limited(1), Drop(LONG, after_events=4)], ids=["429", "cut"])
def test_failures_that_the_program_overcomes(claude: Claude, reply: Reply) -> None:
    """A failure that the program overcomes itself is no failure of the session."""
    session = claude.run(replies(reply, then=ANSWER))
    assert session.error is None
    retried = ["SystemMessage", "SystemMessage", "AgentMessage", "UsageUpdate", "SessionEnded"]
    assert (retried, 2) == (session.tags, session.requests)
    assert session.ended.outcome == "completed"
    # The attempt that was cut is not counted.
    assert (1000, 100) == tokens(session)


def test_a_usage_limit_of_a_subscription(claude: Claude) -> None:
    """A subscription's limit is a quota with the second at which it is lifted."""
    resets_at = int(time.time()) + 3 * 3600
    session = claude.run(always(usage_limit(resets_at)), SUBSCRIPTION)
    assert isinstance(session.error, QuotaExceeded)
    assert datetime.fromtimestamp(resets_at, UTC) == session.error.resets_at
    assert ("quota", 0.0) == (session.ended.outcome, session.ended.cost_usd)
    assert ["five_hour"] == [e.limit for e in session.events if isinstance(e, RateLimited)]


def test_a_usage_limit_of_a_key(claude: Claude) -> None:
    """With a key the limit is known by the words of the failure, and told before the end."""
    message = "You've hit your usage limit. It resets in 2 hours."
    session = claude.run(always(usage_limit(0, message)), NO_RETRY)
    assert isinstance(session.error, QuotaExceeded)
    assert session.error.resets_at is not None
    left = session.error.resets_at - datetime.now(UTC)
    assert 7000 < left.total_seconds() < 7200
    assert "quota" == session.ended.outcome
    assert RateLimited(status="rejected", resets_at=session.error.resets_at) == session.events[-2]


def test_a_limit_for_a_key_that_somebody_set(claude: Claude) -> None:
    """A limit that is told as a bad request is a quota too."""
    message = "You have reached your specified API usage limits."
    session = claude.run(always(ApiError(400, "invalid_request_error", message)))
    assert kind(session.error) == "QuotaExceeded"


def test_too_many_requests_are_no_usage_limit(claude: Claude) -> None:
    """With a key, the words for too many requests a minute are a failure that may pass."""
    session = claude.run(always(usage_limit(0)), NO_RETRY)
    assert kind(session.error) == "rate_limit"
    assert "RateLimited" not in session.tags


def test_the_model_may_quote_a_limit(claude: Claude) -> None:
    """The words of a limit are no limit when the model says them."""
    said = Text("You've hit your 5-hour limit · resets 3pm (UTC)")
    session = claude.run(always(Message([said])))
    assert session.error is None
    assert session.ended.outcome == "completed"


def test_silence_in_a_message(claude: Claude) -> None:
    """A program that hears nothing more is ended by disposal, with all that it started."""
    seen: list[Event] = []
    with ModelServer(always(Hang(message=LONG, after_events=4))) as server:
        agent = claude.agent(server, {})
        stream = agent.spawn(claude.options())
        begun = threading.Event()

        def note(event: Event) -> None:
            seen.append(event)
            if isinstance(event, PingEvent):
                begun.set()

        subscription = stream.subscribe(note)
        assert begun.wait(30)
        subscription.dispose()
    assert not any(isinstance(event, AgentMessage | SessionEnded) for event in seen)


def test_a_budget_that_an_answer_exceeds(claude: Claude) -> None:
    """The answer that goes beyond the budget comes, and then the error, with all its cost."""
    session = claude.run(
        always(Message([Text("Dear.")], input_tokens=50_000, output_tokens=10_000)),
        max_budget_usd=0.1,
    )
    assert isinstance(session.error, BudgetExceeded)
    assert ["Dear."] == [e.text for e in session.events if isinstance(e, AgentMessage)]
    assert "budget" == session.ended.outcome
    assert session.ended.cost_usd is not None
    assert session.ended.cost_usd > 0.1
    assert (50_000, 10_000) == tokens(session)


def test_a_marker_beyond_the_budget_counts(claude: Claude) -> None:
    """The marker of an answer that was too dear counts: what comes behind it is not seen."""
    dear = Message(ANSWER.blocks, input_tokens=50_000, output_tokens=10_000)
    seen: list[Event] = []
    with ModelServer(always(dear)) as server:
        session = claude.agent(server, {}).spawn(claude.options(max_budget_usd=0.1))
        stage: Observable[Event] = cast("Observable[Event]", session).pipe(
            extract_markers(marker_tags(Done)),
            until_terminal(
                is_llm_terminal_marker_event,
                linger=30.0,
                settle=lambda event: isinstance(event, SessionEnded),
            ),
        )
        cuggino.run(stage, seen.append)
    assert Done(content="all of it") == seen[-1]
    assert ["budget"] == [event.outcome for event in seen if isinstance(event, SessionEnded)]


def test_a_failed_session_is_gone_on_with(claude: Claude) -> None:
    """A session that an overloaded API ended goes on by its id when the API answers again."""
    script = replies(overloaded(), then=ANSWER)
    events: list[Event] = []
    with ModelServer(script) as server:
        agent = claude.agent(server, NO_RETRY)
        with pytest.raises(AgentFailed):
            cuggino.run(agent.spawn(claude.options(prompt="Do the work.")), events.append)
        assert isinstance(events[-1], SessionEnded)
        again = claude.options(prompt="Go on.", resume_session_id=events[-1].session_id)
        last = cuggino.run(agent.spawn(again))
        assert isinstance(last, SessionEnded)
        assert last.outcome == "completed"
        assert last.cost_usd == pytest.approx(0.006)
        assert "Do the work." in server.requests[1].messages_text


def tokens(session: Session) -> tuple[int, int]:
    """The last count of the running session, which is also that of its end."""
    last = [event.usage for event in session.events if isinstance(event, UsageUpdate)][-1]
    assert last == session.ended.usage
    return last.input_tokens, last.output_tokens
