"""Parsing the output of the Gemini CLI; the captures are from the real program."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from cuggino import events as ev
from cuggino.agents.base.watch import VerdictLog
from cuggino.agents.gemini.guard import GeminiWatch
from cuggino.agents.gemini.wire import GeminiSession
from cuggino.errors import LlmSessionError

DATA = Path(__file__).parents[2] / "data" / "gemini"
NOW = 1_795_289_780.0


def line(kind: str, **data: Any) -> bytes:
    return json.dumps({"type": kind, **data}).encode()


def say(text: str, **data: Any) -> bytes:
    return line("message", role="assistant", content=text, delta=True, **data)


def fed(*lines: bytes, session: GeminiSession | None = None) -> list[ev.LlmAgentEvent]:
    session = session or GeminiSession(cwd="/p")
    return [event for one in lines for event in session.feed(one, now=NOW)]


def played(name: str, exit_code: int = 0) -> tuple[list[ev.LlmAgentEvent], ev.SessionEnded, object]:
    session = GeminiSession(cwd="/p")
    events = fed(*(DATA / f"{name}.jsonl").read_bytes().splitlines(), session=session)
    ended, error = session.end(exit_code=exit_code, stderr_tail="", duration=1.0, now=NOW)
    return events, ended, error


def test_a_session() -> None:
    """Text is emitted as deltas and then whole; calls and results share an id."""
    events, ended, error = played("ok")
    assert error is None
    whole = [event for event in events if not isinstance(event, ev.MessageDelta)]
    assert [
        *("SystemMessage", "AgentMessage", "ToolCall", "ToolResult", "AgentMessage"),
        *("ToolCall", "ToolResult", "AgentMessage", "UsageUpdate"),
    ] == [event.tag for event in whole]
    assert (
        ev.AgentMessage(
            text="Starting work. <NOTE>about to write hello.txt</NOTE>",
            message_id="2026-11-21T03:12:02.059Z/1",
        )
        == whole[1]
    )
    assert (
        ev.ToolCall(
            name="Write",
            input={"file_path": "/p/hello.txt", "content": "hello from mock\n"},
            id="write_file__fc5",
        )
        == whole[5]
    )
    assert ev.ToolResult(name="write_file__fc5", output="") == whole[6]
    assert (
        ev.SessionEnded(
            outcome="completed",
            usage=ev.Usage(input_tokens=2400, output_tokens=150, cache_read_tokens=600),
            model="mock",
            duration=1.0,
            num_turns=3,
            session_id="5b839a4d-b937-4804-adc6-9f7f2fc831d6",
        )
        == ended
    )


def test_deltas_are_their_message() -> None:
    """The deltas of a message precede it and join to its text."""
    events, _, _ = played("ok")
    for index, event in enumerate(events):
        if isinstance(event, ev.AgentMessage):
            mine = [
                d.text
                for d in events[:index]
                if isinstance(d, ev.MessageDelta) and d.message_id == event.message_id
            ]
            assert event.text == "".join(mine)
            assert len(mine) > 1


def test_failed_tools() -> None:
    """Failed and unknown tools have results with the error."""
    events, ended, error = played("fail")
    assert error is None
    calls = [event.name for event in events if isinstance(event, ev.ToolCall)]
    assert ["Bash", "Bash", "Edit", "no_such_tool"] == calls
    results = [event for event in events if isinstance(event, ev.ToolResult)]
    assert [False, False, True, True] == [result.is_error for result in results]
    assert "File not found" in results[2].output
    assert 4 == ended.num_turns


@pytest.mark.parametrize(
    ("name", "exit_code", "outcome", "reason"),
    [
        ("err-400", 144, "failed", "bad_request"),
        ("err-401", 145, "failed", "auth"),
        ("err-429-max2", 173, "failed", "rate_limit"),
        ("connrefused-max2", 1, "failed", "connection"),
        ("drop", 0, "failed", "connection"),
        ("kill-SIGTERM-sleep-norelaunch", 0, "failed", "crash"),
        ("kill-SIGTERM-sleep-norelaunch", 130, "interrupted", "aborted"),
    ],
)
def test_failures(name: str, exit_code: int, outcome: str, reason: str) -> None:
    """A failed or interrupted session is reported as such, even with exit code 0."""
    _, ended, error = played(name, exit_code)
    assert (outcome, reason) == (ended.outcome, getattr(error, "reason", None))


def test_a_message_that_was_never_completed() -> None:
    """A message whose stream broke permanently has no text."""
    events, _, _ = played("drop")
    assert [event for event in events if isinstance(event, ev.MessageDelta)]
    assert [] == [event for event in events if isinstance(event, ev.AgentMessage)]
    assert "Model stream ended without a finish reason." in [
        event.text for event in events if isinstance(event, ev.SystemMessage)
    ]


def test_the_first_result_counts() -> None:
    """Lines after the result change nothing."""
    session = GeminiSession()
    fed(line("result", status="success"), line("result", status="error"), session=session)
    ended, error = session.end(exit_code=0, stderr_tail="", duration=1.0, now=NOW)
    assert ("completed", None, None) == (ended.outcome, error, ended.usage)


def test_thoughts_are_output() -> None:
    """Tokens of the total that are neither input nor reported output count as output."""
    session = GeminiSession()
    stats = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 25, "cached": 4}
    fed(line("result", status="success", stats=stats), session=session)
    ended, _ = session.end(exit_code=0, stderr_tail="", duration=1.0, now=NOW)
    assert ev.Usage(input_tokens=6, output_tokens=15, cache_read_tokens=4) == ended.usage


@pytest.mark.parametrize(
    "noise",
    [b"", b"\xff\xfe", b"{", b"[]", b"null", line("new_kind"), line("message", role="user")],
)
def test_noise(noise: bytes) -> None:
    """Unknown lines are skipped."""
    assert [] == fed(noise)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    *("role", "content", "delta", "tool_name", "tool_id", "parameters", "status", "output"),
    *("error", "stats", "message", "session_id", "timestamp", "severity"),
)
KINDS = st.sampled_from(["init", "message", "tool_use", "tool_result", "error", "result", "other"])
LINES = st.builds(
    lambda kind, role, data: json.dumps({"role": role, **data, "type": kind}).encode(),
    KINDS,
    st.sampled_from(["assistant", "user"]),
    st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=5),
)
ANY = st.lists(LINES | st.binary(max_size=40), max_size=12)


@settings(max_examples=2 * settings().max_examples)
@given(ANY, st.integers(-15, 255), st.text(max_size=40), st.booleans())
def test_no_line_breaks_a_session(
    lines: list[bytes], exit_code: int, stderr: str, is_guarded: bool
) -> None:
    """Arbitrary output never raises, events can be serialized, and the session has an outcome."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        log.write_bytes(b"\n".join(lines))
        watch = GeminiWatch(VerdictLog(log, "t")) if is_guarded else None
        session = GeminiSession(cwd="/p", watch=watch)
        events = fed(*lines, session=session)
    for event in events:
        assert event == ev.parse_event(ev.dump_event(event))
    ended, error = session.end(exit_code=exit_code, stderr_tail=stderr, duration=0.0, now=NOW)
    assert (ended.outcome == "completed") == (error is None)
    assert error is None or isinstance(error, LlmSessionError)


@settings(max_examples=2 * settings().max_examples)
@given(ANY)
def test_messages_are_their_deltas(lines: list[bytes]) -> None:
    """For arbitrary output, a message's text equals its preceding deltas."""
    pieces: dict[str, str] = {}
    for event in fed(*lines):
        match event:
            case ev.MessageDelta():
                pieces[event.message_id] = pieces.get(event.message_id, "") + event.text
            case ev.AgentMessage():
                assert pieces.pop(str(event.message_id)) == event.text
            case _:
                pass
