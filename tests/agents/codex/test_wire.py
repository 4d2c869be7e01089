"""Parsing `codex exec --json`: real output as events, usage, and errors."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.agents.codex.wire import CodexSession, UsageRecord, windows_of
from cuggino.errors import AgentFailed, LlmSessionError, QuotaExceeded
from cuggino.events import AgentMessage, QuotaUsed, RateLimited, Usage, UsageUpdate
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

    class Account(UsageRecord):
        def total(self, thread: str | None) -> ev.Usage:
            return before

    _, ended, error = read(capture("res2"), CodexSession(resumed=thread, account=Account()))
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


def test_keepalives() -> None:
    """Lines without new content are keepalives."""
    session = CodexSession()
    for line in (b'{"type":"turn.started"}', item("updated", id="item_1", type="todo_list")):
        assert [ev.PingEvent(timestamp=NOW)] == session.feed(line, now=NOW)


def test_a_message_of_the_program() -> None:
    """What the program says twice in a row is emitted once."""
    said = [json.dumps({"type": "error", "message": text}).encode() for text in "aaba"]
    events, _, _ = read(said)
    assert list("aba") == [event.text for event in events if isinstance(event, ev.SystemMessage)]


def test_a_usage_limit() -> None:
    """A usage limit is a quota error whose reset time is in the program's time zone."""
    there = timezone(timedelta(hours=2))
    session = CodexSession(zone=lambda: there)
    for line in capture("quota"):
        session.feed(line, now=NOW)
    met = datetime(2026, 11, 21, 21, 0, tzinfo=UTC).timestamp()
    ended, error = session.end(exit_code=1, stderr_tail="", duration=1.0, now=met)
    assert isinstance(error, QuotaExceeded)
    assert datetime(2026, 11, 22, 0, 46, tzinfo=there) == error.resets_at
    assert "quota" == ended.outcome


THREAD = "01a20017-c2b3-75b1-9a1a-5c9ea0fae11f"


def counted(total: int) -> bytes:
    """Return a line of the record."""
    told = {"input_tokens": total, "cached_input_tokens": total // 2, "output_tokens": 7}
    payload = {"type": "token_count", "info": {"total_token_usage": told}}
    return json.dumps({"type": "event_msg", "payload": payload}).encode() + b"\n"


def used(total: int) -> Usage:
    half = total // 2
    return Usage(input_tokens=total - half, cache_read_tokens=half, output_tokens=7)


def record(home: Path) -> Path:
    file = home / "sessions/2026/11/21" / f"rollout-2026-11-21T21-51-26-{THREAD}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def test_a_record_that_grows(tmp_path: Path) -> None:
    """The last complete count is the total."""
    meter = UsageRecord({"CODEX_HOME": str(tmp_path)})
    assert meter.total(THREAD) is None
    file = record(tmp_path)
    file.write_bytes(b'{"token_count"\n' + counted(10) + counted(20) + counted(30)[:-9])
    assert used(20) == meter.total(THREAD)
    file.write_bytes(file.read_bytes() + counted(30)[-9:])
    assert used(30) == meter.total(THREAD)
    file.unlink()
    assert meter.total(THREAD) is None


def test_an_invalid_id(tmp_path: Path) -> None:
    """An invalid id finds no record."""
    record(tmp_path).write_bytes(counted(10))
    meter = UsageRecord({"CODEX_HOME": str(tmp_path)})
    assert meter.total("*") is None
    assert meter.total("../x") is None


def test_usage_updates_during_a_session(tmp_path: Path) -> None:
    """Usage is emitted after an event when it has grown.

    The earlier usage of a resumed thread is subtracted, also from the final usage.
    """
    file = record(tmp_path)
    file.write_bytes(counted(10))
    meter = UsageRecord({"CODEX_HOME": str(tmp_path)})
    session = CodexSession(resumed=THREAD, account=meter)
    begun = json.dumps({"type": "thread.started", "thread_id": THREAD}).encode()
    session.feed(begun, now=NOW)
    said = item("completed", id="item_0", type="agent_message", text="hi")
    message = AgentMessage(text="hi", message_id="item_0")
    own = Usage(input_tokens=10, cache_read_tokens=10)
    file.write_bytes(counted(10) + counted(30))
    assert [message, UsageUpdate(usage=own)] == session.feed(said, now=NOW)
    assert [message] == session.feed(said, now=NOW)
    ended, _ = session.end(exit_code=-9, stderr_tail="", duration=1.0, now=NOW)
    assert own == ended.usage
    told = {"input_tokens": 50, "cached_input_tokens": 5, "output_tokens": 9}
    done = json.dumps({"type": "turn.completed", "usage": told}).encode()
    last = Usage(input_tokens=40, output_tokens=2)
    assert [UsageUpdate(usage=last)] == session.feed(done, now=NOW)


def test_a_record_that_is_found_late(tmp_path: Path) -> None:
    """A record that appears when its thread is resumed contains earlier usage too."""
    account = UsageRecord({"CODEX_HOME": str(tmp_path)})
    session = CodexSession(resumed=THREAD, account=account)
    file = record(tmp_path)
    file.write_bytes(counted(10))
    begun = json.dumps({"type": "thread.started", "thread_id": THREAD}).encode()
    session.feed(begun, now=NOW)
    file.write_bytes(counted(10) + counted(30))
    said = item("completed", id="item_0", type="agent_message", text="hi")
    own = Usage(input_tokens=10, cache_read_tokens=10)
    assert UsageUpdate(usage=own) == session.feed(said, now=NOW)[-1]


AT = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
LATER = datetime(2026, 11, 21, 22, 0, tzinfo=UTC)
PRIMARY = {"used_percent": 62.0, "window_minutes": 300, "resets_at": LATER.timestamp()}


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, []),
        ({"primary": None, "secondary": "none"}, []),
        ({"primary": {"used_percent": "62"}}, []),
        ({"primary": {"used_percent": 62}}, [("primary", 0.62, None)]),
        ({"primary": PRIMARY}, [("five_hour", 0.62, LATER)]),
        (
            {"primary": PRIMARY, "secondary": {"used_percent": 100, "window_minutes": 10_079}},
            [("five_hour", 0.62, LATER), ("seven_day", 1.0, None)],
        ),
        (
            {"secondary": {"used_percent": 130, "window_minutes": 60, "resets_in_seconds": 3600}},
            [("secondary", 1.0, LATER)],
        ),
        ({"primary": PRIMARY, "limit_id": "codex"}, [("five_hour", 0.62, LATER)]),
        ({"primary": PRIMARY, "limit_id": "spark"}, [("spark five_hour", 0.62, LATER)]),
    ],
)
def test_windows_of_a_record(
    limits: dict[str, Any], expected: list[tuple[str, float, datetime | None]]
) -> None:
    """Each window has a name by its length, a share, and an absolute reset time."""
    found = windows_of(limits, at=AT)
    assert expected == [(one.window, one.used, one.resets_at) for one in found]


