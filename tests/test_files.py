"""Atomic writes, bounded reads, small kept files, and JSON errors with their position."""

from __future__ import annotations

import fcntl
import os
import stat
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cuggino.errors import StorageError
from cuggino.files import (
    blocking,
    read_json_object,
    read_regular,
    read_text,
    remove_file,
    render_json,
    write_atomic,
)
from cuggino.kept_files import Kept, KeptFile


def test_write_replaces_the_text(tmp_path: Path) -> None:
    """The file contains the new text byte for byte, and no temporary file is left."""
    file = tmp_path / "a" / "file.md"
    for text in ("old", "è\r\n\n"):
        write_atomic(file, text)
    assert "è\r\n\n".encode() == file.read_bytes()
    assert [file] == list(file.parent.iterdir())


@pytest.mark.parametrize("failing", ["pathlib.Path.replace", "os.fsync"])
def test_failed_write_keeps_the_old_text(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failure to write or rename, the old text remains and no temporary file."""
    file = tmp_path / "file.md"
    write_atomic(file, "old")

    def fail(*_args: object, **_kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(failing, fail)
        with pytest.raises(OSError, match="No space left"):
            write_atomic(file, "new")
    assert "old" == file.read_text()
    assert [file] == list(tmp_path.iterdir())


def test_links_and_permissions_are_kept(tmp_path: Path) -> None:
    """`follow_links` writes the target of a link, which keeps its permissions."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    write_atomic(link, "new", follow_links=True)
    assert link.is_symlink()
    assert ("new", 0o640) == (real.read_text(), stat.S_IMODE(real.stat().st_mode))


def test_link_is_replaced_by_default(tmp_path: Path) -> None:
    """Without `follow_links`, a link is replaced and its target is unchanged."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    write_atomic(link, "new")
    assert ("old", "new", False) == (real.read_text(), link.read_text(), link.is_symlink())


def test_writers_at_the_same_time_do_not_mix(tmp_path: Path) -> None:
    """A writer that starts and ends during another one's write leaves that one's file alone."""
    file = tmp_path / "file"
    between: list[str] = []

    def parts() -> Iterator[bytes]:
        yield b"slow "
        write_atomic(file, "quick")
        between.append(file.read_text())
        yield b"writer"

    write_atomic(file, parts())
    assert (["quick"], "slow writer") == (between, file.read_text())
    assert [file] == list(tmp_path.iterdir())


def test_many_writers_of_a_file(tmp_path: Path) -> None:
    """Each of them succeeds, and what a reader sees is from one of them."""
    file = tmp_path / "file"
    write_atomic(file, "")

    def write(letter: str) -> set[int]:
        seen = set()
        for _ in range(100):
            write_atomic(file, letter * 10_000, sync=False)
            seen.add(len(set(file.read_text())))
        return seen

    with ThreadPoolExecutor() as pool:
        assert [{1}] * 4 == list(pool.map(write, "abcd"))
    assert [file] == list(tmp_path.iterdir())


def test_what_a_killed_process_has_left_is_removed(tmp_path: Path) -> None:
    """The next write of the same file removes it; that of a running process stays."""
    left, running = tmp_path / ".a.tmp", tmp_path / ".b.tmp"
    left.write_text("some of it")
    running.write_text("some of it")
    with running.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write_atomic(tmp_path / "a", "text")
        write_atomic(tmp_path / "b", "text")
    assert {running, tmp_path / "a", tmp_path / "b"} == set(tmp_path.iterdir())
    assert ["text", "some of it"] == [file.read_text() for file in (tmp_path / "b", running)]


@pytest.mark.parametrize("planted", ["link", "file"])
def test_planted_temporary_file_is_not_followed(planted: str, tmp_path: Path) -> None:
    """A link left as the temporary file by an agent or a killed process is removed."""
    other, beside = tmp_path / "other", tmp_path / ".a.json.tmp"
    other.write_text("unrelated")
    if planted == "link":
        beside.symlink_to(other)
    else:
        beside.hardlink_to(other)
    write_atomic(tmp_path / "a.json", "ours")
    assert "unrelated" == other.read_text()
    assert ("ours", False) == (
        (tmp_path / "a.json").read_text(),
        (tmp_path / "a.json").is_symlink(),
    )
    assert not beside.exists()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_removed_before_it_is_locked(
    replaced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may take a file that is not locked yet for one that was left."""
    beside, locked = tmp_path / ".a.tmp", 0

    def lock(descriptor: int, operation: int) -> None:
        nonlocal locked
        locked += 1
        if locked == 1:
            beside.unlink()
            if replaced:
                beside.write_text("of the other process")
        flock(descriptor, operation)

    flock = fcntl.flock
    monkeypatch.setattr(fcntl, "flock", lock)
    write_atomic(tmp_path / "a", "text")
    assert [tmp_path / "a"] == list(tmp_path.iterdir())
    assert "text" == (tmp_path / "a").read_text()


def test_folder_is_not_replaced(tmp_path: Path) -> None:
    """Writing over a folder fails and leaves nothing."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        write_atomic(tmp_path / "a", "text")
    assert ["a"] == [path.name for path in tmp_path.iterdir()]


def test_only_regular_files_of_a_limited_size_are_read(tmp_path: Path) -> None:
    """A pipe, a folder and a file above the limit are rejected without being read."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"abc")
    for name in ("pipe", "."):
        with pytest.raises(ValueError, match=r"^not a regular file$"):
            read_regular(tmp_path / name)
    with pytest.raises(ValueError, match=r"^larger than 2 bytes$"):
        read_regular(tmp_path / "file", biggest=2)
    for biggest in (3, sys.maxsize):
        assert b"abc" == read_regular(tmp_path / "file", biggest=biggest)


def test_text_is_normalized_and_checked(tmp_path: Path) -> None:
    """A byte order mark and carriage returns are removed; binary and blank files are rejected."""
    file = tmp_path / "file.md"
    file.write_bytes(b"\xef\xbb\xbfa\r\nb\rc")
    assert "a\nb\nc" == read_text(file)
    for content, why in ((b"a\0", "NUL"), (b" \n", "blank"), (b"a\xff", "byte 1: not UTF-8")):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=why):
            read_text(file)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (" \n", "line 2 column 1: not valid JSON"),
        ('{"a": {"b": 1, "c": 2, "b": 1}}', 'the key "b" is there twice'),
        ('{"a": -' + "9" * 400 + "}", r"the number -9{19}\.\.\. is too large"),
    ],
)
def test_json_that_would_lose_a_value(content: str, why: str, tmp_path: Path) -> None:
    """A blank file, a repeated key and a number that few programs can read are rejected."""
    file = tmp_path / "a.json"
    file.write_text(content)
    with pytest.raises(ValueError, match=why):
        read_json_object(file)


