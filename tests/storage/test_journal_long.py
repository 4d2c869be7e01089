"""Long journals: each reader passes over the entries, and opening a run reads no other journal."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import cuggino
from cuggino import events as ev
from cuggino.errors import StorageError
from cuggino.loops import LoopRunOptions
from cuggino.loops.frame.journal import RunRecorder, open_journal
from cuggino.loops.frame.resuming import latest_run_of
from cuggino.loops.watch.journal import conclude_runs
from cuggino.report import build_report, render_report, zone_at
from cuggino.runs import Runs, RunState, replay, run_details_json
from cuggino.runs.digests import DIGESTED, DigestFold, digest_of
from cuggino.storage import Workspace, find_run, list_journals, new_run_id
from cuggino.storage.journal import (
    Journal,
    finished_stages,
    iter_entries,
    prune,
    read_journal,
    reader,
    scan_journal,
)

NOW = datetime.now(UTC)
WORK: list[ev.Event] = [
    ev.AgentMessage(text="words"),
    ev.ToolCall(name="Bash", id="t1"),
    ev.ToolResult(name="t1", output="x"),
    ev.UsageUpdate(usage=ev.Usage(input_tokens=1)),
]


def start(folder: Path, run_id: str = "", *, at: datetime = NOW, item: str = "") -> Journal:
    """Return the journal of a run that has begun."""
    started = ev.RunStarted(
        run_id=run_id or new_run_id(), kind="run", command="cuggino run", item=item or None
    )
    return Journal.create(folder, started, at=at, sync=False, fold=DigestFold())


def add(folder: Path, state: ev.EndState = "approved", **given: Any) -> Path:
    """Return the journal of a run that has ended."""
    journal = start(folder, **given)
    journal.append(ev.RunEnded(state=state), at=given.get("at", NOW))
    journal.close()
    return journal.path


def long(folder: Path, repeated: int, *, ended: bool = True) -> Path:
    """Return the journal of a run of two stages, of two processes, with many events in each."""
    journal = start(folder)
    for number, name in enumerate(("planning", "implementing"), 1):
        stage = f"{name}#{number}"
        journal.append(ev.IterationStart(iteration=number, max_iterations=9), at=NOW)
        journal.append(ev.PlanningStart(iteration=number), at=NOW)
        journal.append(ev.StageStarted(name=name), at=NOW, stage=stage)
        for second in range(repeated):
            for event in WORK:
                journal.append(event, at=NOW + timedelta(seconds=second), stage=stage)
        journal.append(ev.SessionEnded(outcome="completed", cost_usd=0.5), at=NOW, stage=stage)
        journal.append(ev.StageFinished(outcome={"value": number}), at=NOW, stage=stage)
        if number == 1:
            journal.append(ev.RunContinued(), at=NOW)
    if ended:
        journal.append(ev.RunEnded(state="approved"), at=NOW)
    journal.close()
    return journal.path


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the list of files that are read, as it grows."""
    reads: list[Path] = []
    path_open = Path.open

    def note(path: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        reads.append(path)
        return path_open(path, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", note)
    return reads


def journals(reads: list[Path]) -> list[str]:
    return [path.stem for path in reads if path.suffix == ".jsonl"]


@pytest.fixture
def most_alive(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return a function that returns how many of the entries' events were alive at once."""
    alive: set[int] = set()
    most = 0
    parse = reader._entry

    def note(raw: object) -> Any:
        nonlocal most
        entry = parse(raw)
        alive.add(number := id(entry.event))
        weakref.finalize(entry.event, alive.discard, number)
        most = max(most, len(alive))
        return entry

    monkeypatch.setattr(reader, "_entry", note)
    gc.collect(1)  # so that none is due at once
    return lambda: most


def reopen(path: Path) -> None:
    journal = Journal.open(path, sync=False)
    RunRecorder(journal, scan_journal(path))
    journal.close()


READERS: dict[str, Callable[[Path], object]] = {
    "digest": digest_of,
    "totals": lambda path: RunState.of(scan_journal(path).entries).totals,
    "stages": lambda path: finished_stages(scan_journal(path)),
    "resume": reopen,
    "find": lambda path: find_run(path.parent, None),
    "show": lambda path: run_details_json(Runs(path.parents[2]).find()),
    "replay": lambda path: cuggino.run(replay(path)),
    "report": lambda path: build_report(scan_journal(path).entries),
    "page": lambda path: render_report(build_report(scan_journal(path).entries), zone=zone_at(NOW)),
    "strict": read_journal,
}


@pytest.mark.parametrize("name", READERS)
def test_no_reader_holds_the_entries(
    workspace: Workspace, name: str, most_alive: Callable[[], int]
) -> None:
    """However long the journal is, only some entries are in memory at the same time."""
    path = long(workspace.journal, 200, ended=name != "find")
    path.parent.with_name("digests").joinpath(f"{path.stem}.json").unlink()
    READERS[name](path)
    assert 0 < most_alive() <= 30


@pytest.mark.parametrize("tags", [(), ("UsageUpdate",), tuple(DIGESTED)])
@pytest.mark.parametrize("loop", [False, True])
def test_a_choice_of_the_entries(tmp_path: Path, tags: tuple[str, ...], loop: bool) -> None:
    """A choice has the tags, the entries of no stage, and the ends of each process."""
    entries = scan_journal(long(tmp_path, 5)).entries
    known = [*entries]
    (again,) = (entry.seq for entry in known if isinstance(entry.event, ev.RunContinued))
    ends = (1, again - 1, again, len(known))
    wanted = [
        entry
        for entry in known
        if entry.event.tag in tags or entry.seq in ends or (loop and entry.stage is None)
    ]
    assert wanted == [*entries.only(tags, loop=loop)]
    assert len(wanted) == len(entries.only(tags, loop=loop))
    assert len(known) == len(entries) == entries[-1].seq


def test_slices_are_read_later(tmp_path: Path, opened: list[Path]) -> None:
    """A slice of the entries is that of the list, and opens the file when it is iterated."""
    entries = scan_journal(long(tmp_path, 3)).entries
    known = tuple(entries)
    opened.clear()
    parts = [entries[5:], entries[:4], entries[-3:], entries[2:-2], entries[9:3], entries[99:]]
    parts.append(parts[0][3:6])
    assert [] == opened
    wanted = [known[5:], known[:4], known[-3:], known[2:-2], (), (), known[8:11]]
    assert wanted == [tuple(part) for part in parts]
    assert [len(part) for part in wanted] == [len(part) for part in parts]
    assert known[1:9:3] == entries[1:9:3]
    assert known == entries


def test_later_entries_are_not_among_them(tmp_path: Path) -> None:
    """A journal that grows after it was read does not change in memory."""
    path = long(tmp_path, 3)
    before = read_journal(path)
    known, totals = tuple(before.entries), RunState.of(before.entries).totals
    journal = Journal.open(path, sync=False)
    journal.append(ev.RunContinued(), at=NOW)
    journal.append(ev.SessionEnded(outcome="completed", cost_usd=8), at=NOW)
    journal.close()
    assert (known, totals) == (tuple(before.entries), RunState.of(before.entries).totals)
    assert known[-1] == [*before.entries.only(())][-1]


def test_a_gap_is_found_without_parsing(tmp_path: Path) -> None:
    """A missing line is found by the numbers of the others, also by who skips them."""
    path = long(tmp_path, 3)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:9] + lines[10:]))
    for read in (scan_journal, Journal.open, digest_of):
        with pytest.raises(StorageError, match="line 10 is broken: out of order, with number 11"):
            read(path)


