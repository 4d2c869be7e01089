"""Pages stay small and folds bounded, however long a run was."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timezone
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.report import (
    CommitDiff,
    FileChange,
    RunFold,
    RunReport,
    build_night,
    build_report,
    render_night,
    render_report,
)
from cuggino.report.cutting import cut
from cuggino.report.transcript import HEAD, MOST_KEPT, TAIL
from cuggino.storage.journal import Entry, Journal, read_journal
from tests.report.journals import FOLDER, NAMES, START, STARTED, after
from tests.report.test_page import Page, intruders
from tests.vectors import each

ZONE = timezone.utc  # noqa: UP017
MOST = 600_000
LINE = "the session cookie needs `HttpOnly`, & both <tests> go through it: case {}\n"
PROSE = "".join(map(LINE.format, range(600)))


def text(chance: random.Random, size: int) -> str:
    """Return a part of some lines of words."""
    start = chance.randrange(5_000)
    return PROSE[start : start + size]


def events(count: int, *, seed: int = 1) -> Iterator[tuple[str | None, ev.Event]]:
    """Yield events of a run with payloads as large as those of real runs."""
    chance = random.Random(seed)
    number = stage = 0
    while number < count:
        stage += 1
        name = f"implementing#{stage}"
        yield name, ev.StageStarted(name="implementing")
        for call in range(20):
            yield name, ev.AgentMessage(text=text(chance, chance.choice((80, 300, 1200))))
            if call % 5 == 0:
                yield name, ev.Thinking(text=text(chance, 900))
            shown = {"command": f"pytest -q tests/test_{call}.py", "description": "Run tests"}
            if call % 3 == 0:
                old, new = text(chance, 700), text(chance, 900)
                shown = {"file_path": f"/p/f{call}.py", "old_string": old, "new_string": new}
            yield (
                name,
                ev.ToolCall.model_validate(
                    {"name": "Edit" if call % 3 == 0 else "Bash", "input": shown, "id": f"{call}"}
                ),
            )
            output = text(chance, chance.choice((50, 400, 3_000, 12_000, 30_000)))
            yield name, ev.ToolResult(name=f"{call}", output=output, is_error=call % 7 == 0)
            yield name, ev.UsageUpdate(usage=ev.Usage(input_tokens=call), cost_usd=0.01 * call)
        yield name, ev.SessionEnded(outcome="completed", cost_usd=0.5)
        done = ev.Progress(content=f"Task {stage}")
        yield name, done
        yield name, ev.StageFinished(outcome={"_tag": "Progress", "content": done.content})
        yield None, ev.CheckCommandOutput(iteration=1, exit_code=0, output=text(chance, 9000))
        commit = ev.CommitPerformed(
            iteration=1, commit_hash=f"{seed:03}{stage:07x}", message=f"T{stage}"
        )
        yield None, commit
        number += 90


def run_of(count: int, *, seed: int = 1, **options: str) -> RunReport:
    """Return the report on a run with about `count` events, and a large diff of each commit."""
    started = STARTED.model_copy(update={"run_id": f"run-{seed}", **options})
    said: list[tuple[str | None, ev.Event]] = [(None, started), *events(count, seed=seed)]
    entries = [
        Entry(seq=n, at=after(n), stage=stage, event=event)
        for n, (stage, event) in enumerate(said, start=1)
    ]
    patch = cut("diff --git a b\n" + "+ line <of> code & more\n" * 2000, 40_000)
    diff = CommitDiff((FileChange("a.py", 2000, 3),), patch)
    hashes = [e.commit_hash for _, e in said if isinstance(e, ev.CommitPerformed)]
    return build_report(entries, diffs=dict.fromkeys(hashes, diff))


@pytest.mark.real_agent
@pytest.mark.parametrize("count", [10, 1000, 5000, 20_000])
def test_page_of_a_run(count: int) -> None:
    """A page stays below 600 kB, and marks omitted content."""
    report = run_of(count)
    assert report.events >= count
    page = render_report(report, zone=ZONE)
    assert len(page.encode()) <= MOST
    assert [] == intruders(page)
    assert "characters left out" in page
    if count in (1000, 5000):
        assert len(page) > MOST * 0.4, "there is room for more"
        assert "Task 1" in page


@pytest.mark.real_agent
def test_page_of_a_night() -> None:
    """Ten runs of 1,000 events share the budget of one page."""
    runs = [run_of(1000, seed=n, item=f"{n:03}.md x", focus=f"# Item {n}") for n in range(1, 11)]
    watch = build_report(
        [
            Entry(
                seq=1,
                at=START,
                stage=None,
                event=ev.RunStarted(run_id="w", kind="watch", command="cuggino watch"),
            )
        ]
    )
    night = build_night(watch, runs)
    page = render_night(night, zone=ZONE)
    assert len(page.encode()) <= MOST
    words = Page(page).words
    assert all(f"Item {n}" in words for n in range(1, 11))
    assert night.cost_usd == pytest.approx(sum(run.totals.cost_usd or 0 for run in runs))


def test_event_of_5_mb() -> None:
    """A huge text is cut with its head and tail, before it is rendered."""
    huge = "head " + "x" * 5_000_000 + " tail"
    said = [
        (None, STARTED),
        ("planning#1", ev.StageStarted(name="planning")),
        ("planning#1", ev.AgentMessage(text=huge)),
        ("planning#1", ev.ToolCall(name="Bash", input={"command": huge}, id="1")),
        ("planning#1", ev.ToolResult(name="1", output=huge)),
    ]
    entries = [
        Entry(seq=n, at=after(n), stage=stage, event=event)
        for n, (stage, event) in enumerate(said, start=1)
    ]
    page = render_report(build_report(entries), zone=ZONE)
    assert len(page) < 60_000
    assert 3 == page.count(" tail")
    assert "4,996,0" in page


def test_transcripts_are_bounded() -> None:
    """Of many stages with large texts so much is kept that it fits into memory."""
    fold = RunFold(most=400_000)
    fold.add(Entry(seq=1, at=START, stage=None, event=STARTED))
    output = "x" * 3_000
    for number in range(400):
        stage = f"implementing#{number}"
        fold.add(Entry(seq=2, at=after(1), stage=stage, event=ev.StageStarted(name="implementing")))
        for call in range(30):
            said = (
                ev.ToolCall(name="Bash", id=f"{call}"),
                ev.ToolResult(name=f"{call}", output=output),
            )
            for event in said:
                fold.add(Entry(seq=2, at=after(1), stage=stage, event=event))
    report = fold.result()
    kept = sum(
        row.text.size + (row.output.size if row.output else 0)
        for transcript in report.transcripts
        for row in transcript.rows
    )
    assert 10_000 < kept <= 400_000
    assert 400 == len(report.stages)
    last = report.transcripts[-1]
    assert 30 == len(last.rows) + last.left_out
    assert 30 == last.rows[-1].n
    assert 12_000 == sum(use.calls for use in report.tools)


def journal_of(folder: Path, said: list[tuple[str | None, ev.Event]]) -> Path:
    """Write a journal with these events."""
    started = ev.RunStarted(run_id="long", kind="run", command="cuggino run")
    journal = Journal.create(folder, started, at=START, sync=False)
    for n, (stage, event) in enumerate(said, start=1):
        journal.append(event, at=after(n), stage=stage)
    journal.close()
    return journal.path


@pytest.mark.real_agent
def test_lines_are_parsed_when_needed(tmp_path: Path) -> None:
    """A report on the lines of a file equals that on its entries, also of long stages."""
    said = [*events(400)]
    many = 3 * (HEAD + TAIL)
    for n in range(many):
        said += [
            ("reviewing#99", event)
            for event in (
                *([ev.StageStarted(name="reviewing")] if n == 0 else []),
                ev.AgentMessage(text=f"words {n}", message_id=f"{n}"),
                ev.ToolCall(name="Bash", input={"command": f"n {n}"}, id=f"t-{n}"),
                ev.ToolResult(name=f"t-{n}", output="y" * (20_000 if n % 50 == 3 else 20)),
            )
        ]
    entries = read_journal(journal_of(tmp_path, said)).entries
    parsed, lazy = build_report(iter(entries)), build_report(entries)
    assert parsed == lazy
    (last,) = (t for t in lazy.transcripts if len(t.rows) + t.left_out == 2 * many)
    assert (HEAD, TAIL) == (len(last.head), len(last.tail))
    assert [*range(1, HEAD + 1), *range(2 * many - TAIL + 1, 2 * many + 1)] == [
        row.n for row in last.rows
    ]
    assert last.tail[-1].what == f"n {many - 1}"
    assert last.tail[-1].output is not None


@each("name", NAMES)
def test_lines_of_every_journal(name: str) -> None:
    """The reports on lines and on entries are equal."""
    entries = read_journal(FOLDER / f"{name}.jsonl").entries
    assert build_report(iter(entries)) == build_report(entries)


def test_most_is_bounded() -> None:
    """A report keeps some dozen megabytes at most."""
    assert MOST_KEPT <= 32_000_000
