"""Small JSON files that cuggino keeps."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from cuggino.errors import StorageError
from cuggino.kept_files import Kept, KeptFile


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