def limits_line(percent: float, **fields: Any) -> bytes:
    limits = {"primary": {**PRIMARY, "used_percent": percent}, **fields}
    payload = {"type": "token_count", "info": None, "rate_limits": limits}
    line = {"type": "event_msg", "timestamp": "2026-11-21T21:00:00Z", "payload": payload}
    return json.dumps(line).encode() + b"\n"


@pytest.mark.parametrize(
    ("credit", "paid"),
    [
        ({}, False),
        ({"credits": {"has_credits": False}}, False),
        ({"credits": {"has_credits": True, "unlimited": True}}, False),
        ({"credits": {"has_credits": True, "unlimited": False, "balance": "5"}}, True),
    ],
)
def test_windows_during_a_session(tmp_path: Path, credit: dict[str, Any], paid: bool) -> None:
    """New shares are emitted once; a full window with credits left is overage."""
    file = record(tmp_path)
    file.write_bytes(limits_line(10))
    account = UsageRecord({"CODEX_HOME": str(tmp_path)})
    session = CodexSession(resumed=THREAD, account=account)
    begun = json.dumps({"type": "thread.started", "thread_id": THREAD}).encode()
    session.feed(begun, now=NOW)
    said = item("completed", id="item_0", type="agent_message", text="hi")
    assert ["AgentMessage"] == [event.tag for event in session.feed(said, now=NOW)]
    file.write_bytes(limits_line(10) + limits_line(100, **credit))
    full = QuotaUsed(window="five_hour", used=1.0, resets_at=LATER)
    over = RateLimited(status="rejected", limit="five_hour", resets_at=LATER, overage=True)
    _, *news = session.feed(said, now=NOW)
    assert [full, *([over] if paid else [])] == news
    assert ["AgentMessage"] == [event.tag for event in session.feed(said, now=NOW)]


@pytest.mark.parametrize(
    ("message", "percent", "credit", "expected"),
    [
        ("Your workspace is out of credits.", 100, {}, LATER),
        ("You've hit your usage limit. Try again later.", 100, {}, LATER),
        ("Your workspace is out of credits.", 99, {}, "billing"),
        ("Rate limit reached on tokens per min. Please try again in 4.2s.", 100, {}, "rate_limit"),
        ("You have run out of credits.", 100, {}, LATER),
        ("exceeded retry limit, last status: 429", 100, {"credits": {"has_credits": True}}, "rate"),
    ],
)
def test_the_window_behind_a_refusal(
    tmp_path: Path, message: str, percent: float, credit: dict[str, Any], expected: datetime | str
) -> None:
    """The reset of a used-up window in the record dates a refusal without credits."""
    record(tmp_path).write_bytes(limits_line(percent, **credit))
    account = UsageRecord({"CODEX_HOME": str(tmp_path)})
    session = CodexSession(account=account)
    session.feed(json.dumps({"type": "thread.started", "thread_id": THREAD}).encode(), now=NOW)
    failed = {"type": "turn.failed", "error": {"message": message}}
    session.feed(json.dumps(failed).encode(), now=NOW)
    now = AT.timestamp()
    _, error = session.end(exit_code=1, stderr_tail="", duration=1.0, now=now)
    if isinstance(expected, str):
        assert isinstance(error, AgentFailed)
        assert error.reason.startswith(expected)
    else:
        assert isinstance(error, QuotaExceeded)
        assert expected == error.resets_at
