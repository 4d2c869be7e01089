"""The jobs file and the done file of the plan/build loop; moving files without loss."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cuggino.domain.jobs import Jobs
from cuggino.errors import StorageError
from cuggino.prompts.plan_build import init_plan_build
from cuggino.storage import Backlog, Workspace
from cuggino.storage.jobs import DONE_FILE, JOBS_FILE, JobStore, is_done, remove_done, write_done
from cuggino.storage.moving import digest_of, move_into, reserve
from tests.vectors import rows

ROWS = {row["id"]: row for row in rows("lopen_state")}
NOW = datetime(2026, 3, 4, 13, 5, 6, tzinfo=timezone(timedelta(hours=1)))


def of_kind(kind: str) -> list[str]:
    """Return the IDs of the rows of this kind."""
    return [row["id"] for row in ROWS.values() if row["kind"] == kind]


def laid_out(row: dict[str, Any], root: Path) -> Path:
    """Return a project with the files and folders of a case."""
    for name in row.get("dirs", []):
        (root / name).mkdir(parents=True)
    for name, text in row.get("files", {}).items():
        (root / name).write_text(text)
    return root


def store(root: Path, content: str | bytes | None) -> JobStore:
    """Return the store of a project with this jobs file."""
    found = JobStore(root)
    if content is not None:
        found.path.parent.mkdir(parents=True, exist_ok=True)
        found.path.write_bytes(content.encode() if isinstance(content, str) else content)
    return found


def test_paths() -> None:
    """Both files have the original's paths."""
    expected = {row["name"]: row["expected"] for row in ROWS.values() if row["kind"] == "paths"}
    assert (expected["done"], expected["jobs"]) == (DONE_FILE, JOBS_FILE)


@pytest.mark.parametrize("case", of_kind("is_complete"))
def test_only_a_file_marks_the_loop_as_done(case: str, tmp_path: Path) -> None:
    """An existing done file counts, empty or not; a folder does not."""
    row = ROWS[case]
    assert row["expected"] == is_done(laid_out(row, tmp_path))


@pytest.mark.parametrize("case", of_kind("remove_done"))
def test_removing_a_missing_file_is_no_error(case: str, tmp_path: Path) -> None:
    """Without a done file there is nothing to remove."""
    row = ROWS[case]
    assert not remove_done(laid_out(row, tmp_path))
    assert row["expected_exists"] == (tmp_path / DONE_FILE).exists()


@pytest.mark.parametrize("case", of_kind("create_done"))
def test_content_of_the_done_file(case: str, tmp_path: Path) -> None:
    """Without a reason it holds the time in UTC, with one only the reason."""
    row = ROWS[case]
    write_done(tmp_path, now=NOW, reason=row["reason"])
    assert (
        row["expected_prefix"] + "2026-03-04T12:05:06+00:00" == (tmp_path / DONE_FILE).read_text()
    )
    write_done(tmp_path, now=NOW, reason="All is done.")
    assert "All is done." == (tmp_path / DONE_FILE).read_text()


def test_the_done_file_is_removed(tmp_path: Path) -> None:
    """A done file is removed; a folder or a dangling link of its name stays."""
    write_done(tmp_path, now=NOW)
    assert remove_done(tmp_path)
    assert not is_done(tmp_path)
    (tmp_path / DONE_FILE).symlink_to("nowhere")
    assert not is_done(tmp_path)
    assert not remove_done(tmp_path)
    (tmp_path / DONE_FILE).unlink()
    (tmp_path / DONE_FILE).mkdir()
    assert not remove_done(tmp_path)
    assert (tmp_path / DONE_FILE).is_dir()


