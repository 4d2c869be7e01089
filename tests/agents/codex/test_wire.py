"""Parsing `codex exec --json`: real output of the program as events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.agents.codex.wire import CodexSession
from cuggino.errors import AgentFailed, LlmSessionError
from tests.vectors import DATA

NOW = 1_800_000_000.0
PROJECT = "/sandbox/codex1"


def capture(name: str) -> list[bytes]:
    """Return the recorded lines of the program."""
    return (DATA / "codex" / f"{name}.jsonl").read_bytes().splitlines()


def read(
    lines: list[bytes], session: CodexSession | None = None, *, exit_code: int = 0, stderr: str = ""
) -> tuple[list[ev.LlmAgentEvent], ev.SessionEnded, LlmSessionError | None]:
    """Return the events of these lines without keepalives, the outcome and the error."""
    session = session or CodexSession()
    events = [event for line in lines for event in session.feed(line, now=NOW)]
    ended, error = session.end(exit_code=exit_code, stderr_tail=stderr, duration=1.0, now=NOW)
    return [event for event in events if not isinstance(event, ev.PingEvent)], ended, error


def item(state: str, **fields: Any) -> bytes:
    return json.dumps({"type": f"item.{state}", "item": fields}).encode()


def test_a_session() -> None:
    """Text, thinking, commands, files and tokens are emitted in order."""
    used = ev.Usage(input_tokens=2400, output_tokens=150, cache_read_tokens=600)
    events, ended, error = read(capture("ok"))
    hello: Any = {"file_path": f"{PROJECT}/hello.txt", "kind": "add"}
    assert [
        ev.SystemMessage(text="Session initialized"),
        ev.Thinking(text="I should look first."),
        ev.AgentMessage(
            text="Starting work. <NOTE>about to write hello.txt</NOTE>", message_id="item_1"
        ),
        ev.ToolCall(name="Bash", input={"command": "echo SHELL_OK; pwd"}, id="item_2"),
        ev.ToolResult(name="item_2", output=f"SHELL_OK\n{PROJECT}\n"),
        ev.AgentMessage(text="Now the file.", message_id="item_3"),
        ev.ToolCall(name="Write", input=hello, id="item_4"),
        ev.ToolResult(name="item_4", output="added"),
        ev.AgentMessage(
            text="All done. <NOTE>wrote hello.txt</NOTE>\n<DONE>task finished</DONE>",
            message_id="item_5",
        ),
        ev.UsageUpdate(usage=used),
    ] == events
    thread = "01a1fbf7-1dc3-7f32-8c34-f3ec250f773c"
    assert (
        ev.SessionEnded(outcome="completed", usage=used, duration=1.0, session_id=thread) == ended
    )
    assert error is None


def test_a_command_that_fails() -> None:
    """A nonzero exit code makes the result an error; shell quoting is undone."""
    events, _, _ = read(capture("fail"))
    calls = [event.input for event in events if isinstance(event, ev.ToolCall)]
    results = [event for event in events if isinstance(event, ev.ToolResult)]
    script = "cat > multi.txt <<'X'\nhi\nX\nls multi.txt"
    assert {"command": script} == calls[-1]
    assert ["out\nerr\n", "parallel-two\n", "multi.txt\n"] == [r.output for r in results]
    assert [True, False, False] == [result.is_error for result in results]


def test_a_change_of_several_files() -> None:
    """Each file of a patch is a separate call with its own id."""
    events, _, _ = read(capture("patch2"))
    calls = [(e.name, e.id) for e in events if isinstance(e, ev.ToolCall) and e.name != "Bash"]
    assert [
        ("Write", "item_0"),
        ("Write", "item_0:1"),
        ("Edit", "item_1"),
        ("Edit", "item_1:1"),
        ("Write", "item_3"),
    ] == calls
    results = [e.name for e in events if isinstance(e, ev.ToolResult) and e.name != "item_2"]
    assert [call for _, call in calls] == results


def test_calls_of_mcp_servers() -> None:
    """Calls are named by server and tool; a refusal is an error with its message."""
    events, _, _ = read(capture("mcp"))
    assert [
        ev.ToolCall(name="mcp__plain__list", input={"status": "pending"}, id="item_0"),
        ev.ToolResult(name="item_0", output='{"deliverables": []}'),
        ev.ToolCall(name="mcp__plain__list", input={}, id="item_1"),
        ev.ToolResult(
            name="item_1",
            output="MCP tool call requires approval, but approval policy is never",
            is_error=True,
        ),
    ] == events[1:5]


def test_tokens_of_a_resumed_session() -> None:
    """The program counts over the whole thread, so earlier tokens are subtracted."""
    before = ev.Usage(input_tokens=800, output_tokens=50, cache_read_tokens=200)
    thread = "01a1fbfc-897a-7b22-a66b-cd975e9b42de"
    _, ended, error = read(capture("res2"), CodexSession(resumed=thread, record=lambda _: before))
    assert before == ended.usage  # both turns used the same number
    assert error is None


def test_a_new_session_instead_of_the_resumed_one() -> None:
    """If the program starts a new session instead of resuming, it is terminated without events."""
    session = CodexSession(resumed="no-id")
    assert [] == session.feed(capture("ok")[0], now=NOW)
    assert isinstance(session.breach, AgentFailed)
    _, error = session.end(exit_code=-9, stderr_tail="", duration=1.0, now=NOW)
    assert isinstance(error, AgentFailed)
    assert "bad_request" == error.reason


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("err-400", "bad_request"),
        ("err-401", "auth"),
        ("err-429", "rate_limit"),
        ("err-500-noretry", "server"),
        ("drop", "connection"),
        ("connrefused-bounded0", "connection"),
    ],
)
def test_failures(name: str, expected: str) -> None:
    """A failed turn has its reason; each error message of the program is emitted once."""
    events, ended, error = read(capture(name), exit_code=1)
    assert isinstance(error, AgentFailed)
    assert (expected, "failed") == (error.reason, ended.outcome)
    told = [event.text for event in events if isinstance(event, ev.SystemMessage)]
    assert len(told) == len(set(told)) > 1


def test_messages_of_the_api() -> None:
    """The message is extracted from a raw API response."""
    _, _, error = read(capture("err-400"), exit_code=1)
    assert "mock says 400" == str(error)


def test_an_incomplete_turn() -> None:
    """A session without the end of its turn has crashed, even with exit code 0."""
    lines = capture("kill-SIGTERM-bin-long")
    for code, words in ((-15, "SIGTERM"), (0, "without a result"), (1, "code 1")):
        _, ended, error = read(lines, exit_code=code)
        assert isinstance(error, AgentFailed)
        assert ("crash", "failed") == (error.reason, ended.outcome)
        assert words in str(error)


def test_unfinished_calls() -> None:
    """A call without a result gets one when the turn ends."""
    running = item("started", id="item_0", type="command_execution", command="sleep 9")
    events, _, _ = read([running, *capture("res1")[-1:]])
    call, result, _ = events
    assert ev.ToolCall(name="Bash", input={"command": "sleep 9"}, id="item_0") == call
    assert isinstance(result, ev.ToolResult)
    assert ("item_0", True) == (result.name, result.is_error)


def test_unannounced_items() -> None:
    """A call reported only on completion is emitted before its result."""
    done = item("completed", id="item_0", type="command_execution", command="true", exit_code=0)
    events, _, _ = read([done])
    assert [
        ev.ToolCall(name="Bash", input={"command": "true"}, id="item_0"),
        ev.ToolResult(name="item_0", output=""),
    ] == events


def test_an_invalid_status() -> None:
    """An item whose status is not a string has not failed."""
    done = item("completed", id="item_0", type="web_search", status=["failed"])
    events, _, _ = read([done])
    assert ev.ToolResult(name="item_0", output="") == events[-1]


def test_noise_is_skipped() -> None:
    """Lines that are not objects, and unknown types, yield no events."""
    lines = [b"", b"null", b"[1]", b"{", b"\xff\xfe", b'{"type":"later.than.this"}', b'{"type":1}']
    session = CodexSession()
    assert [] == [event for line in lines for event in session.feed(line, now=NOW)]


def test_keepalives() -> None:
    """Lines without new content are keepalives."""
    session = CodexSession()
    for line in (b'{"type":"turn.started"}', item("updated", id="item_1", type="todo_list")):
        assert [ev.PingEvent(timestamp=NOW)] == session.feed(line, now=NOW)
