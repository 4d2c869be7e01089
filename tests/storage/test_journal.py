"""The journal of a run: line format, recovery, durability, full disks and the size limit."""

from __future__ import annotations

import errno
import io
import json
import os
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from cuggino import events as ev
from cuggino.errors import StorageError
from cuggino.events import Progress, RunContinued, RunStarted, dump_event_bytes
from cuggino.storage.journal import EVENT_LIMIT, Journal, iter_entries, list_journals, read_journal
from tests.events.generated import EVENTS, events_of

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
STARTED = RunStarted(run_id="0193-a", kind="run", command="cuggino run", focus="login")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Return a new journal in a folder that does not exist yet."""
    return Journal.create(tmp_path / ".cuggino" / "journal", STARTED, at=AT)


def events(path: Path) -> list[ev.Event]:
    return [entry.event for entry in iter_entries(path)]


def test_the_lines(journal: Journal) -> None:
    """An entry is one line: version, number, UTC time, stage, event."""
    berlin = timezone(timedelta(hours=1))
    journal.append(ev.Progress(content="Ä\n"), at=AT.astimezone(berlin), stage="implementing#3")
    journal.append(ev.RunEnded(state="approved"), at=AT.replace(tzinfo=None))
    journal.close()
    lines = journal.path.read_text(encoding="utf-8").splitlines()
    head = '{"v":1,"seq":1,"at":"2026-11-21T12:00:00.000000Z","stage":null,"event":{"_tag":'
    assert lines[0].startswith(f'{head}"RunStarted","item":null,"run_id":"0193-a"')
    assert (
        '{"v":1,"seq":2,"at":"2026-11-21T12:00:00.000000Z","stage":"implementing#3",'
        '"event":{"_tag":"Progress","content":"Ä\\n"}}'
    ) == lines[1]
    assert [1, 2, 3] == [json.loads(line)["seq"] for line in lines]
    assert ["0193-a.jsonl"] == [path.name for path in list_journals(journal.path.parent)]


def test_reading(journal: Journal) -> None:
    """Reading gives the appended entries, the start, and the end once it is last."""
    entries = [journal.append(ev.StageStarted(name="plan"), at=AT, stage="plan#1")]
    assert ("unfinished", True) == (
        read_journal(journal.path).state,
        read_journal(journal.path).resumable,
    )
    entries.append(journal.append(ev.RunEnded(state="quota", message="limit"), at=AT))
    found = read_journal(journal.path)
    assert tuple(entries) == found.entries[1:]
    assert (STARTED, "0193-a", False) == (found.started, found.run_id, found.torn)
    assert (ev.RunEnded(state="quota", message="limit"), "quota", True) == (
        found.ended,
        found.state,
        found.resumable,
    )
    journal.append(ev.RunContinued(), at=AT)
    assert read_journal(journal.path).ended is None
    journal.append(ev.RunEnded(state="stalled"), at=AT)
    assert not read_journal(journal.path).resumable
    journal.close()


def test_only_the_user_may_read(journal: Journal) -> None:
    """The file has mode 0600 and its folder 0700; the parent folder keeps the default mode."""
    journal.close()
    folder, made_likewise = journal.path.parent, journal.path.parent.parent.with_name("usual")
    made_likewise.mkdir()
    paths = (journal.path, folder, folder.parent)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in paths]
    assert [0o600, 0o700, stat.S_IMODE(made_likewise.stat().st_mode)] == modes


def test_a_journal_is_never_overwritten(journal: Journal) -> None:
    """A second run with the same ID is rejected, and the first one's journal stays."""
    before = journal.path.read_bytes()
    with pytest.raises(StorageError, match=r"0193-a\.jsonl: File exists") as caught:
        Journal.create(journal.path.parent, STARTED, at=AT)
    assert "write journal" == caught.value.operation
    assert before == journal.path.read_bytes()
    journal.close()


def test_resuming(journal: Journal) -> None:
    """An opened journal continues its numbers, and its run keeps its ID."""
    journal.append(ev.StageStarted(name="plan"), at=AT, stage="plan#1")
    journal.close()
    journal.close()
    again = Journal.open(journal.path)
    assert ("0193-a", 2) == (again.run_id, again.seq)
    assert 3 == again.append(ev.RunContinued(), at=AT).seq
    again.close()
    assert [1, 2, 3] == [entry.seq for entry in iter_entries(journal.path)]


