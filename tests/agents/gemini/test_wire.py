"""Parsing the output of the Gemini CLI: real captures, errors, and exit codes of commands."""

from __future__ import annotations

import json
import shlex
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.agents.gemini.tools import marked
from cuggino.agents.gemini.wire import Exits, GeminiSession
from cuggino.errors import AgentFailed, LlmSessionError
from cuggino.events import ToolResult

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


MET = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def failure(
    message: str | None, exit_code: int = 1, *, told: str = "", stderr: str = ""
) -> LlmSessionError | None:
    lines: list[dict[str, Any]] = [{"type": "error", "message": told}] if told else []
    if message is not None:
        error = {"type": "unknown", "message": message}
        lines.append({"type": "result", "status": "error", "error": error})
    return end_of(lines, exit_code, stderr)


def end_of(lines: list[dict[str, Any]], exit_code: int, stderr: str) -> LlmSessionError | None:
    session, now = GeminiSession(zone=lambda: UTC), MET.timestamp()
    for line in lines:
        session.feed(json.dumps(line).encode(), now=now)
    return session.end(exit_code=exit_code, stderr_tail=stderr, duration=1.0, now=now)[1]


def api(code: int, message: str = "no") -> str:
    return f'[API Error: {{"error":{{"code":{code},"message":"{message}","status":"X"}}}}]'


def test_messages_of_the_api() -> None:
    """The message is the API's own, unwrapped."""
    error = failure(api(401, "mock says 401"), 145)
    assert error is not None
    assert "mock says 401" == error.message
    assert "GEMINI_API_KEY" in (error.hint or "")


def test_a_limit_of_seconds() -> None:
    """Too many requests at once are a rate limit, which names the time of the next try."""
    error = failure("[API Error: Slow down. Please retry in 90.5s.]", 173)
    assert isinstance(error, AgentFailed)
    assert ("rate_limit", MET + timedelta(seconds=90.5)) == (error.reason, error.retry_at)


def test_a_crash() -> None:
    """Routine messages and startup output are not part of the error."""
    stderr = (
        "Warning: 256-color support not detected.\nYOLO mode is enabled.\n"
        "[STARTUP] Phase 'cleanup_ops' was started but never ended. Skipping metrics.\nboom\n"
    )
    error = failure(None, -9, stderr=stderr)
    assert error is not None
    assert "gemini was ended by SIGKILL: boom" == error.message


def test_a_loop() -> None:
    """A session that the program stopped because of a loop has failed."""
    told = "Loop detected, stopping execution"
    lines = [{"type": "error", "message": told}, {"type": "result", "status": "success"}]
    error = end_of(lines, 0, "")
    assert error is not None
    assert told == error.message


def tell(exits: Exits, given: dict[str, Any], output: str) -> None:
    """Run the hook like the program."""
    (entry,) = exits.hooks()["AfterTool"][0]["hooks"]
    content = f"<untrusted_context>\n{output}\n</untrusted_context>\n\n[System] More."
    data = {"tool_input": given, "tool_response": {"llmContent": content}}
    done = subprocess.run(
        shlex.split(entry["command"]), input=json.dumps(data), capture_output=True, text=True
    )
    assert (0, "{}\n") == (done.returncode, done.stdout)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("Output: x\nExit Code: 3\nProcess Group PGID: 7", 3),
        ("Output: x\nExit Code: 130\nSignal: 2\nBackground PIDs: 1, 2\nProcess Group PGID: 7", 130),
        ("Output: Exit Code: 3\nProcess Group PGID: 7", 0),
        ("Output: a\nExit Code: 3\nb\nProcess Group PGID: 7", 0),
        ("Output: a\nExit Code: 5\n</untrusted_context>\nb\nExit Code: 6\nSignal: 9", 6),
        ("Output: a\nExit Code: 5\n</untrusted_context>\nb", 0),
        (f"Output: x\nExit Code: {'9' * 5000}\nProcess Group PGID: 7", 0),
        ("Output: (empty)\nProcess Group PGID: 7", 0),
    ],
)
def test_codes(tmp_path: Path, output: str, expected: int) -> None:
    """The exit code is read from the program's part of the result, not the command's output."""
    exits = Exits(tmp_path)
    tell(exits, {"command": "c"}, output)
    assert expected == exits.code({"command": "c"})


def test_several_commands(tmp_path: Path) -> None:
    """Each command has its own code, reported once, whether it was marked or not."""
    exits = Exits(tmp_path)
    tell(exits, marked({"command": "a"}, "t"), "Exit Code: 1\nProcess Group PGID: 7")
    tell(exits, {"command": "b"}, "Exit Code: 2\nProcess Group PGID: 7")
    codes = [exits.code({"command": name}) for name in ("b", "a", "a", "c")]
    assert [2, 1, 0, 0] == codes


def test_foreign_files(tmp_path: Path) -> None:
    """Files with other content are ignored."""
    exits = Exits(tmp_path)
    (tmp_path / "exits" / "1.json").write_bytes(b"\xff{")
    (tmp_path / "exits" / "2.json").write_text('{"tool_response": 1}')
    assert 0 == exits.code({"command": "a"})


@pytest.mark.parametrize(
    ("output", "code", "expected"),
    [("x", 3, True), ("x", 0, False), ("Blocked: command substitution detected", 0, True)],
)
def test_results(output: str, code: int, expected: bool) -> None:
    """A command with a nonzero code, or refused by the program, has failed."""
    session = GeminiSession(exit_code=lambda _given: code)
    call = line("tool_use", tool_name="run_shell_command", tool_id="c", parameters={"command": "a"})
    result = line("tool_result", tool_id="c", status="success", output=output)
    assert (
        ToolResult(name="c", output=output, is_error=expected)
        == fed(call, result, session=session)[-1]
    )
