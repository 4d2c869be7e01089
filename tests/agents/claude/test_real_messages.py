"""What the real Claude Code CLI streams, and messages of a person to it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from reactivex import Observable, never
from reactivex.subject import Subject

import cuggino
from cuggino.agents.base import SpawnOptions
from cuggino.agents.claude import ClaudeAgent
from cuggino.config import Config, configured_policy, configured_sandbox
from cuggino.errors import AgentFailed
from cuggino.events import (
    AgentMessage,
    Event,
    LlmAgentEvent,
    MessageDelta,
    Note,
    SessionEnded,
    Steered,
    ToolCall,
    ToolResult,
)
from cuggino.operators import extract_markers, marker_tags
from cuggino_cli.commands.demo import make_project
from tests.limits import LIMIT
from tests.model_script import (
    Block,
    Drop,
    Hang,
    Message,
    Script,
    Text,
    Tool,
    always,
    replies,
)
from tests.model_server import ModelServer
from tests.processes.subscribers import eventually
from tests.real_claude import Claude, bash, clean_env, needs_sandbox
from tests.real_program import nothing_leaks

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


SAID = "Look, <NOTE>this is new</NOTE> and the message goes on for a good while after that."
NOTED = 5
"""The number of stream events that contain the whole marker but not the whole message."""


def spawned(server: ModelServer, program: Path, folder: Path) -> Observable[Event]:
    env = {**clean_env(folder / "home", server.url), "CLAUDE_CODE_MAX_RETRIES": "1"}
    agent = ClaudeAgent(path=program, env=env)
    options = SpawnOptions(prompt="Go.", cwd=folder, dangerously_skip_permissions=True)
    session = cast("Observable[Event]", agent.spawn(options))
    return session.pipe(extract_markers(marker_tags(Note)))


def seen_of(
    script: Script, program: Path, folder: Path, on_event: Callable[[Event], object] = bool
) -> list[Event]:
    seen: list[Event] = []

    def keep(event: Event) -> None:
        seen.append(event)
        on_event(event)

    with ModelServer(script) as server:
        cuggino.run(spawned(server, program, folder), keep)
    return seen


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    with nothing_leaks():
        yield


def first(wanted: Callable[[Event], bool], stream: Observable[Event]) -> list[Event]:
    """Return the events up to the first wanted one, then dispose of the session."""
    seen: list[Event] = []
    found = threading.Event()

    def keep(event: Event) -> None:
        if not found.is_set():
            seen.append(event)
            if wanted(event):
                found.set()

    subscription = stream.subscribe(keep)
    assert found.wait(LIMIT)
    subscription.dispose()
    return seen


def test_a_marker_comes_while_its_message_is_written(claude_cli: Path, tmp_path: Path) -> None:
    """Text and markers of a message are emitted before the model has finished it."""
    with ModelServer(always(Hang(message=Message([Text(SAID)]), after_events=NOTED))) as server:
        stream = spawned(server, claude_cli, tmp_path)
        seen = first(lambda event: isinstance(event, Note), stream)
    told = [event for event in seen if isinstance(event, MessageDelta | AgentMessage | Note)]
    assert isinstance(told[0], MessageDelta)
    message_id = told[0].message_id
    assert [AgentMessage(text="Look,", message_id=message_id), Note(content="this is new")] == [
        event for event in told if not isinstance(event, MessageDelta)
    ]
    assert "Look," == "".join(event.text for event in told if isinstance(event, MessageDelta))


def test_a_restarted_message(claude_cli: Path, tmp_path: Path) -> None:
    """A message interrupted after its marker is restarted, and the marker counts once."""
    noted = threading.Event()

    def look(event: Event) -> None:
        if isinstance(event, Note):
            noted.set()

    broken = Drop(Message([Text(SAID)]), after_events=NOTED, once=noted)
    seen = seen_of(replies(broken, then=Message([Text(SAID)])), claude_cli, tmp_path, look)
    texts = [event for event in seen if isinstance(event, AgentMessage)]
    tail = "and the message goes on for a good while after that."
    assert ["Look,", "Look,", tail] == [event.text for event in texts]
    assert texts[0].message_id != texts[1].message_id == texts[2].message_id
    assert [Note(content="this is new")] == [event for event in seen if isinstance(event, Note)]
    assert seen.index(texts[1]) > seen.index(Note(content="this is new"))
    assert isinstance(seen[-1], SessionEnded)
    assert "completed" == seen[-1].outcome


def test_the_command_line_shows_text_as_it_comes(claude_cli: Path, tmp_path: Path) -> None:
    """`cuggino run --verbose` prints a line while its message is still incomplete."""
    folder = make_project(str(tmp_path / "demo"))
    config = cuggino.load_config(folder)
    cuggino.save_config(folder, config.model_copy(update={"agent_path": str(claude_cli)}))
    said = Message([Text("The first line of a plan,\nand a second one that is not complete.")])
    with ModelServer(always(Hang(message=said, after_events=NOTED))) as server:
        env = {**clean_env(tmp_path / "home", server.url), "CUGGINO_PYTHON": sys.executable}
        command = [sys.executable, "-m", "cuggino_cli", "run", "--focus", "it", "--verbose"]
        with subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ) as running:
            assert running.stdout is not None
            ended = threading.Timer(LIMIT, running.kill)
            ended.start()
            lines: list[str] = []
            for line in running.stdout:
                lines.append(line.rstrip("\n"))
                if "first line" in line:
                    running.send_signal(signal.SIGINT)
                    break
            rest = running.stdout.read()
            ended.cancel()
    assert lines[-1].endswith(" The first line of a plan,")
    assert "second" not in rest
    assert running.returncode == 130
