"""Skimming a long journal for the few entries that say what its run does."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from cuggino import events as ev
from cuggino.errors import StorageError
from cuggino.storage.journal import Journal, skim
from tests.web.journals import AT


def write(folder: Path, *events: ev.Event) -> Path:
    """Return a journal with these events."""
    started = ev.RunStarted(run_id="r", kind="run", command="cuggino run")
    journal = Journal.create(folder, started, at=AT, sync=False)
    for event in events:
        journal.append(event, at=AT, stage="a#1")
    journal.close()
    return journal.path


def update(tokens: int) -> ev.UsageUpdate:
    return ev.UsageUpdate(usage=ev.Usage(input_tokens=tokens))


BEGIN = ev.IterationStart(iteration=1, max_iterations=2)


def skimmed(path: Path, **options: int) -> list[ev.Event]:
    found = skim(path, {"IterationStart"}, totals={"UsageUpdate"}, **options)
    return [entry.event for entry in found][1:]


def test_the_wanted_and_the_last(tmp_path: Path) -> None:
    """Wanted entries of the whole journal, the last of a row of totals, and all of its end."""
    words = ev.AgentMessage(text="hi", message_id="m")
    path = write(tmp_path, update(1), update(2), BEGIN, words, update(3), words, update(4), words)
    assert [update(2), BEGIN, update(4)] == skimmed(path, recent=0)
    assert [update(2), BEGIN, update(3), words, update(4), words] == skimmed(path, recent=400)
    assert 9 == 1 + len(skimmed(path))


def test_the_last_totals_of_each_item(tmp_path: Path) -> None:
    """Of several items at once, the last of each before another entry, in order."""
    told = [update(1).of_item("a.md"), update(2).of_item('b"c.md'), update(3).of_item("a.md")]
    path = write(tmp_path, *told, update(4), BEGIN)
    assert [told[1], told[2], update(4), BEGIN] == skimmed(path, recent=0)


def test_tags_in_the_content_of_events(tmp_path: Path) -> None:
    """Text within an event that looks like an entry changes nothing."""
    fake: JsonValue = {"event": {"_tag": "IterationStart", "iteration": 7}}
    call = ev.ToolCall(name="x", input={"a": fake, "b": fake})
    text = ev.Note(content='{"v":1,"event":{"_tag":"IterationStart"}}\n')
    path = write(tmp_path, call, text, BEGIN)
    assert [call, BEGIN] == skimmed(path, recent=0)


def test_lines_longer_than_a_chunk(tmp_path: Path) -> None:
    """Lines of many megabytes are skipped, and what follows is found."""
    long = ev.Note(content="x" * 9_000_000)
    path = write(tmp_path, BEGIN, long, BEGIN, long, update(1), long)
    assert [BEGIN, BEGIN, update(1)] == skimmed(path, recent=0)


def test_a_torn_end(tmp_path: Path) -> None:
    """A torn last line is left out."""
    path = write(tmp_path, BEGIN)
    with path.open("a") as file:
        file.write('{"v":1,"seq":3,"at":"2026')
    assert [BEGIN] == skimmed(path) == skimmed(path, recent=0)


@pytest.mark.parametrize(
    ("content", "reason"),
    [("", "broken"), ("x\n", "broken"), ('{"v":2}\n', "version 2"), ('{"v":1,"se', "broken")],
)
def test_foreign_files(tmp_path: Path, content: str, reason: str) -> None:
    """A file that is not a journal, or one of another version, is an error."""
    path = tmp_path / "r.jsonl"
    path.write_text(content)
    with pytest.raises(StorageError, match=reason):
        skimmed(path)
