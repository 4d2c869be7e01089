"""Messages of a person to the real Claude Code CLI and a scripted model."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from reactivex import never
from reactivex.subject import Subject

from cuggino.config import Config, configured_policy, configured_sandbox
from cuggino.errors import AgentFailed
from cuggino.events import AgentMessage, LlmAgentEvent, Steered, ToolCall, ToolResult
from tests.limits import LIMIT
from tests.model_script import Block, Text, Tool, always
from tests.processes.subscribers import eventually
from tests.real_claude import Claude, bash, needs_sandbox

pytestmark = pytest.mark.real_agent


def waits(claude: Claude, said: str) -> Tool:
    """Return a command that runs until the program has taken a message with these words.

    The program writes both to its transcript, so the words are not in the command.
    """
    grep = f"grep -rqs '[{said[0]}]{said[1:]}' '{transcripts(claude)}'"
    return bash(f"until {grep}; do sleep 0.05; done; echo out")


def transcripts(claude: Claude) -> Path:
    return claude.home / ".claude" / "projects"


def has_taken(claude: Claude, said: str) -> bool:
    """Return whether the program has taken a message with these words."""
    return any(
        said in file.read_text(errors="replace") for file in transcripts(claude).rglob("*.jsonl")
    )


class Person:
    """A person who sends messages once, at the first event of a kind."""

    def __init__(self, kind: type[LlmAgentEvent], *texts: str) -> None:
        self.messages: Subject[str] = Subject()
        self._kind, self._texts = kind, texts

    def __call__(self, event: LlmAgentEvent) -> None:
        if isinstance(event, self._kind):
            texts, self._texts = self._texts, ()
            for text in texts:
                self.messages.on_next(text)


def test_a_message_while_a_tool_runs(claude: Claude) -> None:
    """The very next request to the model contains it, verbatim and in the same turn."""
    person = Person(ToolCall, "/clear the table, @app.py è\n\nand use tabs", "mind the gap")
    command = waits(claude, "mind the gap")
    done = claude.run(command, Text("one"), messages=person.messages, on_event=person)
    assert ["ToolCall", "ToolResult", "Steered", "Steered", "AgentMessage", "SessionEnded"] == (
        done.tags
    )
    first, second = done.requests
    assert "use tabs" not in first.messages_text
    for event in done.of(Steered):
        assert event.text in second.messages_text
    assert "old = 1" not in second.messages_text
    assert (0.012, 2000, 200) == paid(done)
    assert 2 == done.ended.num_turns


def test_a_message_during_the_last_answer(claude: Claude) -> None:
    """The session takes another turn; both are charged once, and the last answer counts."""
    asked, said = threading.Event(), threading.Event()
    messages: Subject[str] = Subject()

    def answer() -> Block:
        asked.set()
        assert said.wait(LIMIT)
        return Text("one")

    def say() -> None:
        assert asked.wait(LIMIT)
        messages.on_next("use tabs")
        assert eventually(lambda: has_taken(claude, "use tabs"))
        said.set()

    person = threading.Thread(target=say)
    person.start()
    done = claude.run(answer, Text("two"), messages=messages)
    person.join()
    assert ["AgentMessage", "Steered", "AgentMessage", "SessionEnded"] == done.tags
    assert ["one", "two"] == [message.text for message in done.of(AgentMessage)]
    assert "use tabs" in done.conversation
    assert (0.012, 2000, 200) == paid(done)


def test_a_message_while_a_sub_agent_works(claude: Claude) -> None:
    """The agent itself gets the message, when its sub-agent has ended."""
    helper = [waits(claude, "use tabs"), Text("helped")]
    commands: list[ToolCall] = []

    def on_event(event: LlmAgentEvent) -> None:
        if isinstance(event, ToolCall) and event.name == "Bash":
            commands.append(event)
            person(event)

    person = Person(ToolCall, "use tabs")
    done = claude.run(
        Claude.delegate, Text("one"), helper=helper, messages=person.messages, on_event=on_event
    )
    assert [Steered(text="use tabs", to="session")] == done.of(Steered)
    assert ["use tabs" in request.messages_text for request in done.requests] == [
        *(False, False, False),
        True,
    ]
    assert commands


def test_a_session_that_nobody_speaks_to(claude: Claude) -> None:
    """With and without a source of messages the events, the requests and the cost are the same."""
    turns = (bash("echo a"), Text("one"))
    quiet, open_ = claude.run(*turns), claude.run(*turns, messages=never())
    assert quiet.tags == open_.tags
    assert quiet.conversation == open_.conversation
    assert paid(quiet) == paid(open_)


def test_a_guarded_session_takes_messages(claude: Claude) -> None:
    """The guard stays live in every turn."""
    person = Person(ToolResult, "use tabs")

    def denied() -> Block:
        assert eventually(lambda: has_taken(claude, "use tabs"))
        return bash("rm -rf .specs")

    turns = (bash("echo a"), denied, Text("one"))
    done = claude.run(
        *turns, messages=person.messages, on_event=person, guard=claude.policy(), retries=0
    )
    assert [Steered(text="use tabs", to="session")] == done.of(Steered)
    assert 1 == done.tags.count("GuardDenied")
    assert claude.read(".specs/task.md")


def test_a_host_that_the_sandbox_does_not_know(claude: Claude) -> None:
    """The program asks for permission; no person can answer, so the host is refused."""
    needs_sandbox()
    reach = "import urllib.request as r; r.urlopen('https://example.com')"
    config = Config()
    policy = configured_policy(config, "implementing", project=claude.project)
    done = claude.run(
        bash(f'python3 -c "{reach}" 2>&1 | tail -n 1'),
        Text("one"),
        messages=never(),
        guard=policy,
        sandbox=configured_sandbox(config, policy),
    )
    (reached,) = done.of(ToolResult)
    assert "403" in reached.output or "denied" in reached.output


def test_a_failure_with_an_open_input(claude: Claude) -> None:
    """An error of the API ends the session as ever."""
    script = always(claude.failure("bad_request"))
    with_messages = claude.run(script=script, messages=never())
    without = claude.run(script=script)
    assert isinstance(with_messages.error, AgentFailed)
    assert isinstance(without.error, AgentFailed)
    assert (with_messages.error.reason, with_messages.tags) == (without.error.reason, without.tags)


def test_a_resumed_session_takes_messages(claude: Claude) -> None:
    """Each process of a session has its own messages, and its own cost."""
    first = claude.run(Text("one"), messages=never())
    person = Person(ToolCall, "use tabs")
    again = claude.run(
        Text("one"),
        waits(claude, "use tabs"),
        Text("two"),
        messages=person.messages,
        on_event=person,
        resume_session_id=first.ended.session_id,
    )
    assert ["ToolCall", "ToolResult", "Steered", "AgentMessage", "SessionEnded"] == again.tags
    assert "use tabs" in again.conversation
    assert (0.012, 2000, 200) == paid(again)


def paid(done: Any) -> tuple[float, int, int]:
    usage = done.ended.usage
    return round(done.ended.cost_usd, 6), usage.input_tokens, usage.output_tokens
