"""Moving without loss: full disks, other file systems, long and taken names."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cuggino.errors import StorageError
from cuggino.storage import Backlog, Workspace
from cuggino.storage.moving import digest_of, move_into, reserve


def fail_with(number: int) -> Callable[..., None]:
    """Make a system call fail."""

    def fail(*_args: object, **_kwargs: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.fixture
def backlog(tmp_path: Path) -> Backlog:
    """A backlog with one item."""
    workspace = Workspace(tmp_path)
    workspace.open()
    (workspace.backlog / "a.md").write_text("text")
    return Backlog(workspace)


@pytest.fixture
def across(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make renames between folders fail, as between two file systems."""
    original = Path.replace

    def replace(source: Path, target: Path) -> Path:
        if source.parent != target.parent:
            fail_with(errno.EXDEV)()
        return original(source, target)

    monkeypatch.setattr(Path, "replace", replace)


def all_files(folder: Path) -> dict[str, str]:
    """Return the text of every file below the folder, without the generated `.gitignore`."""
    found = [path for path in folder.rglob("*") if path.name != ".gitignore"]
    return {str(p.relative_to(folder)): p.read_text() for p in found if p.is_file()}


def archive(backlog: Backlog) -> object:
    """Archive the unchanged item."""
    return backlog.archive("a.md", "approved", backlog.digest("a.md") or "")


def park(backlog: Backlog) -> object:
    """Park the item."""
    return backlog.park("a.md", "why")


def remove(backlog: Backlog) -> object:
    """Remove the item."""
    return backlog.remove("a.md")


@pytest.mark.parametrize(
    ("call", "deed"),
    [
        ("os.open", archive),
        ("os.open", park),
        ("os.open", remove),
        ("pathlib.Path.replace", archive),
        ("pathlib.Path.replace", park),
        ("pathlib.Path.replace", remove),
        ("os.fsync", park),
    ],
)
def test_a_full_disk(
    tmp_path: Path,
    backlog: Backlog,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    deed: Callable[[Backlog], object],
) -> None:
    """Whichever call the full disk fails, the item stays, with a one-sentence error."""
    with monkeypatch.context() as patch:
        patch.setattr(call, fail_with(errno.ENOSPC))
        with pytest.raises(StorageError) as caught:
            deed(backlog)
    message = caught.value.message
    assert str(tmp_path / ".cuggino/backlog/a.md") in message
    assert "is unchanged: No space left on device" in message
    assert "\n" not in message
    assert {".cuggino/backlog/a.md": "text"} == all_files(tmp_path)
    assert deed(backlog)


@pytest.mark.usefixtures("across")
def test_another_file_system(tmp_path: Path, backlog: Backlog) -> None:
    """If a rename fails, the item is copied and then removed."""
    assert "a.md" == backlog.park("a.md", "why")
    expected = {".cuggino/parked/a.md": "text", ".cuggino/parked/a.md.reason.txt": "why\n"}
    assert expected == all_files(tmp_path)


@pytest.mark.usefixtures("across")
@pytest.mark.parametrize("call", ["os.fsync", "shutil.copyfileobj", "pathlib.Path.unlink"])
def test_a_full_disk_on_another_file_system(
    tmp_path: Path, backlog: Backlog, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A copy that fails midway, or cannot remove the item, leaves the item."""
    with monkeypatch.context() as patch:
        patch.setattr(call, fail_with(errno.ENOSPC))
        with pytest.raises(StorageError, match="is unchanged: No space left"):
            backlog.remove("a.md")
    assert "text" == all_files(tmp_path)[".cuggino/backlog/a.md"]


@pytest.mark.usefixtures("across")
def test_edited_during_a_copy(
    tmp_path: Path, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit during the copy is copied as well; a file that keeps changing stays."""
    edits = ["edited"]

    def edit(source: Path, _target: Path) -> None:
        if edits:
            source.write_text(edits.pop())

    monkeypatch.setattr("shutil.copystat", edit)
    moved = move_into(backlog.path("a.md"), tmp_path / "there", "a.md", operation="move")
    assert {"there/a.md": "edited"} == all_files(tmp_path)
    edits.extend("edits")
    with pytest.raises(StorageError, match="is unchanged: it is being written to"):
        move_into(moved, tmp_path / "back", "a.md", operation="move")
    assert {"there/a.md": "i"} == all_files(tmp_path)


def test_an_interruption_loses_nothing(
    tmp_path: Path, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C right after the rename leaves the moved item."""
    original = Path.replace

    def replace(source: Path, target: Path) -> Path:
        original(source, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        backlog.park("a.md", "why")
    assert {".cuggino/parked/a.md": "text"} == all_files(tmp_path)


def test_reserved_names_are_free(tmp_path: Path) -> None:
    """A taken name gets a number before its suffix, and the existing file stays."""
    (tmp_path / "a.md").write_text("mine")
    (tmp_path / "a-2.md").symlink_to("nowhere")
    assert "a-3.md" == reserve(tmp_path, "a.md").name
    assert "mine" == (tmp_path / "a.md").read_text()
    assert "b" == reserve(tmp_path, "b").name
    assert "b-2" == reserve(tmp_path, "b").name


@pytest.mark.parametrize("name", ["x" * 250 + ".md", "ä" * 125 + ".md", "v1. " + "x" * 240])
def test_long_names_are_truncated(tmp_path: Path, name: str) -> None:
    """A name too long for its companion files is truncated, but keeps its suffix."""
    for _ in range(2):
        made = reserve(tmp_path, name).name
        assert len(os.fsencode(made)) <= 230
        assert made.endswith(".md") == name.endswith(".md")


def test_an_item_with_a_long_name(tmp_path: Path) -> None:
    """An item with a name of maximal length can be parked, unparked and archived."""
    workspace = Workspace(tmp_path)
    workspace.open()
    backlog, name = Backlog(workspace), "n" * 252 + ".md"
    (workspace.backlog / name).write_text("text")
    parked = backlog.park(name, "why")
    assert parked is not None
    assert {parked: "why"} == backlog.parked()
    back = backlog.unpark(parked)
    digest = digest_of(workspace.backlog / back)
    assert digest is not None
    assert backlog.archive(back, "approved", digest)
    assert ["text"] == list(all_files(tmp_path).values())
