"""Going back to a snapshot of the work tree, byte for byte."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from reactivex import Observable

from cuggino.errors import RunNotFound, StorageError
from cuggino.files import blocking, remove_file
from cuggino.git import EXECUTABLE, LINK, MODULE, Contents, WorkTree, diff_trees, files_of
from cuggino.operators import Flow, ask, emit, flow, pause
from cuggino.stages.acts import clock
from cuggino.stages.snapshot import UNDONE, GitSnapshots, Snapshot, store

Kind: TypeAlias = Literal["create", "change", "remove"]

_OWN = ".cuggino"
"""The folder that no undo changes: backlog, findings and journals are not the work of agents."""
_BATCH = 32_000_000
"""Bytes that are read from git at once."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change that an undo makes to one file."""

    kind: Kind
    path: str
    mode: str = ""
    """Type and permission in git's digits; empty for one that is removed."""
    blob: str = ""


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """The changes that an undo makes."""

    snapshot: Snapshot
    changes: tuple[Change, ...]
    kept: tuple[tuple[str, str], ...] = ()
    """Files that stay as they are although they differ, each with the reason."""
    tree: str = ""
    """The files as they were when the plan was made."""
    moved: bool = False
    """True if another commit is checked out now; an undo keeps it."""


@dataclass(frozen=True, slots=True)
class Undone:
    """The result of an undo."""

    plan: UndoPlan
    before: Snapshot | None
    """The state before the undo, by which it can be taken back; None if nothing changed."""
    failed: tuple[tuple[str, str], ...] = ()
    """Files that could not be restored, each with the reason."""


def find_snapshot(snapshots: Sequence[Snapshot], name: str | None = None) -> Snapshot:
    """Return the snapshot that `name` stands for.

    A run, by the start of its id, stands for the state before it; a stage of the latest run, such
    as `implementing-2`, for the state before that stage; `RUN/STAGE` for one of another run. `undo`
    is the state before the latest undo. Without a name it is the state before the latest run.

    Raises:
        RunNotFound: there is none, or several runs begin so.
    """
    of_runs = [one for one in snapshots if one.run != UNDONE]
    latest = of_runs[-1].run if of_runs else ""
    run, _, stage = (latest if name is None else name).rpartition("/")
    if name == UNDONE:
        found = [one for one in snapshots if one.run == UNDONE][-1:]
    elif run:
        found = [one for one in snapshots if one.run.startswith(run) and one.stage == stage]
    else:
        found = [one for one in of_runs if one.run == latest and one.stage == stage]
        found = found or [one for one in of_runs if stage and one.run.startswith(stage)]
    if not found:
        told = f"no snapshot {name}" if name else "there are no snapshots"
        raise RunNotFound(told, hint="see `cuggino snapshots`")
    runs = sorted({one.run for one in found})
    if len(runs) > 1:
        raise RunNotFound(
            f"several runs begin with {run or name}: {', '.join(runs)}",
            hint="give more of the id",
        )
    return found[0]


def undo_plan(snapshots: GitSnapshots, snapshot: Snapshot) -> Observable[UndoPlan]:
    """Emit what going back to the snapshot would change; nothing is changed yet.

    Files that git ignores stay, also those that were ignored then; so do submodules, `.cuggino/`
    and what the snapshot left out. Errors: `ProcessError`, `OSError`.
    """
    return flow(lambda: _plan(snapshots.work_tree, snapshot))


def undo_stage(snapshots: GitSnapshots, plan: UndoPlan) -> Observable[Undone]:
    """Change the files as planned, after a snapshot of how they are now; emits the result.

    No branch moves, and git's index stays as it is. The result lists the files that failed.

    Errors: `StorageError` when the files have changed since the plan was made, or git has lost the
    content of one; then nothing has been changed. `ProcessError`, `OSError`.
    """
    return flow(lambda: _undo(snapshots.work_tree, plan))


