"""Sessions of fake Claude programs: messages of a person, misbehavior, and cleanup."""

from __future__ import annotations

import json
import os
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from reactivex import Observable, just, never, operators as ops, throw
from reactivex.subject import Subject

import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.base import stream
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.errors import AgentFailed, AgentNotFound, LlmSessionError, StorageError
from cuggino.events import AgentMessage, LlmAgentEvent, SessionEnded, Steered, ToolCall
from cuggino.testing import no_leaks
from tests.agents.claude.fake_claude import fake_claude, recorded_call, tell_all

pytestmark = pytest.mark.usefixtures("nothing_is_left")

START = {"type": "stream_event", "event": {"type": "message_start", "message": {"id": "m"}}}


LISTENING = """
heard = [json.loads(sys.stdin.readline())]
json.dump([sys.argv[1:], heard], open("told.json", "w"))

def hear(*states):
    message = json.loads(sys.stdin.readline())
    heard.append(message)
    json.dump([sys.argv[1:], heard], open("told.json", "w"))
    for state in states:
        line(type="command_lifecycle", command_uuid=message["uuid"], state=state)
    return message["uuid"]

def start():
    line(type="stream_event", event={"type": "message_start", "message": {"id": "m"}})

def tool():
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    line(type="assistant", message={"id": "m", "content": [call]})

def result(text, cost=0.5, **more):
    used = {"model": {"inputTokens": 10, "outputTokens": 1, "costUSD": cost}}
    line(**{**RESULT, "result": text, "model_usage_since_last_result": used, **more})

def end():
    if sys.stdin.read():
        say("more input")
"""


def session(
    folder: Path,
    body: str,
    messages: Observable[str],
    on_event: Callable[[LlmAgentEvent], object] = lambda _event: None,
    **options: Any,
) -> list[LlmAgentEvent]:
    """Run a program that listens, with this `body`; return the events of its session."""
    events: list[LlmAgentEvent] = []

    def note(event: LlmAgentEvent) -> None:
        events.append(event)
        on_event(event)

    agent = ClaudeAgent(path=fake_claude(folder, LISTENING + textwrap.dedent(body)))
    given = {"prompt": "Go.", "cwd": folder, "messages": messages, **options}
    cuggino.run(agent.spawn(SpawnOptions(**given)), note)
    return events


def said_at(tag: str, text: str = "use tabs") -> tuple[Subject[str], Callable[[Any], None]]:
    """Return a subject, and a callback that emits the text on each `tag` event."""
    messages: Subject[str] = Subject()

    def on_event(event: LlmAgentEvent) -> None:
        if event.tag == tag:
            messages.on_next(text)

    return messages, on_event


def texts(events: list[LlmAgentEvent]) -> list[str]:
    """Return the texts of all messages, a person's with a leading `>`."""
    return [
        f">{event.text}" if isinstance(event, Steered) else event.text
        for event in events
        if isinstance(event, Steered | AgentMessage)
    ]


IN_MID_TURN = """
start()
tool()
hear("queued", "started")
start()
say("with tabs")
result("with tabs")
end()
"""


def test_a_message_in_mid_turn(tmp_path: Path) -> None:
    """The program gets the text verbatim, and it is announced before the model's answer."""
    messages, on_event = said_at("ToolCall", "/clear \u2028 è\nline")
    events = session(tmp_path, IN_MID_TURN, messages, on_event, prompt="/x è")
    assert [">/clear \u2028 è\nline", "with tabs"] == texts(events)
    argv, (prompt, message) = json.loads((tmp_path / "told.json").read_text())
    assert ["--input-format", "stream-json"] == argv[-2:]
    assert "/x è" == prompt["message"]["content"]
    assert "/clear \u2028 è\nline" == message["message"]["content"]
    assert [True, True] == [prompt["client_composed"], message["client_composed"]]
    assert isinstance(ended := events[-1], SessionEnded)
    assert ("completed", 0.5, 1) == (ended.outcome, ended.cost_usd, ended.num_turns)


FOLLOWED = """
    start()
    say("one")
    message = hear("queued")
    result("one")
    line(type="command_lifecycle", command_uuid=message, state="started")
    start()
"""
"""A turn, a message after its answer, and the start of the next one."""


