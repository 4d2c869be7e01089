"""Long journals: passed over, skimmed, searched for the run to resume, and pruned."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import JsonValue

import cuggino
from cuggino import events as ev
from cuggino.errors import RunNotResumable, StorageError
from cuggino.events import AgentMessage, Event, KnownState, Note, RunEnded, RunStarted
from cuggino.loops import LoopRunOptions
from cuggino.loops.frame.journal import RunRecorder, open_journal
from cuggino.loops.frame.resuming import latest_run_of
from cuggino.loops.watch.journal import conclude_runs
from cuggino.report import build_report, render_report, zone_at
from cuggino.runs import Runs, RunState, replay, run_details_json
from cuggino.runs.digests import DIGESTED, DigestFold, digest_of
from cuggino.storage import Workspace, find_run, list_journals, new_run_id, origin_of
from cuggino.storage.journal import (
    Journal,
    finished_stages,
    iter_entries,
    last_entry,
    prune,
    read_journal,
    reader,
    scan_journal,
    skim,
)
from tests.web.journals import AT

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
    path = long(workspace.journal, 80, ended=name != "find")
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
    [
        ("", "no complete line"),
        ('{"v":1,"se', "no complete line"),
        ("x\n", "a line is broken"),
        ('{"v":2}\n', "version 2"),
    ],
)
def test_foreign_files(tmp_path: Path, content: str, reason: str) -> None:
    """A file that is not a journal, or one of another version, is an error."""
    path = tmp_path / "r.jsonl"
    path.write_text(content)
    with pytest.raises(StorageError, match=reason):
        skimmed(path)


FOUND_AT = datetime(2026, 11, 21, 12, tzinfo=UTC)


def add_run(
    folder: Path, run_id: str, state: KnownState = "unfinished", *, age: float = 0, **fields: Any
) -> Path:
    """Return the journal of a run in this state, whose last entry is this many days old."""
    given = {"kind": "run", "command": "cuggino run", **fields}
    begun = FOUND_AT - timedelta(days=age + 1)
    journal = Journal.create(folder, RunStarted(run_id=run_id, **given), at=begun, sync=False)
    last: Event = AgentMessage(text="x") if state == "unfinished" else RunEnded(state=state)
    journal.append(last, at=FOUND_AT - timedelta(days=age))
    journal.close()
    return journal.path


def test_the_latest_that_is_unfinished(tmp_path: Path) -> None:
    """Without an ID it is the newest unfinished run of this loop outside of any watch."""
    add_run(tmp_path, "1")
    add_run(tmp_path, "2", "failed")
    add_run(tmp_path, "3", "approved")
    add_run(tmp_path, "4", kind="deliver")
    add_run(tmp_path, "5", item="a.md 1")
    add_run(tmp_path, "6", kind="watch")
    (tmp_path / "7.jsonl").write_text("{}\n", encoding="utf-8")
    assert "2" == find_run(tmp_path, None).run_id
    assert "4" == find_run(tmp_path, None, kind="deliver").run_id
    with pytest.raises(RunNotResumable, match="no unfinished run to resume"):
        find_run(tmp_path, None, kind="loop")


def test_by_a_unique_prefix(tmp_path: Path) -> None:
    """A unique prefix of the ID is enough."""
    add_run(tmp_path, "abc1")
    add_run(tmp_path, "abd2")
    assert "abc1" == find_run(tmp_path, "abc").run_id
    with pytest.raises(RunNotResumable, match=r"^2 runs begin with ab$"):
        find_run(tmp_path, "ab")
    with pytest.raises(RunNotResumable, match=r"^there is no run x$"):
        find_run(tmp_path, "x")


@pytest.mark.parametrize(
    ("state", "fields", "message", "hint"),
    [
        ("unfinished", {"kind": "watch"}, "1 is a watch", "which resumes it"),
        ("unfinished", {"kind": "loop"}, "1 is a run of `cuggino loop`", "cuggino loop --resume 1"),
        (
            "unfinished",
            {"item": "login.md 2"},
            "run 1 is for the backlog item login.md",
            "`cuggino watch` resumes it",
        ),
        ("spec_issue", {}, "run 1 has ended (spec issue)", "cuggino run TEXT"),
    ],
)
def test_a_run_that_cannot_be_resumed(
    state: KnownState, fields: dict[str, Any], message: str, hint: str, tmp_path: Path
) -> None:
    """The error has the reason and an alternative."""
    add_run(tmp_path, "1", state, **fields)
    with pytest.raises(RunNotResumable) as caught:
        find_run(tmp_path, "1")
    assert message == caught.value.message
    assert hint in (caught.value.hint or "")


def test_of_another_loop_that_has_ended(tmp_path: Path) -> None:
    """The hint is a command that starts a new run of the same loop."""
    add_run(tmp_path, "1", "approved", kind="deliver")
    with pytest.raises(RunNotResumable) as caught:
        find_run(tmp_path, "1", kind="deliver")
    assert "start a new one with `cuggino deliver`" == caught.value.hint


@pytest.mark.parametrize("text", ["", "{}\n", "no json\n"])
def test_a_foreign_file(text: str, tmp_path: Path) -> None:
    """A file that does not start like a run is ignored."""
    path = tmp_path / "1.jsonl"
    path.write_text(text, encoding="utf-8")
    assert origin_of(path) is None


def names(folder: Path) -> list[str]:
    return [path.stem for path in list_journals(folder)]


def test_by_count(tmp_path: Path) -> None:
    """The newest finished runs stay; unfinished ones do not count and all stay."""
    states: list[KnownState] = ["approved", "failed", "stalled", "unfinished", "ended", "quota"]
    paths = [add_run(tmp_path, str(number), state) for number, state in enumerate(states)]
    assert [paths[0]] == prune(tmp_path, now=FOUND_AT, days=30, runs=2, keep=())
    assert ["5", "4", "3", "2", "1"] == names(tmp_path)
    assert [] == prune(tmp_path, now=FOUND_AT, days=30, runs=2, keep=())


def test_by_age(tmp_path: Path) -> None:
    """Runs are pruned by the age of their last entry, even resumable ones."""
    states: list[KnownState] = ["approved", "unfinished"]
    for state in states:
        add_run(tmp_path, f"{state}-29", state, age=29.9)
        add_run(tmp_path, f"{state}-31", state, age=31)
    prune(tmp_path, now=FOUND_AT.replace(tzinfo=None), days=30, runs=100, keep=())
    assert ["unfinished-29", "approved-29"] == names(tmp_path)


def test_a_named_run_is_kept(tmp_path: Path) -> None:
    """A run that is named is kept despite its age and the count."""
    add_run(tmp_path, "1", "approved", age=99)
    add_run(tmp_path, "2", "approved", age=99)
    add_run(tmp_path, "3", "approved")
    prune(tmp_path, now=FOUND_AT, days=30, runs=1, keep={"1"})
    assert ["3", "1"] == names(tmp_path)


def is_old(path: Path, content: str) -> Path:
    """Write a file that is older than any limit."""
    path.write_text(content)
    when = (FOUND_AT - timedelta(days=99)).timestamp()
    os.utime(path, (when, when))
    return path


@pytest.mark.parametrize("content", ["?\n", "", '{"v":', '{"v":1}\n', '{"type":"user"}\n'])
@pytest.mark.parametrize("name", ["notes", "5f0c2b1e-6d1f-4c5e-9d1e-0123456789ab"])
def test_files_of_other_programs_stay(tmp_path: Path, name: str, content: str) -> None:
    """A file that is not a journal stays, however old it is."""
    is_old(tmp_path / f"{name}.jsonl", content)
    assert [] == prune(tmp_path, now=FOUND_AT, days=30, runs=1, keep=())


def test_the_journal_of_another_name_stays(tmp_path: Path) -> None:
    """A copy of a journal under another name belongs to a person."""
    path = add_run(tmp_path, "1", "approved", age=99)
    path.rename(tmp_path / "copy.jsonl")
    assert [] == prune(tmp_path, now=FOUND_AT, days=30, runs=1, keep=())


@pytest.mark.parametrize(
    ("content", "is_journal"),
    [
        ("", True),
        ('{"v":1,"seq":0', True),
        ('{"v":1,"seq":0}\n', False),
        ("{", False),
        ("?\n", False),
    ],
)
def test_a_torn_beginning(tmp_path: Path, content: str, is_journal: bool) -> None:
    """The remains of a process killed as it writes the first entry are pruned."""
    path = is_old(tmp_path / f"{new_run_id()}.jsonl", content)
    later = FOUND_AT + timedelta(days=99)
    assert ([path] if is_journal else []) == prune(tmp_path, now=later, days=30, runs=1, keep=())


def test_links_stay(tmp_path: Path) -> None:
    """Neither a link nor its target is pruned."""
    elsewhere = add_run(tmp_path / "elsewhere", "1", "approved", age=99)
    journals = tmp_path / ".cuggino" / "journal"
    journals.mkdir(parents=True)
    (journals / "1.jsonl").symlink_to(elsewhere)
    assert [] == prune(journals, now=FOUND_AT, days=30, runs=1, keep=())
    assert (journals / "1.jsonl").exists()


@pytest.mark.parametrize("link", [".cuggino", ".cuggino/journal"])
def test_nothing_is_pruned_through_a_link(tmp_path: Path, link: str) -> None:
    """A folder of journals, or a workspace, may be a link to the journals of another project."""
    other = tmp_path / "other"
    path = add_run(other / ".cuggino" / "journal", "1", "approved", age=99)
    place = tmp_path / "project" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(other / link)
    folder = tmp_path / "project" / ".cuggino" / "journal"
    assert ["1"] == names(folder)
    assert [] == prune(folder, now=FOUND_AT, days=30, runs=1, keep=())
    assert path.exists()


def test_errors_do_not_stop_pruning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be removed stays, and others go; a missing folder is fine."""
    stuck, gone = (
        add_run(tmp_path, "2", "approved", age=99),
        add_run(tmp_path, "1", "approved", age=99),
    )
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path == stuck:
            raise PermissionError
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    assert [gone] == prune(tmp_path, now=FOUND_AT, days=30, runs=1, keep=())
    assert ["2"] == names(tmp_path)
    assert [] == prune(tmp_path / "missing", now=FOUND_AT, days=30, runs=1, keep=())
    assert [] == prune(stuck, now=FOUND_AT, days=30, runs=1, keep=())


@pytest.mark.parametrize("size", [10, 70_000, 1_000_000])
@pytest.mark.parametrize("torn", [b"", b'{"v":1', b"x" * 70_000])
def test_the_last_entry(tmp_path: Path, size: int, torn: bytes) -> None:
    """The last whole entry is found from the end, for any length of it and of a torn line."""
    path = add_run(tmp_path, "1", "unfinished")
    journal = Journal.open(path)
    entry = journal.append(Note(content="x" * size), at=FOUND_AT)
    journal.close()
    with path.open("ab") as file:
        file.write(torn)
    assert entry == last_entry(path)