def _plan(work: WorkTree, snapshot: Snapshot) -> Flow[None]:
    layout = yield from work.layout()
    contents = yield from work.contents()
    rows = yield from _differences(work, contents.tree, snapshot.commit)
    # In the way, but not in the tree: git ignores it by now.
    in_the_way = [row.path for row in rows if row.kind == "create" and _is_there(layout.top, row)]
    if in_the_way:
        contents = yield from work.contents(force=in_the_way)
        rows = yield from _differences(work, contents.tree, snapshot.commit)
    kept: dict[str, str] = {}
    changes: list[Change] = []
    gone = [row.path for row in rows if row.kind == "remove" and row.mode != MODULE]
    ignored = yield from _ignored_then(work, snapshot, gone)
    for row in rows:
        why = _reason_to_keep(row, snapshot, contents, ignored, layout.top)
        if why:
            kept[row.path] = why
        elif _OWN not in Path(row.path).parts:
            changes.append(row)
    named = {row.path for row in rows}
    for path, why in snapshot.left_out.items():
        if path not in named:
            kept[path] = why
    moved = layout.head() != snapshot.head
    yield from emit(UndoPlan(snapshot, tuple(changes), tuple(kept.items()), contents.tree, moved))


def _differences(work: WorkTree, tree: str, commit: str) -> Flow[list[Change]]:
    if tree == commit:
        return []
    rows: list[Change] = []
    for one in (yield from diff_trees(work.git, tree, commit)):
        if one.state == "D":
            rows.append(Change("remove", one.path, one.mode_before))
        elif one.mode_before == MODULE:
            rows.append(Change("change", one.path, one.mode_before))
        else:
            kind: Kind = "create" if one.state == "A" else "change"
            rows.append(Change(kind, one.path, one.mode, one.blob))
    return rows


def _is_there(top: Path, row: Change) -> bool:
    place = top / row.path
    return not blocking(top, place) and os.path.lexists(place)


def _reason_to_keep(
    row: Change, snapshot: Snapshot, contents: Contents, ignored: frozenset[str], top: Path
) -> str:
    if row.mode == MODULE:
        return "a repository of its own"
    if row.path in ignored:
        return "git ignored it then"
    if row.kind == "remove":
        return snapshot.left_out.get(row.path, "")
    if row.kind == "create" and _is_there(top, row) and not (top / row.path).is_dir():
        return f"the file in its place cannot be kept: {contents.left_out.get(row.path, 'special')}"
    return ""


