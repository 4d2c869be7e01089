"""Snapshots of the work tree, kept as commits under `refs/cuggino/snapshots/`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from reactivex import Observable, empty, just, operators as ops, throw, timer

from cuggino.errors import ProcessError, ProcessFailed, SpawnFailed
from cuggino.events import SnapshotFailed, SnapshotTaken
from cuggino.git import MAX_FILE, REFS, Contents, WorkTree
from cuggino.operators import Flow, ask, emit, flow, interrupt_when
from cuggino.sandbox import Views
from cuggino.stages.acts import clock

UNDONE = "undo"
"""The run of the snapshots that are taken before an undo."""

_NAME = re.compile(r"(?!.*\.\.|.*\.$|.*\.lock$)[\w-][\w.-]*", re.ASCII)
"""The part of a name that git takes: it ignores other references, and removes their commits."""
_NOWHERE = ("not a git repository", "must be run in a work tree")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files of a project before a stage of a run."""

    run: str
    """The id of the run; `undo` for the state before an undo."""
    stage: str
    """The stage that followed, such as `implementing-2`."""
    ref: str
    commit: str
    at: datetime
    head: str | None = None
    """The commit that was checked out."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Files that it does not hold, each with the reason: too large, unreadable."""
    modes: Mapping[str, str] = field(default_factory=dict)
    """Unusual permissions, as octal digits by path."""

    @property
    def name(self) -> str:
        """Return `<run>/<stage>`, by which the snapshot can be named."""
        return f"{self.run}/{self.stage}"


Needed: TypeAlias = Callable[[str], bool]
"""Returns whether the snapshots of a run, given its id, are still needed."""


def nobody(_run: str) -> bool:
    """Return False: no run needs its snapshots any more."""
    return False


class Snapshots(Protocol):
    """Keeps the state of a project before each stage that may change it."""

    def take(self, run: str, stage: str) -> Observable[SnapshotTaken | SnapshotFailed]:
        """Keep the files as they are now; emits nothing where that is impossible."""

    def prune(self, before: datetime, *, is_needed: Needed = nobody) -> Observable[int]:
        """Remove older snapshots that no run needs; emits how many."""


class NoSnapshots:
    """A project without snapshots."""

    def take(self, run: str, stage: str) -> Observable[SnapshotTaken | SnapshotFailed]:
        return empty()

    def prune(self, before: datetime, *, is_needed: Needed = nobody) -> Observable[int]:
        return just(0)