def test_known_entries_are_not_counted_again(tmp_path: Path) -> None:
    """A journal opened with the count of its first entries counts the others."""
    path = long(tmp_path, 3, ended=False)
    known = DigestFold(scan_journal(path).entries[:9].only(DIGESTED))  # type: ignore[attr-defined]
    journal = Journal.open(path, sync=False, fold=known)
    whole = scan_journal(path)
    assert (whole.last.seq, whole.run_id) == (journal.seq, journal.run_id)
    journal.append(ev.RunEnded(state="approved"), at=NOW)
    journal.close()
    assert (
        RunState.of(read_journal(path).entries).totals
        == known.state.totals
        == digest_of(path).totals
    )


def test_opening_a_run_reads_no_other_journal(workspace: Workspace, opened: list[Path]) -> None:
    """Opening a run reads no other journal, nor its digest; resuming it reads its own."""
    options = LoopRunOptions(cwd=workspace.folder.parent, focus="x")
    states: list[ev.EndState] = ["approved", "quota", "interrupted", "stalled"]
    for state in states:
        add(workspace.journal, state)
    start(workspace.journal).close()
    opened.clear()
    first = open_journal(workspace, options, new_run_id(), None, at=NOW)
    first.append(ev.RunEnded(state="quota"), at=NOW)
    first.close()
    assert [] == opened
    known = scan_journal(first.path)
    open_journal(workspace, options, first.run_id, known, at=NOW).close()
    assert {first.run_id} == set(journals(opened))


