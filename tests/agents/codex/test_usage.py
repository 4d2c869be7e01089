"""Usage of a Codex CLI session, read from the program's own record."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.codex.wire import CodexSession, UsageRecord, windows_of
from cuggino.errors import AgentFailed, QuotaExceeded
from cuggino.events import AgentMessage, QuotaUsed, RateLimited, Usage, UsageUpdate
from tests.agents.codex.test_wire import NOW, item

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
    session = CodexSession(resumed=THREAD, record=meter.total)
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
    session = CodexSession(resumed=THREAD, record=UsageRecord({"CODEX_HOME": str(tmp_path)}).total)
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
    session = CodexSession(resumed=THREAD, record=account.total, account=account)
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
    session = CodexSession(record=account.total, account=account)
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