class GitSnapshots:
    """Snapshots in the git repository around `cwd`; none without a repository.

    A snapshot holds every file of the work tree that is tracked or not ignored, byte for byte, with
    its executable bit. Files above `max_file` bytes, submodules and repositories within the
    repository are left out. `folder` keeps the private index, and must belong to this project
    alone. A snapshot that takes longer than `timeout` seconds fails.
    """

    def __init__(
        self,
        cwd: Path,
        folder: Path,
        *,
        max_file: int = MAX_FILE,
        timeout: float = 300.0,
        views: Views | None = None,
    ) -> None:
        self.work_tree = WorkTree(cwd, folder, max_file=max_file, views=views)
        self._max_file = max_file
        self._timeout = timeout
        self._told: dict[str, str] = {}

    def at(self, cwd: Path, folder: Path, *, views: Views | None) -> GitSnapshots:
        """Return the snapshots of another folder, otherwise like these."""
        return GitSnapshots(
            cwd, folder, max_file=self._max_file, timeout=self._timeout, views=views
        )

    def take(self, run: str, stage: str) -> Observable[SnapshotTaken | SnapshotFailed]:
        return flow(lambda: self._take(run, stage))

    def all(self) -> Observable[list[Snapshot]]:
        """Emit the snapshots in the repository, the oldest first; errors: `ProcessError`."""
        return flow(self._all)

    def prune(self, before: datetime, *, is_needed: Needed = nobody) -> Observable[int]:
        """Remove older snapshots; the latest one stays. Errors: `ProcessError`."""
        return flow(lambda: self._prune(before, is_needed))

    def _take(self, run: str, stage: str) -> Flow[None]:
        tree = self.work_tree
        if not tree.is_in_repository():
            return
        try:
            yield from tree.layout()
        except ProcessError as error:
            if not _is_nowhere(error):
                yield from emit(SnapshotFailed(stage=stage, message=error.message))
            return
        try:
            contents = yield from ask(self._bounded(flow(self._contents)))
            assert contents is not None
            taken = yield from store(tree, contents, run, stage)
        except (ProcessError, OSError) as error:
            told = error.message if isinstance(error, ProcessError) else str(error)
            yield from emit(SnapshotFailed(stage=stage, message=told))
            return
        new = tuple(
            (os.fsencode(path).decode("utf-8", "replace"), why)
            for path, why in contents.left_out.items()
            if path not in self._told
        )
        self._told = dict(contents.left_out)
        yield from emit(
            SnapshotTaken(stage=stage, ref=taken.ref, commit=taken.commit, left_out=new)
        )

    def _contents(self) -> Flow[None]:
        yield from emit((yield from self.work_tree.contents()))

    def _bounded(self, stream: Observable[Any]) -> Observable[Any]:
        late = ProcessError("git", f"git took longer than {self._timeout:g} s")
        alarm = timer(self._timeout).pipe(ops.flat_map(lambda _tick: throw(late)))
        return stream.pipe(interrupt_when(alarm))

    def _all(self) -> Flow[None]:
        if not self.work_tree.is_in_repository():
            return (yield from emit([]))
        yield from self.work_tree.layout()
        said = yield from self.work_tree.git.must("for-each-ref", f"--format={_FORMAT}", REFS)
        records = [record.strip() for record in said.output.decode("utf-8", "replace").split("\n")]
        found = [_snapshot(record) for record in records if record]
        yield from emit(sorted(found, key=lambda one: (one.at, one.ref)))

    def _prune(self, before: datetime, is_needed: Needed) -> Flow[None]:
        old: list[Snapshot] = []
        tree = self.work_tree
        if tree.is_in_repository() and (yield from tree.has_older(before)):
            *others, _latest = (yield from ask(flow(self._all))) or [None]
            old = [one for one in others if one and one.at < before and not is_needed(one.run)]
        if old:
            stdin = "".join(f"delete {one.ref} {one.commit}\n" for one in old).encode()
            yield from self.work_tree.git.must("update-ref", "--stdin", stdin=stdin)
        yield from emit(len(old))


_FORMAT = "%(refname) %(objectname) %(committerdate:unix) %(contents:body)"


def store(work_tree: WorkTree, contents: Contents, run: str, stage: str) -> Flow[Snapshot]:
    """Keep the contents as a snapshot and return it.

    Raises:
        ProcessError, OSError: it cannot be written.
        ValueError: the run or the stage cannot be part of a reference.
    """
    if not (_NAME.fullmatch(run) and _NAME.fullmatch(stage)):
        raise ValueError(f"{run}/{stage} cannot be the name of a snapshot")
    now = yield from ask(clock())
    assert now is not None
    head = (yield from work_tree.layout()).head()
    kept = {
        "head": head,
        "at": now.timestamp(),
        "left_out": dict(contents.left_out),
        "modes": dict(contents.modes),
    }
    message = f"cuggino: before {stage} of {run}\n\n{json.dumps(kept)}"
    commit = work_tree.commit(contents, message, seconds=int(now.timestamp()), parent=head)
    ref = yield from work_tree.keep(f"{REFS}/{run}/{stage}", commit)
    at = datetime.fromtimestamp(now.timestamp(), UTC)
    stage = ref.rpartition("/")[2]
    return Snapshot(run, stage, ref, commit, at, head, contents.left_out, contents.modes)


def _snapshot(record: str) -> Snapshot:
    ref, commit, seconds, *rest = record.split(" ", 3)
    run, _, stage = ref.removeprefix(f"{REFS}/").rpartition("/")
    try:
        kept = json.loads(rest[0]) if rest else {}
    except ValueError:
        kept = {}
    kept = kept if isinstance(kept, dict) else {}
    return Snapshot(
        run=run,
        stage=stage,
        ref=ref,
        commit=commit,
        at=datetime.fromtimestamp(kept.get("at", int(seconds)), UTC),
        head=kept.get("head"),
        left_out=kept.get("left_out", {}),
        modes=kept.get("modes", {}),
    )


def _is_nowhere(error: Exception) -> bool:
    """Return whether the error means that git, or a repository with a work tree, is missing."""
    said = error.stderr_tail if isinstance(error, ProcessFailed) else ""
    return isinstance(error, SpawnFailed) or any(words in said for words in _NOWHERE)
