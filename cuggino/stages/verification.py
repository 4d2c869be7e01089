"""`verified`: a session that has changed protected files is void, and they are restored."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from reactivex import Observable, operators as ops

from cuggino.errors import ProcessError, RoleViolation, StorageError
from cuggino.events import (
    CommitFailed,
    CommitPerformed,
    InstructionsChanged,
    ProtectedChanged,
    RoleViolated,
    is_llm_terminal_marker_event,
)
from cuggino.files import is_own_output
from cuggino.git import IDENTITY, LINK, PLAIN, Contents, Entry, History
from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.operators.mapcat import mapcat
from cuggino.protection import ExpectedFiles, PathVersion, files_of, own_write
from cuggino.sandbox import (
    Protected,
    Views,
    drop_privileges,
    git_folders,
    privileged_files,
)
from cuggino.stages.acts import clock
from cuggino.stages.repository import CommitEvent
from cuggino.stages.snapshot import GitSnapshots, Snapshot
from cuggino.stages.undo import Undone, undo_plan, undo_stage
from cuggino.storage import Backlog, Workspace

T = TypeVar("T")

_Versions: TypeAlias = dict[Path, PathVersion | None]

KEPT = "refs/cuggino/kept"
"""Prefix of the refs that keep reverted versions."""

_COARSE = 2.0
"""Seconds by which the times of a file system may lag behind the clock."""

_KEPT_FOLDER = ".cuggino/kept"
"""The folder for them without git."""


def verified(
    protected: Protected | None,
    *,
    is_last: Callable[[Any], bool] = is_llm_terminal_marker_event,
    voids: bool = True,
) -> Callable[[Observable[T]], Observable[Any]]:
    """Check that a session has not changed protected files and refs.

    The events that `is_last` accepts, the session's verdict, are emitted after the comparison. Its
    processes must have ended by then. If something has changed:

    - `RoleViolated` names the paths; their new versions are kept under `refs/cuggino/kept/`, the
      old ones are restored, and the stream fails with `RoleViolation`. The verdict is void.
    - With a view that the kernel enforces (`Protected.held`) it was not the session but a person:
      `ProtectedChanged` names the paths, and they stay. A view cannot protect names that did not
      exist, nor links, so these are restored if the role writes the project.
    - `RoleViolated.failed` names what the disk, read again, still has otherwise.

    What this process writes meanwhile is expected (`own_write`). With `voids=False`, for a command,
    the stream does not fail and the verdict counts. `Protected.reported` are paths that people may
    change at any time: `ProtectedChanged`, unless a view has held, as the session cannot have
    written them then. Only what a session has removed there while it changed something else, as
    `git clean` does, is restored. `InstructionsChanged` names the changed files that instruct
    agents.
    A disposed session is not compared. With `None` the source itself is returned.
    """
    if protected is None:
        return lambda source: source
    return lambda source: flow(
        lambda: _Verification(protected, voids=voids).around(source, is_last)
    )


def verified_commit(
    protected: Protected,
) -> Callable[[Observable[CommitEvent]], Observable[Any]]:
    """Check that a commit's hooks have not changed protected files, as `verified`.

    A commit of specifications is undone: `CommitFailed` instead of `CommitPerformed`.
    """

    def story(commit: Observable[CommitEvent]) -> Flow[None]:
        undone: list[str] = []

        def seen(event: Any) -> Any:
            if isinstance(event, RoleViolated):
                undone.extend(path for path in event.paths if path.startswith("HEAD:"))
            if undone and isinstance(event, CommitPerformed):
                why = f"the commit was undone, as a hook added {', '.join(undone)}"
                return CommitFailed(iteration=event.iteration, message=why)
            return event

        outcomes = CommitPerformed | CommitFailed
        around = verified(protected, is_last=lambda e: isinstance(e, outcomes), voids=False)
        yield from forward(commit.pipe(around, ops.map(seen)))

    return lambda commit: flow(lambda: story(commit))


class _Verification:
    def __init__(self, protected: Protected, *, voids: bool) -> None:
        self._protected = protected
        self._voids = voids
        folders = git_folders(protected.project)
        # In a view that holds, only a person can have changed what is theirs: thousands of items.
        apart = (*protected.reported, *protected.caches) if protected.held else ()
        self._files = ExpectedFiles(
            protected.paths,
            exempt=(*protected.exempt, *apart),
            shallow=protected.shallow,
            blanks=(protected.project, *folders),
            strict=() if protected.specs is None else (protected.project / protected.specs,),
            is_enforced=not protected.held,
        )
        self._instructions = ExpectedFiles(protected.instructions, is_enforced=False)
        self._history = History(
            protected.project,
            folders,
            specs=protected.specs,
            looks=protected.looks,
            held=protected.held,
            views=protected.views,
        )
        self._has_git = bool(folders)
        self._began = 0.0
        """When the session began, by the clock of the file system."""
        self._tree: _Tree | None = None
        if protected.looks and not protected.held and folders:
            self._tree = _Tree(protected)

    def around(self, source: Observable[Any], is_last: Callable[[Any], bool]) -> Flow[None]:
        held: list[Any] = []

        def but_last(value: Any) -> Iterable[Any]:
            if is_last(value):
                held.append(value)
                return ()
            return (value,)

        self._began = time.time() - _COARSE
        yield from self._take_tree()  # first, as it writes the private index
        with self._files.running(), self._instructions.running():
            if not (self._protected.held and self._protected.looks):
                self._history.take()
            try:
                yield from forward(source.pipe(mapcat(but_last)))
            except Exception:
                yield from self._compare()
                raise
            yield from self._compare()
        yield from emit(*held)

    def _compare(self) -> Flow[None]:
        """Emit what has changed.

        Raises:
            RoleViolation: the session has changed it.
        """
        protected = self._protected
        failed: list[str] = []
        if os.getuid() == 0 and not protected.looks and sys.platform == "linux":
            apart = protected.reported if protected.held else ()  # thousands of items, read-only
            for path in privileged_files(protected.project, since=self._began, exempt=apart):
                with suppress(OSError):
                    drop_privileges(path)
        moved: tuple[str, ...] = ()
        if not protected.held:
            try:
                moved = (".git",) if self._history.bring_back() else ()
            except OSError as error:
                failed.append(str(error))
        instructions = self._instructions.changes()
        if files := [path for path in instructions if not path.is_dir()]:
            yield from emit(InstructionsChanged(role=protected.role, paths=self._names(files)))
        changed, reported = self._sorted()
        if reported:
            yield from emit(ProtectedChanged(role=protected.role, paths=self._names(reported)))
        # First, so that git reads no settings of an agent's.
        failed += self._names(self._files.put_back(changed))
        try:
            refs = yield from self._history.changes()
        except ProcessError:  # a repository that git cannot read: the commit will report it
            refs = {}
        if not changed and not refs and not moved and not failed:
            yield from self._compare_tree()
            return
        kept = yield from self._keep(changed, refs)
        hidden: dict[str, str] = {}
        try:
            yield from self._history.put_back(refs)
            hidden = dict((yield from self._history.changes()))
            hidden.pop(kept or "", None)
            yield from self._history.put_back(hidden)
        except (OSError, ProcessError) as error:
            failed.append(str(error))
        others: tuple[str, ...] = ()
        if self._tree is not None:
            with suppress(ProcessError, StorageError, OSError):  # the verdict is void anyway
                undone = yield from self._tree.put_back()
                others = tuple(change.path for change in undone.plan.changes) if undone else ()
        paths = tuple(dict.fromkeys((*moved, *self._names(changed), *refs, *hidden, *others)))
        yield from emit(
            RoleViolated(
                role=protected.role,
                paths=paths,
                kept=kept,
                failed=tuple(failed),
                void=self._voids,
            )
        )
        if self._voids:
            raise RoleViolation(protected.role, paths, kept=kept)

    def _sorted(self) -> tuple[_Versions, _Versions]:
        """Return the changes to put back, and those by people, which stay; restore caches."""
        protected, found = self._protected, self._files.changes()
        if protected.held:
            its = set() if protected.looks else self._files.in_no_view(found)
            reported = {path: found[path] for path in found if path not in its}
        else:
            cached = [path for path in found if _is_in(path, protected.caches)]
            self._files.put_back(cached)
            reported = {
                path: found[path]
                for path in found
                if _is_in(path, protected.reported) and not self._is_own_journal(path)
            }
            its = found.keys() - cached - reported.keys()
            if its or self._files.lost_folders(protected.reported):  # `rm -r`, and no person's act
                added = {path.name for path, version in reported.items() if version is not None}
                its |= {
                    path for path in reported if reported[path] is None and path.name not in added
                }
                reported = {path: it for path, it in reported.items() if path not in its}
        if reported:  # an import writes items, too, while an agent works in the project
            backlog = Backlog(Workspace(protected.project))
            reported = {
                path: it for path, it in reported.items() if not backlog.is_as_imported(path)
            }
        return {path: found[path] for path in found if path in its}, reported

    def _is_own_journal(self, path: Path) -> bool:
        return path.parent.name == "journal" and self._files.is_own(path)

    def _take_tree(self) -> Flow[None]:
        if self._tree is not None:
            try:
                yield from self._tree.take()
            except (ProcessError, OSError):  # a repository that git cannot read
                self._tree = None

    def _compare_tree(self) -> Flow[None]:
        """Restore the files of the project; added files alone do not void the session."""
        if self._tree is None:
            return
        role = self._protected.role
        try:
            undone = yield from self._tree.put_back()
            if undone is not None:  # what a changed .gitignore had hidden
                yield from self._tree.put_back()
        except (ProcessError, StorageError, OSError) as error:
            yield from emit(RoleViolated(role=role, paths=(), failed=(str(error),)))
            raise RoleViolation(role, ()) from error
        if undone is None:
            return
        changes = undone.plan.changes
        paths = tuple(change.path for change in changes)
        kept = undone.before.ref if undone.before is not None else None
        void = any(change.kind != "remove" for change in changes)
        failed = tuple(path for path, _ in undone.failed)
        yield from emit(RoleViolated(role=role, paths=paths, kept=kept, failed=failed, void=void))
        if void:
            raise RoleViolation(role, paths, kept=kept)

    def _names(self, paths: Iterable[Path]) -> tuple[str, ...]:
        root = self._protected.project
        return tuple(
            path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
            for path in paths
        )

    def _keep(
        self, changed: Mapping[Path, PathVersion | None], refs: Mapping[str, str]
    ) -> Flow[str | None]:
        """Keep the changed versions, and return where; None if there is nothing to keep."""
        commits = tuple(dict.fromkeys(filter(None, refs.values())))
        files = list(files_of(changed))
        if not files and not commits:
            return None
        now = yield from ask(clock())
        assert now is not None
        name = f"{now:%Y%m%d-%H%M%S}-{self._protected.role}"
        root = self._protected.project
        if self._has_git:
            with suppress(ProcessError, OSError):  # no space, or no repository any more
                return (yield from self._keep_in_git(name, files, commits))
        folder = root / _KEPT_FOLDER / name
        folder.mkdir(parents=True, exist_ok=True)
        for path, content, is_link in files:
            _write(folder / _name_in_tree(path, root), content, is_link=is_link)
        return f"{_KEPT_FOLDER}/{name}"

    def _keep_in_git(
        self, name: str, files: Sequence[tuple[Path, bytes, bool]], parents: tuple[str, ...]
    ) -> Flow[str]:
        work = _snapshots_of(self._protected.project, self._protected.views).work_tree
        store = (yield from work.layout()).store
        root = self._protected.project
        entries = {
            os.fsencode(_name_in_tree(path, root)): Entry(
                (LINK if is_link else PLAIN).encode(), store.write(b"blob", content)
            )
            for path, content, is_link in files
        }
        words = (word for parent in parents for word in ("-p", parent))
        message = "Reverted: changes outside the role's permissions"
        made = ("commit-tree", store.tree_of(entries).hex(), *words, "-m", message)
        commit = (yield from work.git.must(*made, env=IDENTITY)).text
        return (yield from work.keep(f"{KEPT}/{name}", commit))


@lru_cache(maxsize=8)
def _snapshots_of(project: Path, views: Views | None) -> GitSnapshots:
    """Return the same object for each session of a project, as it asks git for the layout once."""
    return GitSnapshots(project, Workspace(project).snapshots, views=views)


class _Tree:
    """The files of the project that are tracked or not ignored, as a tree of git."""

    def __init__(self, protected: Protected) -> None:
        self._protected = protected
        self._snapshots = _snapshots_of(protected.project, protected.views)
        self._before: Contents | None = None

    def take(self) -> Flow[None]:
        """Remember the files as they are now.

        Raises:
            ProcessError, OSError: git cannot read them.
        """
        self._before = yield from self._snapshots.work_tree.contents()

    def put_back(self) -> Flow[Undone | None]:
        """Restore the files, and return what was changed; None if nothing was.

        Raises:
            ProcessError, StorageError, OSError: they cannot be read or restored.
        """
        before = self._before
        now = yield from ask(clock())
        if before is None or now is None:
            return None
        snapshot = Snapshot(
            "", "", "", before.tree, now, left_out=before.left_out, modes=before.modes
        )
        plan = yield from ask(undo_plan(self._snapshots, snapshot))
        assert plan is not None
        top = (yield from self._snapshots.work_tree.layout()).top
        changes = tuple(change for change in plan.changes if self._counts(top / change.path))
        if not changes:
            return None
        return (yield from ask(undo_stage(self._snapshots, replace(plan, changes=changes))))

    def _counts(self, path: Path) -> bool:
        """Return whether the path is compared here, and neither exempt nor in `ExpectedFiles`."""
        protected = self._protected
        others = (*protected.exempt, *protected.paths)
        is_inside = path.is_relative_to(protected.project)
        return is_inside and not _is_in(path, others) and not is_own_output(path)


def _is_in(path: Path, places: Iterable[Path]) -> bool:
    return any(path.is_relative_to(place) for place in places)


def _name_in_tree(path: Path, root: Path) -> Path:
    """Return the name of a kept file; git takes no path with a part `.git`."""
    relative = path.relative_to(root) if path.is_relative_to(root) else Path(*path.parts[1:])
    return Path(*("dot-git" if part == ".git" else part for part in relative.parts))


def _write(path: Path, content: bytes, *, is_link: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with own_write(path, content):
        if is_link:
            path.symlink_to(os.fsdecode(content))
        else:
            path.write_bytes(content)
