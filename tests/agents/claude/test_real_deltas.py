"""Streaming by the real Claude Code CLI: text and markers arrive before the message ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from reactivex import Observable

import cuggino
from cuggino.agents.base import SpawnOptions
from cuggino.agents.claude import ClaudeAgent
from cuggino.events import AgentMessage, Event, MessageDelta, Note, SessionEnded, ToolCall
from cuggino.operators import extract_markers, marker_tags
from cuggino_cli.commands.demo import make_project
from tests.limits import LIMIT
from tests.model_script import Drop, Hang, Message, Script, Text, Thought, Tool, always, replies
from tests.model_server import ModelServer
from tests.real_claude import clean_env
from tests.real_program import nothing_leaks

pytestmark = pytest.mark.real_agent

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


def test_deltas_make_up_each_message(claude_cli: Path, tmp_path: Path) -> None:
    """With thinking, calls and several texts, the deltas before each text join to it."""
    call = Tool("Bash", {"command": "echo 1", "description": "one"})
    emoji = "Then 👍🏽 漢字, \\ud83d, `code`\n\n- a list " * 5
    seen = seen_of(
        replies(
            Message([Thought("Hm <NOTE>no</NOTE>."), Text(SAID), call]),
            then=Message([Text(emoji)]),
        ),
        claude_cli,
        tmp_path,
    )
    written, pieces = "", list[str]()
    for event in seen:
        match event:
            case MessageDelta(text=text):
                written += text
            case AgentMessage(text=text):
                assert text == written
                pieces, written = [*pieces, text], ""
            case Note() | ToolCall() | SessionEnded():
                assert written == ""
            case _:
                pass
    tail = "and the message goes on for a good while after that."
    assert ["Look,", tail, emoji.strip()] == pieces
    assert [Note(content="this is new")] == [event for event in seen if isinstance(event, Note)]


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
