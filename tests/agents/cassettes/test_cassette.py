"""The cassette file: reading back what was written, and reporting damaged files."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import assume, given, strategies as st

from cuggino.agents.cassettes.cassette import (
    EventTold,
    FilesChanged,
    FileState,
    Header,
    SessionBegan,
    SessionOver,
    check_new,
    read_cassette,
    write_line,
)
from cuggino.agents.cassettes.masking import Masker
from cuggino.agents.cassettes.places import Places, Writing
from cuggino.errors import CassetteError, StorageError

HEADER = Header(cuggino="1", agent="claude", recorded_at=datetime(2026, 1, 2, tzinfo=UTC))
BEGAN = SessionBegan(session=1, role="planning", turn=1, prompt="Plan.")


def event(n: int, text: str) -> EventTold:
    return EventTold(session=1, n=n, at=float(n), event={"_tag": "AgentMessage", "text": text})


OVER = SessionOver(session=1, n=9, at=9.0, how="completed")
LINES = (HEADER, BEGAN, event(1, "è \udc80 漢"), event(2, "two"), OVER)


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    path = tmp_path / "c.jsonl"
    for line in LINES:
        write_line(path, line)
    return path


def broken(path: Path) -> CassetteError:
    with pytest.raises(CassetteError) as caught:
        read_cassette(path)
    assert caught.value.hint
    assert 2 == caught.value.code
    return caught.value


def test_written_lines_can_be_read(cassette: Path) -> None:
    """Lines round-trip, including lone surrogates; only the user may read the file."""
    header, (session,) = read_cassette(cassette)
    assert (HEADER, BEGAN, OVER) == (header, session.began, session.over)
    assert list(LINES[2:4]) == session.lines
    assert 0o600 == stat.S_IMODE(cassette.stat().st_mode)


def test_lines_are_sorted_by_number(tmp_path: Path) -> None:
    """Lines written later than their place in the session are sorted into it."""
    path = tmp_path / "c.jsonl"
    for line in (HEADER, BEGAN, event(3, "c"), event(1, "a"), event(2, "b")):
        write_line(path, line)
    (session,) = read_cassette(path).sessions
    assert [1, 2, 3] == [line.n for line in session.lines]
    assert session.over is None


def test_a_truncated_last_line_is_dropped(cassette: Path) -> None:
    """A cassette truncated anywhere in its last line is read without that line."""
    whole = cassette.read_bytes()
    start = whole.rstrip(b"\n").rfind(b"\n") + 1
    for end in range(start, len(whole) - 1):
        cassette.write_bytes(whole[:end])
        (session,) = read_cassette(cassette).sessions
        assert session.over is None
        assert 2 == len(session.lines)
    cassette.write_bytes(whole[:-1])
    assert OVER == read_cassette(cassette).sessions[0].over


def test_unknown_fields_are_ignored(cassette: Path) -> None:
    """Fields added by a later version of the same format are ignored."""
    more = [
        json.dumps({**json.loads(line), "more": 1}) for line in cassette.read_text().splitlines()
    ]
    cassette.write_text("\n".join(more) + "\n")
    assert list(LINES[2:4]) == read_cassette(cassette).sessions[0].lines


def test_a_missing_cassette(tmp_path: Path) -> None:
    """The error for a missing file names its path."""
    assert f"cannot read the cassette {tmp_path / 'no'}: No such file or directory" == str(
        broken(tmp_path / "no")
    )


def test_a_newer_cassette(cassette: Path) -> None:
    """A cassette with a newer format version is rejected with a clear error."""
    first, _, rest = cassette.read_text().partition("\n")
    cassette.write_text(json.dumps({**json.loads(first), "version": 7}) + "\n" + rest)
    assert "has version 7, but this cuggino supports up to 1" in str(broken(cassette))


@pytest.mark.parametrize("content", ["", "\n\n", "{}\n", "[1]\n", '{"kind": "end"}\n', "nonsense"])
def test_a_file_that_is_not_a_cassette(tmp_path: Path, content: str) -> None:
    """A file without the header of a cassette is rejected."""
    path = tmp_path / "c"
    path.write_text(content)
    assert f"the cassette {path}" in str(broken(path))


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "7",
        '{"kind": "other"}',
        '{"kind": "event", "session": 1}',
        '{"kind": "event", "session": 5, "n": 1, "at": 0, "event": {}}',
        '{"kind": "session", "session": 1, "prompt": "again"}',
    ],
)
def test_a_broken_line(cassette: Path, line: str) -> None:
    """An unreadable line in the middle, or one without a session, is reported by number."""
    parts = cassette.read_text(errors="surrogateescape").splitlines()
    cassette.write_text("\n".join([*parts[:3], line, *parts[3:], ""]))
    assert f"{cassette}, line 4 cannot be read" in str(broken(cassette))


def test_invalid_recording_paths(tmp_path: Path) -> None:
    """An existing file, a missing parent folder and a folder are refused; an empty file is not."""
    there = tmp_path / "there"
    there.write_text("x")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, why in (
        (pipe, "it is not a file"),
        (there, "it already exists"),
        (tmp_path / "no" / "c", "there is no folder"),
        (tmp_path, "it is a folder"),
    ):
        with pytest.raises(CassetteError, match=why):
            check_new(path)
    (tmp_path / "empty").touch()
    check_new(tmp_path / "empty")
    check_new(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_unwritable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unwritable folder is refused before anything starts."""
    tmp_path.chmod(0o500)
    if os.geteuid() == 0:  # root may write everywhere, so check with the owner's permissions
        told = lambda place, _mode: bool(Path(place).stat().st_mode & 0o200)  # noqa: E731
        monkeypatch.setattr(os, "access", told)
    with pytest.raises(CassetteError, match="cannot be written"):
        check_new(tmp_path / "c")