@pytest.mark.parametrize("case", of_kind("parse_jobs"))
def test_a_jobs_file_is_read(case: str, tmp_path: Path) -> None:
    """Jobs of both shapes are read alike; a broken file gives none, and a warning."""
    row = ROWS[case]
    found = store(tmp_path, row["text"]).load()
    names = {
        "id": "id",
        "requirementCode": "requirement_code",
        "description": "description",
        "status": "status",
        "partialImplementation": "partial_implementation",
        "priority": "priority",
    }
    read = [{key: getattr(job, name) for key, name in names.items()} for job in found.jobs.items]
    assert row["expected"] == read
    assert row.get("warning", False) == (found.broken is not None) == bool(found.warnings)


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"5"])
def test_a_broken_file_stays(content: bytes, tmp_path: Path) -> None:
    """A broken file is reported with its path, has no jobs, and is never overwritten."""
    found = store(tmp_path, content)
    loaded = found.load()
    assert loaded.broken is not None
    assert loaded.broken.startswith(f"{JOBS_FILE} is broken: ")
    assert ((loaded.broken,), Jobs()) == (loaded.warnings, loaded.jobs)
    with pytest.raises(StorageError) as caught:
        found.change(lambda jobs: jobs.with_status("A", "done"))
    assert loaded.broken == caught.value.message
    assert content == found.path.read_bytes()


def test_oddities_name_the_file(tmp_path: Path) -> None:
    """An odd file is usable, and each message starts with its name."""
    loaded = store(tmp_path, "[5]").load()
    assert (f"{JOBS_FILE}: jobs[0] is not an object; ignored",) == loaded.warnings
    assert loaded.broken is None


@pytest.mark.parametrize("ending", ["", "\n"])
def test_a_change_keeps_the_rest_of_the_file(ending: str, tmp_path: Path) -> None:
    """Shape, keys, their order, trailing text, permissions and a symlink are kept."""
    text = '[\n  {\n    "x": "é\\ud800",\n    "status": "done",\n    "id": "A"\n  }\n]'
    found = store(tmp_path, text + ending)
    real = tmp_path / "elsewhere.json"
    found.path.rename(real)
    found.path.symlink_to(real)
    real.chmod(0o600)
    found.change(lambda jobs: jobs.with_status("A", "open"))
    assert text.replace('"done"', '"open"') + ending == real.read_text()
    assert (0o600, True) == (real.stat().st_mode & 0o777, found.path.is_symlink())
    assert ["elsewhere.json"] == [p.name for p in tmp_path.iterdir() if p.is_file()]


def test_no_change_writes_nothing(tmp_path: Path) -> None:
    """Returning the same jobs leaves the file untouched."""
    found = store(tmp_path, '[{"id":"A"}]')
    found.change(lambda jobs: jobs)
    assert '[{"id":"A"}]' == found.path.read_text()


def test_a_change_that_fails_writes_nothing(tmp_path: Path) -> None:
    """The error of a change is raised, and the file is unchanged."""
    found = store(tmp_path, '[{"id":"A"}]')
    with pytest.raises(KeyError):
        found.change(lambda jobs: jobs.with_status("B", "done"))
    assert '[{"id":"A"}]' == found.path.read_text()


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """A file in place of a folder is a storage error that names the operation."""
    (tmp_path / "docs").write_text("")
    found = JobStore(tmp_path)
    assert (Jobs(), None) == (found.load().jobs, found.load().broken)
    with pytest.raises(StorageError) as caught:
        found.change(lambda jobs: Jobs())
    assert "write jobs" == caught.value.operation


def test_init_creates_a_readable_file(tmp_path: Path) -> None:
    """The jobs file of `init` can be read, and holds no jobs."""
    assert JOBS_FILE in init_plan_build(tmp_path)
    assert {"jobs": []} == json.loads(JobStore(tmp_path).path.read_text())
    assert (Jobs(), ()) == (JobStore(tmp_path).load().jobs, JobStore(tmp_path).load().warnings)


@given(st.binary(max_size=60))
def test_any_bytes_can_be_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Garbage is reported as broken or gives jobs, and never raises."""
    loaded = store(tmp_path_factory.mktemp("project"), content).load()
    assert loaded.broken is None or loaded.jobs == Jobs()


def test_times_are_in_utc(tmp_path: Path) -> None:
    """Two clocks at the same moment write the same file."""
    write_done(tmp_path, now=NOW)
    first = (tmp_path / DONE_FILE).read_text()
    write_done(tmp_path, now=NOW.astimezone(UTC))
    assert first == (tmp_path / DONE_FILE).read_text()


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