def test_a_torn_last_line_at_every_byte(tmp_path: Path) -> None:
    """A last line torn at any byte is ignored, cut on open, and numbering continues."""
    folder = tmp_path / "journal"
    journal = Journal.create(folder, STARTED, at=AT, sync=False)
    journal.append(ev.StageStarted(name="plan"), at=AT, stage="plan#1")
    good = journal.path.read_bytes()
    journal.append(ev.Progress(content="Ä € 🎉 \\ }\n"), at=AT, stage="plan#1")
    journal.close()
    whole = journal.path.read_bytes()
    for length in range(len(good), len(whole) + 1):
        torn = length not in (len(good), len(whole))
        journal.path.write_bytes(whole[:length])
        found = read_journal(journal.path)
        assert (torn, 3 if length == len(whole) else 2) == (found.torn, len(found.entries))
        assert whole[:length] == journal.path.read_bytes(), "reading changes nothing"
        again = Journal.open(journal.path, sync=False)
        assert (whole if length == len(whole) else good) == journal.path.read_bytes()
        again.append(ev.RunContinued(), at=AT)
        again.close()
        last = read_journal(journal.path)
        assert not last.torn
        assert ev.RunContinued() == last.entries[-1].event
        assert len(found.entries) + 1 == last.entries[-1].seq


@pytest.mark.parametrize("rest", [b"\0" * 4096, b'{"v":1,"se\n', b"\xff\xfe\n", b"\n"])
def test_other_damage_of_a_crash(journal: Journal, rest: bytes) -> None:
    """A last line that is not JSON is cut like a torn one, with or without a newline."""
    journal.close()
    good = journal.path.read_bytes()
    journal.path.write_bytes(good + rest)
    assert read_journal(journal.path).torn
    Journal.open(journal.path).close()
    assert good == journal.path.read_bytes()


LINE = '{"v":1,"seq":2,"at":"2026-11-21T12:00:00Z","stage":null,"event":{"_tag":"RunContinued"}}'


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (LINE[:-1], "line 2 is broken: not JSON"),
        ("", "line 2 is broken: not JSON"),
        ("[]", "line 2 is broken: not a journal entry"),
        (LINE.replace('"at"', '"on"'), "line 2 is broken: not a journal entry"),
        (LINE.replace('"_tag"', '"tag"'), "line 2 is broken: not a journal entry"),
        (LINE.replace(":2,", ":3,"), "line 2 is broken: out of order, with number 3"),
        (LINE.replace("00Z", "00"), "line 2 is broken: its time has no zone"),
        (LINE.replace("2026-", "soon"), "line 2 is broken: Invalid isoformat"),
        (LINE.replace("Continued", "Ended"), "line 2 is broken: .*RunEnded state"),
        (LINE.replace('"v":1', '"v":2'), "line 2 has version 2 .* this cuggino supports version 1"),
    ],
)
@pytest.mark.parametrize("read", [read_journal, Journal.open])
def test_a_broken_line_in_the_middle(journal: Journal, line: str, words: str, read: Any) -> None:
    """A broken line before others is an error that names it, and nothing is changed."""
    journal.close()
    with journal.path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n{LINE.replace(':2,', ':3,')}\n")
    before = journal.path.read_bytes()
    with pytest.raises(StorageError, match=words) as caught:
        read(journal.path)
    assert "read journal" == caught.value.operation
    assert str(journal.path) in caught.value.message
    assert before == journal.path.read_bytes()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "has no complete line"),
        (LINE[:20], "has no complete line"),
        (LINE.replace(":2,", ":1,") + "\n", "line 1 is broken: a journal begins with RunStarted"),
        (LINE.replace('"v":1', '"v":2') + "\n", "line 1 has version 2"),
    ],
)
def test_no_journal(tmp_path: Path, content: str, words: str) -> None:
    """A file without a start, or of another version, cannot be resumed."""
    path = tmp_path / "a.jsonl"
    path.write_text(content, encoding="utf-8")
    for read in (read_journal, Journal.open):
        with pytest.raises(StorageError, match=words):
            read(path)
    assert content == path.read_text(encoding="utf-8")


def test_unknown_events_survive(journal: Journal) -> None:
    """An event of a newer version is read as `UnknownEvent` with all its data."""
    event = ev.UnknownEvent(raw={"_tag": "Tomorrow", "x": [1, None]})
    journal.append(event, at=AT)
    journal.close()
    assert event == events(journal.path)[1]
    Journal.open(journal.path).close()
    assert event == events(journal.path)[1]


def test_half_a_surrogate_pair(journal: Journal) -> None:
    """Text that UTF-8 cannot encode is restored."""
    said = [ev.AgentMessage(text="\ud83d!"), ev.StageFinished(outcome={"value": ["\udc80"]})]
    for event in said:
        journal.append(event, at=AT, stage="a\ud800#1")
    journal.close()
    assert said == events(journal.path)[1:]