def test_a_deleted_recording(cassette: Path) -> None:
    """A cassette deleted during the recording is not created again halfway through."""
    cassette.unlink()
    with pytest.raises(StorageError, match="cannot continue recording"):
        write_line(cassette, OVER)
    assert not cassette.exists()


RUN = "0198c0de-0000-7000-8000-000000000001"
TEXTS = st.text(st.sampled_from("⟦⟧[]projectun/tmp-. x") | st.characters(), max_size=60)


@given(st.lists(TEXTS | st.sampled_from(["/tmp/p", "/tmp/p/a", RUN, "⟦project⟧"]), max_size=6))
def test_texts_round_trip(parts: list[str]) -> None:
    """Any text without secrets round-trips within the same project and run."""
    assume(not Masker({}).spans("".join(parts)))
    places = Places(Path("/tmp/p"), {"CUGGINO_SESSION_FILE": f"/tmp/p/.cuggino/wip/{RUN}.md"})
    writing = Writing(Masker({}), places)
    text = "".join(parts)
    assert text == places.filled(writing.text(text))
    joined = "".join(writing.parts(parts))
    assert text == places.filled(joined)


def test_texts_move_with_the_project() -> None:
    """Placeholders resolve to the new project and run; names with the same prefix stay."""
    env = {"CUGGINO_SESSION_FILE": f"/a/.cuggino/wip/{RUN}.md"}
    writing = Writing(Masker({}), Places(Path("/a"), env))
    # The path of a folder in the root is short and a prefix of many others.
    text = writing.text(f"/a/x.py, /ab, /a: {RUN}.plan.md")
    assert "⟦project⟧/x.py, /ab, ⟦project⟧: ⟦run⟧.plan.md" == text
    there = Places(Path("/elsewhere"), {"CUGGINO_SESSION_FILE": f"/x/{RUN[:-1]}2.md"})
    assert f"/elsewhere/x.py, /ab, /elsewhere: {RUN[:-1]}2.plan.md" == there.filled(text)


def test_a_short_project_path_in_a_file() -> None:
    """In a file `/app` is kept, as it may be a URL path; elsewhere it is the project."""
    text = "see /app/a.py, GET /app/users ⟦"
    writing = Writing(Masker({}), Places(Path("/app"), {}))
    assert "see ⟦project⟧/a.py, GET ⟦project⟧/users ⟦[⟧" == writing.text(text)
    assert "see /app/a.py, GET /app/users ⟦[⟧" == writing.content(text)
    deeper = Writing(Masker({}), Places(Path("/srv/app"), {}))
    assert "in ⟦project⟧/a.py" == deeper.content("in /srv/app/a.py")


def test_file_changes_round_trip(tmp_path: Path) -> None:
    """A file change round-trips."""
    path = tmp_path / "c.jsonl"
    changed = FilesChanged(
        session=1,
        n=1,
        at=0.5,
        files={"a": FileState(text="", executable=True), "b": FileState(gone=True)},
    )
    for line in (HEADER, BEGAN, changed):
        write_line(path, line)
    assert [changed] == read_cassette(path).sessions[0].lines