def _ignored_then(work: WorkTree, snapshot: Snapshot, paths: list[str]) -> Flow[frozenset[str]]:
    """Return which of these paths git ignored when the snapshot was taken."""
    if not paths:
        return frozenset()
    rules = [
        Change("create", file.path, file.mode, file.blob)
        for file in (yield from files_of(work.git, snapshot.commit))
        if Path(file.path).name == ".gitignore" and file.mode.startswith("100")
    ]
    if not rules:
        return frozenset()
    folder = work.folder / "rules"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield from _each_blob(work, rules, lambda rule, data: _write_new(folder / rule.path, data))
        return (yield from work.ignored(folder, paths))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_new(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _undo(work: WorkTree, plan: UndoPlan) -> Flow[None]:
    if not plan.changes:
        yield from emit(Undone(plan, None))
        return
    layout = yield from work.layout()
    contents = yield from work.contents()
    if contents.tree != plan.tree:
        raise StorageError(
            "undo",
            "files have changed since the preview",
            hint="run `cuggino undo` again",
        )
    wanted = [row for row in plan.changes if row.kind != "remove"]
    sizes = yield from _sizes(work, wanted)
    now = yield from ask(clock())
    assert now is not None
    stage = f"{now:%Y%m%d-%H%M%S}"
    before = yield from store(work, contents, UNDONE, stage)
    failed: dict[str, str] = {}
    for row in plan.changes:
        if row.kind == "remove":
            with _noted(failed, row.path):
                remove_file(layout.top, row.path)

    def restore(row: Change, data: bytes) -> None:
        with _noted(failed, row.path):
            _restore(layout.top, row, data, plan.snapshot.modes.get(row.path))

    yield from _each_blob(work, wanted, restore, sizes)
    yield from emit(Undone(plan, before, tuple(failed.items())))


@contextmanager
def _noted(failed: dict[str, str], path: str) -> Iterator[None]:
    """Record the error of a file instead of raising it."""
    try:
        yield
    except OSError as error:
        failed[path] = error.strerror or str(error)


def _sizes(work: WorkTree, rows: list[Change]) -> Flow[list[int]]:
    """Return the size of each blob.

    Raises:
        StorageError: git does not have one any more.
    """
    stdin = "".join(f"{row.blob}\n" for row in rows).encode()
    said = (yield from work.git.must("cat-file", "--batch-check", stdin=stdin)).output
    sizes: list[int] = []
    for row, line in zip(rows, said.decode("ascii", "replace").splitlines(), strict=True):
        words = line.split()
        if words[1] != "blob":
            raise StorageError("undo", f"git has lost the content of {row.path}")
        sizes.append(int(words[2]))
    return sizes


def _each_blob(
    work: WorkTree,
    rows: list[Change],
    use: Callable[[Change, bytes], None],
    sizes: list[int] | None = None,
) -> Flow[None]:
    """Call `use` with the content of each file, as it is stored."""
    for batch in _batches(rows, sizes or [0] * len(rows)):
        stdin = "".join(f"{row.blob}\n" for row in batch).encode()
        said = (yield from work.git.must("cat-file", "--batch", stdin=stdin)).output
        start = 0
        for row in batch:
            head = said.index(b"\n", start)
            end = head + 1 + int(said[start:head].split()[2])
            use(row, said[head + 1 : end])
            start = end + 1
        yield from pause(0)


def _batches(rows: Iterable[Change], sizes: Iterable[int]) -> Iterator[list[Change]]:
    batch: list[Change] = []
    total = 0
    for row, size in zip(rows, sizes, strict=True):
        if batch and (total + size > _BATCH or len(batch) >= 512):
            yield batch
            batch, total = [], 0
        batch.append(row)
        total += size
    if batch:
        yield batch


def _restore(top: Path, row: Change, data: bytes, permissions: str | None) -> None:
    place = top / row.path
    if above := blocking(top, place):
        raise OSError(0, f"{above.relative_to(top)} is in the way, which git ignores")
    place.parent.mkdir(parents=True, exist_ok=True)
    mode: int | None = None
    with suppress(OSError):
        found = place.lstat().st_mode
        if stat.S_ISDIR(found):
            _remove_empty(place)
        elif stat.S_ISREG(found):
            mode = stat.S_IMODE(found)
    new = place.with_name(f".cuggino-{os.getpid()}.tmp")
    try:
        new.unlink(missing_ok=True)  # a planted link would be written through
        if row.mode == LINK:
            new.symlink_to(os.fsdecode(data))
        else:
            with new.open("xb") as file:
                file.write(data)
            new.chmod(_mode(new, row, mode, permissions))
        new.replace(place)
    except OSError:
        with suppress(OSError):
            new.unlink()
        raise


def _mode(new: Path, row: Change, mode: int | None, permissions: str | None) -> int:
    """Return the recorded permissions, or the current ones with the right executable bits."""
    if permissions is not None:
        return int(permissions, 8)
    mode = stat.S_IMODE(new.stat().st_mode) if mode is None else mode
    if row.mode == EXECUTABLE:
        return mode | (mode & 0o444) >> 2
    return mode & ~0o111


def _remove_empty(folder: Path) -> None:
    """Remove a folder without files, as far as it is one."""
    for parent, _folders, _files in os.walk(folder, topdown=False):
        with suppress(OSError):
            Path(parent).rmdir()