def test_syncing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisive entries are synced to disk, others are not, and without `sync` none is."""
    synced: list[int] = []
    monkeypatch.setattr("cuggino.storage.journal.writer.os.fsync", synced.append)
    counts: dict[bool, list[int]] = {}
    started, finished = ev.StageStarted(name="a"), ev.StageFinished(outcome={"value": "x"})
    commit = ev.StageFinished(outcome={"_tag": "CommitPerformed"})
    said = ev.AgentMessage(text="x")
    appended = (started, finished, started, said, finished, started, commit)
    for sync in (True, False):
        journal = Journal.create(
            tmp_path, STARTED.model_copy(update={"run_id": str(sync)}), at=AT, sync=sync
        )
        counts[sync] = [len(synced)]
        for event in (*appended, ev.RunEnded(state="approved")):
            journal.append(event, at=AT)
            counts[sync].append(len(synced))
        journal.close()
    assert [2, 2, 2, 2, 2, 3, 3, 4, 5] == counts[True], "the file, its folder, what decides"
    assert [5] * 9 == counts[False]


def test_the_work_of_a_stage_is_on_the_disk_before_its_end(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that crashes keeps no end of a stage whose files are lost."""
    module = "cuggino.storage.journal.writer"
    lengths: list[tuple[str, int]] = []

    def note(name: str) -> Callable[[int], None]:
        return lambda file: lengths.append((name, os.fstat(file).st_size))

    journal.append(ev.StageStarted(name="a"), at=AT)
    before = journal.path.stat().st_size
    monkeypatch.setattr(f"{module}._syncfs", note("all"))
    monkeypatch.setattr(f"{module}.os.fsync", note("journal"))
    journal.append(ev.StageFinished(outcome={"_tag": "CommitPerformed"}), at=AT)
    assert [("all", before), ("journal", journal.path.stat().st_size)] == lengths
    journal.append(ev.RunEnded(state="approved"), at=AT)
    assert "journal" == lengths[-1][0] and 3 == len(lengths)
    journal.close()