def test_a_message_after_the_answer(tmp_path: Path) -> None:
    """It begins another turn: both cost, the second result decides, and then the input ends."""
    body = (
        FOLLOWED
        + """
    say("two")
    result("two", cost=0.25)
    end()
    """
    )
    messages, on_event = said_at("AgentMessage")
    events = session(tmp_path, body, messages, lambda e: texts([e]) == ["one"] and on_event(e))
    assert ["one", ">use tabs", "two"] == texts(events)
    assert isinstance(ended := events[-1], SessionEnded)
    assert ("completed", 0.75, 2) == (ended.outcome, ended.cost_usd, ended.num_turns)
    assert ended.usage is not None
    assert (20, 2) == (ended.usage.input_tokens, ended.usage.output_tokens)


def test_the_answer_to_a_message_decides(tmp_path: Path) -> None:
    """A session whose last turn fails has failed, even after a successful turn."""
    body = (
        FOLLOWED
        + """
    result("bad", is_error=True, api_error_status=400, terminal_reason="api_error")
    end()
    """
    )
    messages, on_event = said_at("AgentMessage")
    with pytest.raises(LlmSessionError, match="bad"):
        session(tmp_path, body, messages, on_event)


def test_a_message_that_the_model_never_saw(tmp_path: Path) -> None:
    """One that the program drops is not announced; the input ends all the same."""
    body = """
    start()
    say("one")
    message = hear("queued")
    result("one")
    line(type="command_lifecycle", command_uuid=message, state="started")
    result("over budget", cost=0, is_error=True, subtype="error_max_budget_usd")
    line(type="command_lifecycle", command_uuid=message, state="cancelled")
    end()
    """
    messages, on_event = said_at("AgentMessage")
    events = session(tmp_path, body, messages, on_event)
    assert ["one"] == texts(events)
    assert isinstance(ended := events[-1], SessionEnded)
    assert ("completed", 0.5) == (ended.outcome, ended.cost_usd)


def test_a_message_that_comes_too_late(tmp_path: Path) -> None:
    """After its result the program is given nothing any more."""
    body = """
    start()
    say("one")
    result("one")
    tool()
    end()
    """
    messages, on_event = said_at("ToolCall")
    events = session(tmp_path, body, messages, on_event)
    assert ["one"] == texts(events)
    assert any(isinstance(event, ToolCall) for event in events)


def test_a_program_that_never_says_what_becomes_of_messages(tmp_path: Path) -> None:
    """Its input ends with its result: nothing is waited for that it has not announced."""
    body = 'start()\ntool()\nhear()\nstart()\nsay("one")\nresult("one")\nend()'
    messages, on_event = said_at("ToolCall")
    assert ["one"] == texts(session(tmp_path, body, messages, on_event))


@pytest.mark.parametrize("messages", [never(), throw(ValueError("broken"))])
def test_a_session_that_is_told_nothing(tmp_path: Path, messages: Observable[str]) -> None:
    """It ends as usual; a failure of the source of messages is not the session's."""
    events = session(tmp_path, 'start()\nsay("one")\nresult("one")\nend()', messages)
    assert ["one"] == texts(events)
    assert "SessionEnded" == events[-1].tag


def test_a_question_of_the_program(tmp_path: Path) -> None:
    """A `can_use_tool` request gets an error at once, as no person can answer."""
    body = """
    for number in ("q1", "q2"):
        line(type="control_request", request_id=number, request={"subtype": "can_use_tool"})
    for _ in range(2):
        answer = json.loads(sys.stdin.readline())
        said = answer["response"]
        say(f"{answer['type']} {said['subtype']} {said['request_id']} {said['error']}")
    result("one")
    end()
    """
    said = "control_response error {} Nobody is there to ask."
    assert [said.format("q1"), said.format("q2")] == texts(session(tmp_path, body, never()))


def test_a_long_prompt(tmp_path: Path) -> None:
    """Megabytes reach a program that reads them slowly."""
    body = 'say(str(len(heard[0]["message"]["content"])))\nresult("one")\nend()'
    events = session(tmp_path, body, never(), prompt="è" * 3_000_000)
    assert ["3000000"] == texts(events)


def test_a_program_that_ends_before_it_listens(tmp_path: Path) -> None:
    """Its failure is reported as ever, however much of its input is left."""
    agent = ClaudeAgent(path=fake_claude(tmp_path, "sys.exit('no such flag')"))
    options = SpawnOptions(prompt="x" * 1_000_000, cwd=tmp_path, messages=just("hello"))
    with pytest.raises(LlmSessionError, match="no such flag"):
        cuggino.run(agent.spawn(options))