def test_too_many_journals_are_found_by_digests(workspace: Workspace, opened: list[Path]) -> None:
    """Digests show which of many journals are too many, and are read once in a process."""
    paths = [add(workspace.journal) for _ in range(6)]
    resumable = add(workspace.journal, "quota")
    opened.clear()
    assert paths[2::-1] == prune(workspace.journal, now=NOW, days=30, runs=3)
    assert [] == journals(opened)
    assert opened
    opened.clear()
    assert [] == prune(workspace.journal, now=NOW, days=30, runs=3)
    assert [] == opened
    assert {*paths[3:], resumable} == {*list_journals(workspace.journal)}


def test_age_is_read_where_the_name_is_old(tmp_path: Path, opened: list[Path]) -> None:
    """A run that began long ago is removed by its last entry, and a younger one is not read."""
    old = NOW - timedelta(days=31)

    def name(at: datetime) -> str:
        return str(UUID(int=int(at.timestamp() * 1000) << 80 | 7 << 76 | 2 << 62))

    gone = add(tmp_path, run_id=name(old), at=old)
    resumed = add(tmp_path, run_id=name(old - timedelta(days=1)), at=NOW)
    young = add(tmp_path, run_id=name(NOW), at=old)
    opened.clear()
    assert [gone] == prune(tmp_path, now=NOW, days=30, runs=9)
    assert {gone.stem, resumed.stem} == set(journals(opened))
    assert [young, resumed] == list_journals(tmp_path)


def test_a_watch_reads_the_beginning_of_a_run_once(
    workspace: Workspace, opened: list[Path]
) -> None:
    """A watch that looks for the run of an item knows the runs that it has read before."""
    runs = [add(workspace.journal, item=f"{number}.md x") for number in range(3)]
    opened.clear()
    assert latest_run_of(workspace, "9.md x") is None
    assert sorted(run.stem for run in runs) == sorted(journals(opened))
    add(workspace.journal, item="3.md x")
    opened.clear()
    assert latest_run_of(workspace, "9.md x") is None
    assert 1 == len(opened)
    found = latest_run_of(workspace, "1.md x")
    assert found is not None
    assert runs[1] == found.path


def test_a_concluded_run_is_not_read_by_a_watch(workspace: Workspace, opened: list[Path]) -> None:
    """Only runs whose process was killed are read for an end that is to be recorded."""
    states: list[ev.EndState] = ["approved", "quota", "failed"]
    for state in states:
        add(workspace.journal, state)
    killed = start(workspace.journal)
    killed.close()
    opened.clear()
    conclude_runs(workspace)
    assert {killed.run_id} == set(journals(opened))


def test_an_ended_run_is_not_read_to_resume_the_latest(
    workspace: Workspace, opened: list[Path]
) -> None:
    """The latest unfinished run is found without reading those that ended after it."""
    wanted = long(workspace.journal, 3, ended=False)
    ended = add(workspace.journal)
    opened.clear()
    assert wanted == find_run(workspace.journal, None).path
    assert 1 == journals(opened).count(ended.stem)  # its beginning
    assert [*iter_entries(wanted)] == [*find_run(workspace.journal, None).entries]