def test_an_interrupted_write(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next entry replaces one whose write was interrupted, with the same number."""
    write = journal._write

    def interrupted(line: bytes) -> None:
        write(line)
        raise KeyboardInterrupt

    monkeypatch.setattr(journal, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        journal.append(ev.RunContinued(), at=AT)
    monkeypatch.undo()
    journal.append(ev.RunEnded(state="interrupted"), at=AT)
    journal.close()
    assert [STARTED, ev.RunEnded(state="interrupted")] == events(journal.path)


def test_no_file_stays_open(journal: Journal) -> None:
    """Reading half of a journal, or failing to open one, leaves no file open."""
    journal.close()
    before = len(list(Path("/dev/fd").iterdir()))
    entries = iter_entries(journal.path)
    next(entries)
    entries.close()
    with journal.path.open("ab") as file:
        file.write(b"x\nx\n")
    with pytest.raises(StorageError):
        Journal.open(journal.path)
    assert before == len(list(Path("/dev/fd").iterdir()))


@pytest.mark.real_agent
@settings(
    max_examples=2 * settings().max_examples,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    said=st.lists(
        st.tuples(
            st.sampled_from(EVENTS).flatmap(events_of),
            st.datetimes(timezones=st.just(UTC)),
            st.none() | st.text(),
        ),
        max_size=8,
    )
)
def test_any_events_round_trip(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[ev.Event, datetime, str | None]]
) -> None:
    """Any events at any times are read back, by either way of reading."""
    journal = Journal.create(tmp_path_factory.mktemp("journal"), STARTED, at=AT, sync=False)
    entries = [journal.append(event, at=at, stage=stage) for event, at, stage in said]
    journal.close()
    assert said == [(e.event, e.at, e.stage) for e in entries]
    assert tuple(entries) == read_journal(journal.path).entries[1:]
    assert entries == list(iter_entries(journal.path))[1:]


TEXT = "0123456789" * 200_000


def written(tmp_path: Path, event: ev.Event) -> ev.Event:
    """Write the event to a journal, and return what is read from it."""
    journal = Journal.create(tmp_path, STARTED, at=AT)
    entry = journal.append(event, at=AT, stage="implementing#1")
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
    assert EVENT_LIMIT * 2 < (tmp_path / "0193-a.jsonl").stat().st_size * 3 <= EVENT_LIMIT * 4


@pytest.mark.parametrize(
    "event",
    [
        ev.AgentMessage(text=TEXT, message_id="m"),
        ev.Thinking(text="é" * 300_000),
        ev.ToolResult(name="t", output="\0" * 300_000),
        ev.ToolResult(name="t", output="\ud83d" * 300_000),
        ev.ToolCall(name="Write", input={"file_path": "a", "content": TEXT}, id="t"),
        ev.ToolCall(name="Edit", input={"edits": [{"new_string": TEXT[:9000]}] * 90}, id="t"),
        ev.ToolCall(name="mcp__x__y", input={"numbers": list(range(40_000))}, id="t"),
        ev.ToolCall(name="mcp__x__y", input={f"k{n}": "word" for n in range(20_000)}, id="t"),
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


class Disk(io.FileIO):
    """A disk with limited room: a write takes what fits, and the next one fails."""

    room = 1 << 20

    def write(self, data: Any) -> int:
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = super().write(bytes(data)[: self.room])
        self.room -= taken
        return taken


@pytest.mark.parametrize("room", [0, 1, 50, 100])
def test_a_full_disk(tmp_path: Path, room: int) -> None:
    """A partial line on a full disk is cut immediately, and writing resumes with free space."""
    made = Journal.create(tmp_path, STARTED, at=AT)
    made.close()
    good = made.path.read_bytes()
    disk = Disk(made.path, "ab")
    journal = Journal(made.path, disk, run_id="0193-a", seq=1, length=len(good), sync=True)
    disk.room = room
    for _ in range(2):
        with pytest.raises(StorageError, match=r"0193-a\.jsonl: No space left") as caught:
            journal.append(Progress(content="x" * 200), at=AT)
        assert "write journal" == caught.value.operation
        assert good == made.path.read_bytes()
    disk.room = 1 << 20
    assert 2 == journal.append(Progress(content="small"), at=AT).seq
    journal.close()
    assert [STARTED, Progress(content="small")] == events(made.path)


class StubbornDisk(Disk):
    """A full disk that cannot truncate either."""

    def truncate(self, size: int | None = None, /) -> int:
        if self.room == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().truncate(size)


def test_a_disk_that_cannot_truncate(tmp_path: Path) -> None:
    """A partial line that cannot be cut immediately is cut before the next write."""
    made = Journal.create(tmp_path, STARTED, at=AT)
    made.close()
    good = made.path.read_bytes()
    disk = StubbornDisk(made.path, "ab")
    journal = Journal(made.path, disk, run_id="0193-a", seq=1, length=len(good), sync=True)
    disk.room = 10
    with pytest.raises(StorageError, match="No space left"):
        journal.append(RunContinued(), at=AT)
    assert len(good) + 10 == made.path.stat().st_size
    with pytest.raises(StorageError, match="Input/output error"):
        journal.append(RunContinued(), at=AT)
    disk.room = 1 << 20
    journal.append(RunContinued(), at=AT)
    journal.close()
    assert [STARTED, RunContinued()] == events(made.path)


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Limit the files that this process writes to `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_no_room_for_the_start(tmp_path: Path) -> None:
    """A journal whose first line cannot be written does not exist."""
    with file_size_limit(5), pytest.raises(StorageError, match="File too large"):
        Journal.create(tmp_path, STARTED, at=AT)
    assert [] == list(tmp_path.iterdir())


def test_a_journal_appears_with_its_first_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks while the first line goes to the disk sees no journal, not an empty one."""
    seen: list[list[Path]] = []
    monkeypatch.setattr("os.fsync", lambda _: seen.append(list_journals(tmp_path)))
    journal = Journal.create(tmp_path, STARTED, at=AT)
    journal.close()
    assert [[], [journal.path]] == seen
    assert [STARTED] == events(journal.path)


def test_a_limit_of_the_system(tmp_path: Path) -> None:
    """A file size limit hit within a line leaves only whole lines."""
    journal = Journal.create(tmp_path, STARTED, at=AT)
    good = journal.path.read_bytes()
    with file_size_limit(len(good) + 100), pytest.raises(StorageError, match="File too large"):
        journal.append(Progress(content="x" * 200), at=AT)
    assert good == journal.path.read_bytes()
    journal.append(RunContinued(), at=AT)
    journal.close()
    assert [STARTED, RunContinued()] == events(journal.path)


def test_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    """A journal without a possible folder is an error with the path of the file."""
    (tmp_path / "journal").write_text("a file\n")
    with pytest.raises(StorageError, match=r"journal/0193-a\.jsonl: ") as caught:
        Journal.create(tmp_path / "journal", STARTED, at=AT)
    assert "write journal" == caught.value.operation