def test_json_keeps_lone_surrogates(tmp_path: Path) -> None:
    """A lone surrogate is written escaped and read back."""
    file = tmp_path / "a.json"
    write_atomic(file, render_json({"è": "\ud800"}))
    assert '{\n  "è": "\\ud800"\n}' == file.read_text(encoding="utf-8")
    assert {"è": "\ud800"} == read_json_object(file)


@pytest.mark.parametrize("before", [None, 0o644])
def test_a_private_file(tmp_path: Path, before: int | None) -> None:
    """A private file is for its owner alone, even if it replaces a public one."""
    file = tmp_path / "file"
    if before is not None:
        file.write_text("old")
        file.chmod(before)
    write_atomic(file, "new", private=True)
    assert ("new", 0o600) == (file.read_text(), stat.S_IMODE(file.stat().st_mode))


def test_a_removed_file_takes_its_empty_folders_along(tmp_path: Path) -> None:
    """Folders with other files stay, as does the top; a missing file is none."""
    for name in ("a/b/c/one", "a/two"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for _ in range(2):
        remove_file(tmp_path, "a/b/c/one")
        assert {tmp_path / "a", tmp_path / "a/two"} == set(tmp_path.rglob("*"))
    remove_file(tmp_path, "a/two")
    assert tmp_path.is_dir()
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["link", "file"])
def test_no_file_is_removed_beyond_a_link(tmp_path: Path, kind: str) -> None:
    """What stands in the place of a folder is found, and what it leads to stays."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other/one").touch()
    (tmp_path / "a").mkdir()
    if kind == "link":
        (tmp_path / "a/b").symlink_to("../other")
    else:
        (tmp_path / "a/b").touch()
    assert tmp_path / "a/b" == blocking(tmp_path, tmp_path / "a/b/one")
    assert blocking(tmp_path, tmp_path / "a/b") is None
    assert blocking(tmp_path, tmp_path / "none/one") is None
    remove_file(tmp_path, "a/b/one")
    assert (tmp_path / "other/one").exists()
    assert (tmp_path / "a/b").exists()


class Note(Kept):
    """The content of the files in this module."""

    text: str
    lines: tuple[int, ...] = ()
    at: datetime | None = None


@pytest.fixture
def file(tmp_path: Path) -> KeptFile[Note]:
    return KeptFile(tmp_path / "notes" / "note.json", Note, "a note", "remove it", in_link=False)


def test_what_is_written_is_read(file: KeptFile[Note]) -> None:
    note = Note(text="ä", lines=(1, 2), at=datetime(2026, 11, 29, tzinfo=UTC))
    file.write(note)
    assert note == file.read() == file.readable()
    file.remove()
    assert file.read() is None
    file.remove()


def test_a_change_keeps_the_rest_and_writes_nothing_else(file: KeptFile[Note]) -> None:
    assert Note(text="a", lines=(1,)) == file.change(text="a", lines=(1,))
    assert Note(text="b", lines=(1,)) == file.change(text="b")
    before = file.path.stat().st_ino
    file.change(text="b")
    assert before == file.path.stat().st_ino
    with pytest.raises(TypeError, match="a note has no txt"):
        file.change(txt="b")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file is empty"),
        ("{", "line 1 column 2: not valid JSON"),
        ("[]", "must be an object"),
        ("{}", 'it has no "text"'),
        ('{"text": 1}', '"text" is 1: must be a string'),
        ('{"text": "a", "lines": [1, "b"]}', r'"lines\[1\]" is "b": must be a whole number'),
        ('{"text": "a", "text": "b"}', 'the key "text" is there twice'),
    ],
)
def test_bad_content_is_one_sentence(text: str, problem: str, file: KeptFile[Note]) -> None:
    """The error names the file and the place, and nothing is overwritten."""
    file.path.parent.mkdir()
    file.path.write_text(text)
    with pytest.raises(StorageError, match=f"note.json: {problem}") as raised:
        file.read()
    assert "remove it" == raised.value.hint
    assert file.readable() is None
    with pytest.raises(StorageError):
        file.change(text="a")
    assert text == file.path.read_text()


def test_fields_of_a_later_version_are_ignored(file: KeptFile[Note]) -> None:
    file.path.parent.mkdir()
    file.path.write_text('{"text": "a", "later": 1}')
    assert Note(text="a") == file.read()


def test_a_linked_folder_is_not_written_to(file: KeptFile[Note], tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    file.path.parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="is a link"):
        file.write(Note(text="a"))
    assert [] == list((tmp_path / "elsewhere").iterdir())
