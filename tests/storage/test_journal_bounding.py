"""The size limit of agents' events in the journal."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.events import dump_event_bytes
from cuggino.storage import Journal, read_journal
from cuggino.storage.journal import EVENT_LIMIT

NOW = datetime(2026, 11, 29, tzinfo=UTC)
STARTED = ev.RunStarted(run_id="1", kind="run", command="cuggino run")
TEXT = "0123456789" * 200_000


def written(tmp_path: Path, event: ev.Event) -> ev.Event:
    """Write the event to a journal, and return what is read from it."""
    journal = Journal.create(tmp_path, STARTED, at=NOW)
    entry = journal.append(event, at=NOW, stage="implementing#1")
    journal.close()
    assert entry == read_journal(journal.path).last
    return entry.event


def test_a_long_output(tmp_path: Path) -> None:
    """An output of 2 MB is cut in the middle, with the size of what is left out."""
    kept = written(tmp_path, ev.ToolResult(name="t", output=TEXT, is_error=True))
    assert isinstance(kept, ev.ToolResult)
    begin, mark, end = kept.output.split("\n")
    assert "[... 1.9 MB left out ...]" == mark
    assert TEXT.startswith(begin)
    assert TEXT.endswith(end)
    assert ("t", True, len(begin)) == (kept.name, kept.is_error, len(end))
    assert len(dump_event_bytes(kept)) <= EVENT_LIMIT
    assert EVENT_LIMIT * 2 < (tmp_path / "1.jsonl").stat().st_size * 3 <= EVENT_LIMIT * 4


@pytest.mark.parametrize(
    "event",
    [
        ev.AgentMessage(text=TEXT, message_id="m"),
        ev.Thinking(text="é" * 300_000),
        ev.ToolResult(name="t", output="\0" * 300_000),
        ev.ToolResult(name="t", output="\ud83d" * 300_000),
        ev.ToolCall(name="Write", input={"file_path": "a", "content": TEXT}, id="t"),
        ev.ToolCall(name="Edit", input={"edits": [{"new_string": TEXT[:9000]}] * 90}, id="t"),
        ev.ToolCall(name="mcp__x__y", input={"numbers": list(range(200_000))}, id="t"),
        ev.ToolCall(name="mcp__x__y", input={f"k{n}": "word" for n in range(90_000)}, id="t"),
    ],
    ids=lambda event: f"{event.tag}-{len(dump_event_bytes(event))}",
)
def test_any_long_event_of_an_agent(tmp_path: Path, event: ev.Event) -> None:
    """Whatever makes an event long, it is below the limit, readable, and the same kind of event."""
    kept = written(tmp_path, event)
    assert type(event) is type(kept)
    assert len(dump_event_bytes(kept)) <= EVENT_LIMIT
    assert "left out" in str(kept)
    assert getattr(event, "name", None) == getattr(kept, "name", None)


@pytest.mark.parametrize(
    "event",
    [
        ev.StageFinished(outcome={"value": TEXT}),
        ev.RequestChanges(content=TEXT),
        ev.CheckCommandOutput(iteration=1, output=TEXT, exit_code=1),
        ev.ToolResult(name="t", output=TEXT[: EVENT_LIMIT - 100]),
    ],
    ids=lambda event: event.tag,
)
def test_what_is_kept_whole(tmp_path: Path, event: ev.Event) -> None:
    """Outcomes, markers and checks are whole, as a resumed run uses them; so is all below it."""
    assert event == written(tmp_path, event)
