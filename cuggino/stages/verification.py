"""`verified`: a session that has changed protected files does not count, and they are restored."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from reactivex import Observable, operators as ops

from cuggino.errors import ProcessError, RoleViolation, StorageError
from cuggino.events import (
    CommitFailed,
    CommitPerformed,
    ProtectedChanged,
    RoleViolated,
    is_llm_terminal_marker_event,
)
from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.operators.mapcat import mapcat
from cuggino.sandbox import Protected, git_folders
from cuggino.sources import PathVersion, Protection, files_of, git_output
from cuggino.stages.acts import clock
from cuggino.stages.history import History
from cuggino.stages.repository import CommitEvent
from cuggino.stages.shadow import Contents
from cuggino.stages.snapshot import GitSnapshots, Snapshot
from cuggino.stages.undo import Undone, undo_plan, undo_stage
from cuggino.storage import Backlog, Workspace

T = TypeVar("T")

KEPT = "refs/cuggino/kept"
"""Prefix of the refs that keep reverted versions."""

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

    With `voids=False`, for a command, the stream does not fail and the verdict counts.
    `Protected.told` are paths that people may change at any time: always `ProtectedChanged`.
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

        around = verified(protected, is_last=lambda e: isinstance(e, CommitPerformed), voids=False)
        yield from forward(commit.pipe(around, ops.map(seen)))

    return lambda commit: flow(lambda: story(commit))


class _Verification:
    def __init__(self, protected: Protected, *, voids: bool) -> None:
        self._protected = protected
        self._voids = voids
        folders = git_folders(protected.project)
        exempt = (*protected.exempt, *protected.told)
        self._files = Protection(
            protected.paths,
            exempt=exempt,
            blanks=(protected.project, *folders),
            strict=() if protected.specs is None else (protected.project / protected.specs,),
        )
        self._told = Protection(protected.told, exempt=protected.exempt)
        self._history = History(
            protected.project, folders, specs=protected.specs, looks=protected.looks
        )
        self._has_git = bool(folders)
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

        self._files.take()
        self._told.take()
        if not (self._protected.held and self._protected.looks):
            self._history.take()
        yield from self._take_tree()
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
        moved: tuple[str, ...] = ()
        if not protected.held:
            try:
                moved = (".git",) if self._history.bring_back() else ()
            except OSError as error:
                failed.append(str(error))
        changed, told = self._files.changes(), self._told.changes()
        if protected.held:
            its = set() if protected.looks else self._files.in_no_view(changed)
            told = {**{p: v for p, v in changed.items() if p not in its}, **told}
            changed = {path: changed[path] for path in its}
        if told:  # an import writes items, too, while an agent works in the project
            backlog = Backlog(Workspace(protected.project))
            told = {path: it for path, it in told.items() if not backlog.is_as_imported(path)}
        if told:
            yield from emit(ProtectedChanged(role=protected.role, paths=self._names(told)))
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
            failed += self._names(self._files.put_back(changed))
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
        with tempfile.TemporaryDirectory(prefix="cuggino-session-kept-") as temporary:
            tree = Path(temporary, "tree")
            for path, content, is_link in files:
                _write(tree / _name_in_tree(path, root), content, is_link=is_link)
            tree.mkdir(exist_ok=True)
            if self._has_git:
                try:
                    return (yield from self._keep_in_git(name, Path(temporary), commits))
                except ProcessError:  # no space, or no repository any more
                    pass
            folder = root / _KEPT_FOLDER / name
            shutil.copytree(tree, folder, symlinks=True, dirs_exist_ok=True)
            return f"{_KEPT_FOLDER}/{name}"

    def _keep_in_git(self, name: str, temporary: Path, parents: tuple[str, ...]) -> Flow[str]:
        env = {
            "GIT_INDEX_FILE": str(temporary / "index"),
            **{f"GIT_{who}_NAME": "cuggino" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "cuggino@localhost" for who in ("AUTHOR", "COMMITTER")},
        }

        def git(*args: str) -> Flow[str]:
            output = git_output(*_PLAIN, *args, cwd=self._protected.project, env=env, sweep=False)
            said = (yield from ask(output.pipe(ops.last_or_default(b"")))) or b""
            return os.fsdecode(said).strip()

        yield from git(f"--work-tree={temporary / 'tree'}", "add", "--all", "--force", ":/")
        tree = yield from git("write-tree")
        words = (word for parent in parents for word in ("-p", parent))
        message = "Reverted: changes outside the role's permissions"
        commit = yield from git("commit-tree", tree, *words, "-m", message)
        number = 1
        while True:
            ref = f"{KEPT}/{name}" if number == 1 else f"{KEPT}/{name}-{number}"
            try:
                yield from git("update-ref", ref, commit, "0" * len(commit))
            except ProcessError:
                if number == _MOST:
                    raise
                number += 1
            else:
                return ref


@lru_cache(maxsize=8)
def _snapshots_of(project: Path) -> GitSnapshots:
    """Return the same object for each session of a project, as it asks git for the layout once."""
    return GitSnapshots(project, Workspace(project).snapshots)


class _Tree:
    """The files of the project that are tracked or not ignored, as a tree of git."""

    def __init__(self, protected: Protected) -> None:
        self._protected = protected
        self._snapshots = _snapshots_of(protected.project)
        self._before: Contents | None = None

    def take(self) -> Flow[None]:
        """Remember the files as they are now.

        Raises:
            ProcessError, OSError: git cannot read them.
        """
        self._before = yield from self._snapshots.shadow.contents()

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
        top = (yield from self._snapshots.shadow.layout()).top
        changes = tuple(change for change in plan.changes if self._counts(top / change.path))
        if not changes:
            return None
        return (yield from ask(undo_stage(self._snapshots, replace(plan, changes=changes))))

    def _counts(self, path: Path) -> bool:
        protected = self._protected
        exempt = any(path.is_relative_to(one) for one in (*protected.exempt, *protected.told))
        return path.is_relative_to(protected.project) and not exempt and not _is_own_output(path)


def _is_own_output(path: Path) -> bool:
    """Return whether this process prints into the file, as `cuggino run >log.txt` does."""
    for standard in (1, 2):
        with suppress(OSError):
            if os.path.samestat(os.fstat(standard), path.stat()):
                return True
    return False


_MOST = 99
_PLAIN = (
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.autocrlf=false", "-c", "core.safecrlf=false"),
)


def _name_in_tree(path: Path, root: Path) -> Path:
    """Return the name of a kept file; git takes no path with a part `.git`."""
    relative = path.relative_to(root) if path.is_relative_to(root) else Path(*path.parts[1:])
    return Path(*("dot-git" if part == ".git" else part for part in relative.parts))


def _write(path: Path, content: bytes, *, is_link: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_link:
        path.symlink_to(os.fsdecode(content))
    else:
        path.write_bytes(content)