def test_disposal_with_an_open_input(tmp_path: Path) -> None:
    """A session that is ended while it listens leaves nothing behind."""
    agent = ClaudeAgent(path=fake_claude(tmp_path, LISTENING + "tool()\ntime.sleep(600)"))
    options = SpawnOptions(prompt="Go.", cwd=tmp_path, messages=never())
    seen = cuggino.run(agent.spawn(options).pipe(ops.take_while(_is_no_tool, inclusive=True)))
    assert isinstance(seen, ToolCall)


def _is_no_tool(event: LlmAgentEvent) -> bool:
    return not isinstance(event, ToolCall)


def test_an_older_program(tmp_path: Path) -> None:
    """A version that reports nothing about messages gets its prompt as ever, and none of them."""
    old = tell_all(tmp_path)
    old.write_text(old.read_text().replace("2.1.329", "2.1.328"))
    options = SpawnOptions(prompt="Go.", cwd=tmp_path, messages=just("hello"))
    cuggino.run(ClaudeAgent(path=old).spawn(options))
    told = recorded_call(tmp_path)
    assert "Go." == told["stdin"]
    assert "--input-format" not in told["argv"]


def fed(session: ClaudeSession, *lines: dict[str, Any]) -> list[LlmAgentEvent]:
    return [
        event
        for line in lines
        for event in session.feed(json.dumps(line).encode(), now=0.0)
        if isinstance(event, Steered)
    ]


def test_several_messages_at_once() -> None:
    """They are announced together, in order, and each once."""
    reader = ClaudeSession()
    ids = [json.loads(reader.say(text))["uuid"] for text in ("a", "b", "a")]
    states = [
        {"type": "command_lifecycle", "command_uuid": id_, "state": state}
        for state in ("queued", "started")
        for id_ in ids
    ]
    sub_agent = {**START, "parent_tool_use_id": "t"}
    assert [] == fed(reader, *states, *states, sub_agent)
    told = fed(reader, START, START)
    assert [Steered(text=text, to="session") for text in ("a", "b", "a")] == told


def test_ids_that_are_nobodys() -> None:
    """Lines about messages that were never sent, or malformed ones, mean nothing."""
    reader = ClaudeSession()
    reader.say("a")
    numbers: list[Any] = ["x", None, 3, {}]
    states: list[Any] = ["queued", "started", "cancelled", None, []]
    lines = [
        {"type": "command_lifecycle", "command_uuid": number, "state": state}
        for number in numbers
        for state in states
    ]
    assert [] == fed(reader, *lines, START, {"type": "result"})
    assert reader.is_over


