"""`History`: the branches of a repository and the specifications in it, as they were.

Programs can change both with git's own tools, without writing a file of the work tree.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cuggino.files import read_regular
from cuggino.git.head import SYMBOLIC, commit_being_merged, head_of, packed_refs, ref_in
from cuggino.git.program import Git
from cuggino.operators import Flow
from cuggino.sandbox import SNAPSHOTS, Views, git_folders

_REPLACED = "refs/replace/"
"""Objects that git shows in the place of others, such as another specification."""

_KEPT = ("refs/heads/", "refs/tags/", "refs/stash", "refs/notes/", "refs/cuggino/", _REPLACED)
"""References that agents may not move or remove; others follow a remote."""

_NOT_MADE = (_REPLACED, "refs/cuggino/")
"""References that agents may not make either."""

_LARGEST_INDEX = 1 << 30

_FOLDERS = 8
"""Maximum number of folders whose references are cached."""


@dataclass(frozen=True, slots=True)
class _State:
    head: str
    """The content of HEAD: `ref: refs/heads/main`, or a commit; "" if it is gone."""
    refs: Mapping[str, str]
    index: tuple[int, int, int]

    @property
    def branch(self) -> str:
        return self.head.removeprefix(SYMBOLIC) if self.head.startswith(SYMBOLIC) else ""

    @property
    def commit(self) -> str:
        return self.refs.get(self.branch, "") if self.branch else self.head


class History:
    """The git state of a project, read without starting a process as long as nothing has changed.

    `looks` is for roles that may not change the repository. Others may commit and create branches,
    but must keep existing branches, and the `specs` in the commit and in the index, unless a merge
    is under way that brings others. `held` are those in a view, which keeps them from snapshots.
    """

    def __init__(
        self,
        project: Path,
        folders: tuple[Path, ...],
        *,
        specs: str | None,
        looks: bool,
        held: bool = False,
        views: Views | None = None,
    ):
        self._project = project
        self._git = Git(cwd=project, views=views)
        self._folders = folders
        self._specs = specs
        self._looks = looks
        self._skipped = SNAPSHOTS if held else ""
        self._before: _State | None = None
        self._index: bytes | None = None
        """The original index, for a role that may not change the repository."""
        self._folder: tuple[int, ...] = ()
        """Device and inode of the repository's folder, if it is in the project's."""
        self._merging = ""
        """The commit of a merge that is under way."""

    def take(self) -> None:
        """Remember the state as it is now."""
        before = self._state()
        self._before = before if before is not None and before.head else None
        self._index, self._folder, self._merging = None, (), ""
        if self._before is not None and self._folders[0].parent == self._project:
            state = self._folders[0].stat()
            self._folder = state.st_dev, state.st_ino
        if self._before is not None and self._specs is not None:
            self._merging = commit_being_merged(self._folders[0])
        if self._looks and self._before is not None:
            with suppress(OSError, ValueError):
                self._index = read_regular(self._folders[0] / "index", biggest=_LARGEST_INDEX)

    def bring_back(self) -> bool:
        """Move the repository's folder back if it was moved away; return whether it was.

        Otherwise the folder to which an agent has moved it would be removed with all commits.

        Raises:
            OSError: it cannot be moved back.
        """
        if self._before is None or not self._folder:
            return False
        place = self._folders[0]
        if place.is_dir() and not place.is_symlink():
            return False
        found = self._find()
        if found is None:
            return False
        if os.path.lexists(place):
            place.unlink()
        shutil.move(found, place)
        return True

    def _find(self) -> Path | None:
        """Return the repository's folder: the one that `.git` names, or else one in the project."""
        for folder in git_folders(self._project)[:1]:
            if folder not in self._project.parents and folder != self._folders[0]:
                return folder
        for place, folders, _ in os.walk(self._project):
            for name in folders:
                state = Path(place, name).lstat()
                if (state.st_dev, state.st_ino) == self._folder:
                    return Path(place, name)
        return None

    def changes(self) -> Flow[dict[str, str]]:
        """Return each forbidden change by name, with its current commit or "".

        A reference is named in full, a specification as `HEAD:PATH`, or `:PATH` in the index. One
        change may hide others, so ask again when they have been put back.
        """
        before = self._before
        now = None if before is None else self._state()
        if before is None or now is None or before == now:
            return {}
        changed = dict(self._refs(before, now))
        if not now.head:
            changed["HEAD"] = ""
        elif self._looks:
            if before.head != now.head and (before.branch or now.branch):
                changed["HEAD"] = now.commit
        elif self._specs is not None:
            moved = before.commit != now.commit
            if moved and before.commit and now.commit:
                paths = yield from self._differing(before.commit, now.commit)
                for path in (yield from self._not_merged(paths, now.commit)):
                    changed[f"HEAD:{path}"] = now.commit
            if before.index != now.index and now.commit:
                staged = yield from self._differing("--cached", now.commit)
                staged = yield from self._not_merged(staged, "--cached")
                # What a person stages is what the work tree has.
                unlike: set[str] = set()
                if staged:
                    gone = yield from self._differing("--cached", "--diff-filter=D", now.commit)
                    there = {path for path in gone if os.path.lexists(self._project / path)}
                    unlike = {*(yield from self._differing()), *there}
                changed.update({f":{path}": "" for path in staged if path in unlike})
        return changed

    def put_back(self, changed: Mapping[str, str]) -> Flow[None]:
        """Undo these changes; no file of the work tree is written.

        Raises:
            ProcessError, OSError: git failed, or a file of the repository cannot be written.
        """
        before = self._before
        if before is None or not changed:
            return
        self._make_readable(before.head)
        self._remove_broken(ref for ref, now in changed.items() if not now)
        commands = "".join(
            f"update {ref} {before.refs[ref]}\n" if ref in before.refs else f"delete {ref}\n"
            for ref in changed
            if ref.startswith("refs/")
        )
        if commands:
            yield from self._git.must("update-ref", "--stdin", stdin=commands.encode())
        is_moved = any(name.startswith("HEAD:") for name in changed)
        if "HEAD" in changed or is_moved:  # first, so that the commit is not put on another branch
            words = ("symbolic-ref", "HEAD", before.branch)
            yield from self._git.must(
                *(words if before.branch else ("update-ref", "--no-deref", "HEAD", before.head))
            )
        if is_moved:
            yield from self._git.must("reset", "--quiet", "--soft", before.commit)
        if any(":" in name for name in changed):
            yield from self._git.must("reset", "--quiet", before.commit, "--", self._specs or ".")
        if self._index is not None:
            (self._folders[0] / "index").write_bytes(self._index)

    def _make_readable(self, head: str) -> None:
        """Create the files without which git does not recognize the folder as a repository."""
        if not (self._folders[-1] / "objects").is_dir():
            return
        (self._folders[-1] / "refs").mkdir(exist_ok=True)
        if head_of(self._folders[0]):
            return
        file = self._folders[0] / "HEAD"
        file.unlink(missing_ok=True)
        file.write_text(f"{head}\n", "utf-8")

    def _remove_broken(self, refs: Iterable[str]) -> None:
        """Remove the files of references that git cannot read: it would not write them either."""
        for ref in refs:
            file = self._folders[-1].resolve() / ref
            if ref.startswith("refs/") and file.is_file() and file.resolve() == file:
                file.unlink()

    def _refs(self, before: _State, now: _State) -> Iterator[tuple[str, str]]:
        for ref in sorted({*before.refs, *now.refs}):
            old, new = before.refs.get(ref), now.refs.get(ref)
            is_new = old is None and not ref.startswith(_NOT_MADE)
            is_moved = bool(new) and ref in (before.branch, now.branch)  # "" cannot be read
            may_change = not self._looks and (is_new or is_moved)
            if old != new and ref.startswith(_KEPT) and not may_change:
                yield ref, new or ""

    def _not_merged(self, paths: tuple[str, ...], where: str) -> Flow[tuple[str, ...]]:
        """Return the paths that differ from the commit of the merge."""
        if not paths or not self._merging:
            return paths
        unlike = yield from self._differing(where, self._merging)
        return tuple(path for path in paths if path in unlike)

    def _differing(self, *between: str) -> Flow[tuple[str, ...]]:
        """Return the specifications that differ between commits, the index or the work tree."""
        words = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "--relative", "-z")
        said = yield from self._git.must(*words, *between, "--", self._specs or ".")
        return tuple(said.fields)

    def _state(self) -> _State | None:
        """Read the files of the repository; None without one that keeps its references in files."""
        if not self._folders or any((folder / "reftable").exists() for folder in self._folders):
            return None
        head = head_of(self._folders[0])
        refs: dict[str, str] = {}
        for folder in reversed(self._folders):
            refs.update(packed_refs(folder))
            refs.update(_loose(folder, self._skipped))
        index = (0, 0, 0)
        with suppress(OSError):
            index = _print((self._folders[0] / "index").stat())
        return _State(head, refs, index)


_read: dict[str, dict[str, tuple[tuple[int, int, int], str]]] = {}
"""The references that were read, by folder and file: a run has one for each of its snapshots."""


def _loose(folder: Path, skipped: str) -> Iterator[tuple[str, str]]:
    """Yield the references in files of their own; one is only read when its file has changed.

    Those below `skipped` are left out.
    """
    top = os.fspath(folder)
    before, now = _read.get(top, {}), {}
    for place, folders, names in os.walk(f"{top}/refs"):
        folders[:] = [name for name in folders if f"{place}/{name}" != f"{top}/{skipped}"]
        for name in names:
            file = f"{place}/{name}"
            if name.endswith(".lock"):
                continue
            with suppress(OSError):
                print_ = _print(os.stat(file))  # noqa: PTH116
                known = before.get(file)
                if known is None or known[0] != print_:
                    known = print_, ref_in(Path(file))
                now[file] = known
                yield file[len(top) + 1 :], known[1]
    if len(_read) >= _FOLDERS:
        _read.clear()
    _read[top] = now


def _print(state: os.stat_result) -> tuple[int, int, int]:
    """Return a value that changes when a file is written."""
    return state.st_ino, state.st_ctime_ns, state.st_size