def test_a_wrapper_that_reads_all_of_its_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The input of a silent program is closed, and later messages are ignored."""
    monkeypatch.setattr(stream, "_PATIENCE", 0.1)
    messages, on_event = said_at("AgentMessage")
    body = """
    assert not sys.stdin.read()
    start()
    say("one")
    result("one")
    """
    events = session(tmp_path, body, messages, on_event)
    assert ["one"] == texts(events)
    assert isinstance(ended := events[-1], SessionEnded)
    assert "completed" == ended.outcome


MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check that the test leaves no process, thread or file behind, nor a temporary file."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with no_leaks():
        yield
    assert [] == list(temporary.iterdir())


class Session:
    """A finished session: its events and outcome."""

    def __init__(self, folder: Path, body: str) -> None:
        self.events: list[LlmAgentEvent] = []
        self.error: Exception | None = None
        try:
            cuggino.run(spawn(folder, body), self.events.append)
        except (LlmSessionError, AgentNotFound) as error:
            self.error = error

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, AgentMessage)]

    @property
    def ended(self) -> SessionEnded:
        """Return the last event, the only one of its kind."""
        assert ["SessionEnded"] == [e.tag for e in self.events if e.tag == "SessionEnded"]
        assert isinstance(self.events[-1], SessionEnded)
        return self.events[-1]

    @property
    def crash(self) -> str:
        """Return the message of a crashed program."""
        assert isinstance(self.error, AgentFailed)
        assert "crash" == self.error.reason
        assert "failed" == self.ended.outcome
        return self.error.message


def spawn(folder: Path, body: str) -> Any:
    """Start a session with a system prompt, so that there is a file to clean up."""
    agent = ClaudeAgent(path=fake_claude(folder, body))
    return agent.spawn(SpawnOptions(prompt="Go.", cwd=folder, system_prompt="You are."))


def test_an_unterminated_last_line_counts(tmp_path: Path) -> None:
    """A result without a trailing newline is a result."""
    session = Session(tmp_path, "sys.stdout.write(json.dumps(RESULT))")
    assert session.error is None
    assert 0.5 == session.ended.cost_usd


def test_a_line_of_twenty_megabytes(tmp_path: Path) -> None:
    """A very long line is read completely."""
    session = Session(tmp_path, f"say('x' * {20 * MIB}); line(**RESULT)")
    assert session.error is None
    assert [20 * MIB] == [len(text) for text in session.texts]


def test_a_line_above_the_limit(tmp_path: Path) -> None:
    """A line above 64 MiB is a crash, and the program is terminated."""
    body = """
    say("before")
    while True:
        sys.stdout.write("x" * (1 << 20))
    """
    session = Session(tmp_path, body)
    assert ["before"] == session.texts
    assert "line" in session.crash


def test_a_result_before_an_exit_code(tmp_path: Path) -> None:
    """A successful result followed by exit code 1 still reports its cost."""
    session = Session(tmp_path, "line(**RESULT); sys.exit(1)")
    assert 0.5 == session.ended.cost_usd


def test_a_silent_program(tmp_path: Path) -> None:
    """A program that prints nothing and exits with 0 has failed."""
    session = Session(tmp_path, "pass")
    assert "claude ended without a result" == session.crash
    assert ["SessionEnded"] == [event.tag for event in session.events]


def test_a_program_that_closes_its_output_and_stays(tmp_path: Path) -> None:
    """The session ends with the process, not with its output."""
    body = """
    line(**RESULT)
    os.close(1)
    os.close(2)
    time.sleep(0.5)  # what it stays for is measured below
    os._exit(0)
    """
    session = Session(tmp_path, body)
    assert session.error is None
    assert 0.5 <= (session.ended.duration or 0)


def test_a_subscriber_that_fails(tmp_path: Path) -> None:
    """An exception in `on_next` terminates the program and reaches the caller."""
    body = "say(str(os.getpid())); time.sleep(600)"
    said: list[str] = []

    def fail(event: LlmAgentEvent) -> None:
        assert isinstance(event, AgentMessage)
        said.append(event.text)
        raise LookupError("in the subscriber")

    with pytest.raises(LookupError, match="in the subscriber"):
        cuggino.run(spawn(tmp_path, body), fail)
    assert not psutil.pid_exists(int(said[0]))


def test_a_missing_folder(tmp_path: Path) -> None:
    """A missing working directory is reported without starting a session."""
    events: list[LlmAgentEvent] = []
    agent = ClaudeAgent(path=fake_claude(tmp_path, ""))
    options = SpawnOptions(prompt="Go.", cwd=tmp_path / "gone", system_prompt="You are.")
    with pytest.raises(AgentNotFound, match="gone"):
        cuggino.run(agent.spawn(options), events.append)
    assert [] == events


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the system prompt cannot be written, the session fails and its file is removed."""

    def full(handle: int, *_args: object, **_kwargs: object) -> Any:
        os.close(handle)
        raise OSError(28, "No space left on device")

    agent = ClaudeAgent(path=fake_claude(tmp_path, "line(**RESULT)"))
    stream = agent.spawn(SpawnOptions(prompt="", cwd=tmp_path, system_prompt="You are."))
    with monkeypatch.context() as patched, pytest.raises(StorageError, match="No space left"):
        patched.setattr("cuggino.agents.base.program.os.fdopen", full)
        cuggino.run(stream)


def test_no_folder_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder for the system prompt, the session fails with advice."""
    agent = ClaudeAgent(path=fake_claude(tmp_path, "tell(1)"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    options = SpawnOptions(prompt="p", cwd=tmp_path, system_prompt="s")
    with pytest.raises(StorageError, match="cannot write a temporary file") as failure:
        cuggino.run(agent.spawn(options))
    assert failure.value.hint is not None
    assert "TMPDIR" in failure.value.hint
