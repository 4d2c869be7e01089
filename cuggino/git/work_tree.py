"""The files of a work tree as one tree of git, by a private index that stores them byte for byte.

It is the index of a small git directory beside the repository, with the repository's objects. No
attribute applies there: no filter runs and no line ending is converted. Nothing of the repository's
own index, branches or configuration is written.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from cuggino.errors import ProcessError, ProcessFailed
from cuggino.files import readable, write_atomic
from cuggino.git.conversion import stores_as_is
from cuggino.git.layout import Layout, layout_of
from cuggino.git.listings import MODULE, STATUS, Changed, changed_files, index_files
from cuggino.git.messages import failed, joined
from cuggino.git.objects import Entry, UnknownObject, entries_of, read_file
from cuggino.git.program import Git
from cuggino.operators import Flow, pause
from cuggino.processes import Said
from cuggino.sandbox import SNAPSHOTS, Views

REFS = SNAPSHOTS
"""The refs of snapshots, as `<run>/<stage>`."""

MAX_FILE = 50_000_000
"""Bytes of the largest file that a snapshot holds by default."""

_NO_ATTRIBUTES = "* -text !eol !crlf -ident -filter !working-tree-encoding !diff !merge\n"
_CONVERTING = ("text", "eol", "crlf", "ident", "filter", "working-tree-encoding")
"""Attributes by which a file differs from its blob in the repository."""
_ENDINGS = frozenset({b"text", b"eol", b"crlf"})
"""Those of them that convert line endings only."""
_FEW_FILES, _FEW_BYTES = 32, 1 << 20
"""Changes that are stored without git; they are read again for each snapshot until it does."""
_USUAL = frozenset({0o644, 0o755})
_SLICE = 512
"""Files examined before the scheduler may run other work."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The files of a work tree, as one tree of git."""

    tree: str
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Paths that the tree does not hold, each with the reason."""
    modes: Mapping[str, str] = field(default_factory=dict)
    """Unusual permissions, as octal digits by path."""
    modules: tuple[str, ...] = ()
    """Paths of submodules: the tree holds a commit of theirs, and none of their files."""


class WorkTree:
    """The files of the repository around `cwd`; their private index is kept in `folder`.

    One process at a time may use it.
    """

    def __init__(
        self, cwd: Path, folder: Path, *, views: Views | None = None, max_file: int = MAX_FILE
    ) -> None:
        self._cwd = cwd
        self.views = views
        self._here = Git(cwd=cwd, views=views)
        self.folder = folder
        self._max_file = max_file
        self._layout: Layout | None = None
        self._own_rule: bytes | None = None
        """The line by which git ignores the folder."""

    def is_in_repository(self) -> bool:
        """Return whether a folder from `cwd` upward looks like a repository."""
        here = self._cwd.resolve()
        return any((place / ".git").exists() for place in (here, *here.parents))

    def layout(self) -> Flow[Layout]:
        """Return the layout of the repository.

        Raises:
            ProcessError: there is none, or it has no work tree.
        """
        if self._layout is None:
            self._layout = yield from layout_of(self._here)
        return self._layout

    def has_older(self, before: datetime) -> Flow[bool]:
        """Return whether there may be snapshots from before that time, without asking git.

        Raises:
            ProcessError: there is no repository, or it has no work tree.
        """
        layout = yield from self.layout()
        if not layout.has_ref_files:
            return True
        if REFS.encode() in readable(layout.common / "packed-refs"):
            return True
        try:
            runs = (layout.common / REFS).iterdir()
            return any(run.stat().st_mtime < before.timestamp() for run in runs)
        except OSError:
            return False

    def contents(self, *, force: Iterable[str] = ()) -> Flow[Contents]:
        """Store every file that is tracked or not ignored, and `force`, and return their tree.

        Raises:
            ProcessError: git failed.
            OSError: the folder cannot be written.
        """
        layout = yield from self.layout()
        self._prepare(layout)
        known = self._state() if (self.folder / "index").exists() else {}
        if "modules" not in known:  # of an earlier version
            known = {}
        if known:
            try:
                return (yield from self._update(layout, known, force))
            except ProcessError:  # an index whose objects are gone, say
                shutil.rmtree(self.folder)
                self._prepare(layout)
        dropped, modules = yield from self._begin(layout)
        return (yield from self._update(layout, {"modules": modules}, (*dropped, *force)))

    def commit(self, contents: Contents, message: str, *, seconds: int, parent: str | None) -> str:
        """Write a commit of the contents and return its hash.

        Raises:
            OSError: it cannot be written.
        """
        layout = self._layout
        assert layout is not None
        who = f"cuggino <cuggino@localhost> {seconds} +0000"
        lines = [f"tree {contents.tree}", *([f"parent {parent}"] if parent else [])]
        lines += [f"author {who}", f"committer {who}", "", message, ""]
        body = "\n".join(lines).encode()
        commit = layout.store.write(b"commit", body).hex()
        _write(self.folder / "HEAD", f"{commit}\n".encode("ascii"))
        return commit

    def keep(self, name: str, commit: str) -> Flow[str]:
        """Make the reference `name`, or `name-2`, ... if it exists; return which.

        Raises:
            ProcessError, OSError: it cannot be made.
        """
        layout = yield from self.layout()
        number = 1
        while True:
            ref = name if number == 1 else f"{name}-{number}"
            if not layout.has_ref_files:
                try:
                    yield from self.git.must("update-ref", ref, commit, "0" * len(commit))
                except ProcessFailed:
                    if number >= _MOST:
                        raise
                else:
                    return ref
            elif _create(layout.common / ref, f"{commit}\n"):
                return ref
            number += 1

    def _prepare(self, layout: Layout) -> None:
        """Rewrite the settings of the git directory, so that it has no others."""
        own = readable(layout.exclude)
        if self._own_rule is None:
            self._own_rule = b""
            with suppress(ValueError):  # it is outside
                place = self.folder.resolve().relative_to(layout.top.resolve())
                self._own_rule = b"\n/" + os.fsencode(place.as_posix()) + b"/\n"
        write_private(self.folder, exclude=own + self._own_rule, algorithm=layout.algorithm)

    def entries(self, tree: str) -> Flow[Mapping[bytes, Entry]]:
        """Return the entries of a tree of the repository, by name.

        Raises:
            ProcessError: git does not have it.
        """
        layout = yield from self.layout()
        try:
            return layout.store.entries(bytes.fromhex(tree))
        except UnknownObject:  # packed, or large
            said = yield from self.git.must("cat-file", "tree", tree)
            return entries_of(said.output, len(tree) // 2)

    def _begin(self, layout: Layout) -> Flow[tuple[list[str], list[str]]]:
        """Copy the repository's index, without the entries that may differ from their files.

        Return the paths that were dropped, and those of submodules.
        """
        index = self.folder / "index"
        head = layout.head() or "ref: refs/heads/none"
        _write(self.folder / "HEAD", f"{head}\n".encode())
        try:
            # With its time, by which git notices a change in the same instant.
            shutil.copy2(layout.index, index)
            listed = (yield from self._private("ls-files", "-v", "--stage", "-z")).fields
        except (FileNotFoundError, ProcessFailed):  # none yet, or a split one
            index.unlink(missing_ok=True)
            return [], []
        files = index_files(listed)
        modules = [file.path for file in files if file.mode == MODULE]
        # git does not look at these files
        dropped = {file.path for file in files if file.tag == "S" or file.tag.islower()}
        dropped |= yield from self._converted(layout, {file.path: file.blob for file in files})
        if dropped:
            words = ("update-index", "--force-remove", "-z", "--stdin")
            yield from self._private(*words, stdin=joined(sorted(dropped)))
        return list(dropped), modules

    def _converted(self, layout: Layout, blobs: Mapping[str, str]) -> Flow[set[str]]:
        """Return the paths with an attribute by which file and blob may differ.

        Line endings alone change the size, so files of the blob's size are no such ones.
        """
        has_attributes = any(path.endswith(".gitattributes") for path in blobs)
        if not has_attributes and (yield from stores_as_is(self.git, blobs)):
            return set()
        command = ("check-attr", "-z", "--stdin", *_CONVERTING)
        said = yield from self.git.must(*command, stdin=joined(blobs))
        fields = said.output.split(b"\0")
        automatic = layout.settings.get("core.autocrlf", "false") in ("true", "input")
        found: set[str] = set()
        endings: set[str] = set()
        for path, name, value in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
            if value not in (b"unset", b"unspecified") or (
                automatic and name == b"text" and value == b"unspecified"
            ):
                (endings if name in _ENDINGS else found).add(os.fsdecode(path))
        texts = sorted(endings - found)
        if texts:
            stdin = "".join(f"{blobs[path]}\n" for path in texts).encode()
            said = yield from self.git.must("cat-file", "--batch-check=%(objectsize)", stdin=stdin)
            sizes = said.output.splitlines()
            for number, (text, size) in enumerate(zip(texts, sizes, strict=True)):
                if not _has_size(layout.top / text, size):
                    found.add(text)
                if number % _SLICE == _SLICE - 1:
                    yield from pause(0)
        return found

    def _update(
        self, layout: Layout, known: dict[str, Any], force: Iterable[str]
    ) -> Flow[Contents]:
        status = (*STATUS, "--untracked-files=all", "--ignore-submodules=all")
        entries = changed_files((yield from self._private(*status)).fields)
        count = _count_of(layout.index)
        if "tree" in known and count != known.get("entries"):
            # Files that the repository tracks although they are ignored.
            names = ("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
            force = (*force, *(yield from self.git.must(*names)).fields)
        entries += [Changed("??", path) for path in force]
        modes: dict[str, str] = dict(known.get("modes", {}))
        left_out: dict[str, str] = {}
        added: list[str] = []
        removed: list[str] = []
        for number, entry in enumerate(entries):
            if not entry.is_in_work_tree and not entry.is_unmerged:
                continue
            path = entry.path
            is_stored, why = _stored(layout.top, entry, modes, self._max_file)
            if is_stored:
                added.append(path)
            elif not entry.is_untracked or path in modes:
                removed.append(path)
                modes.pop(path, None)
            if why:
                left_out[path] = why
            if number % _SLICE == _SLICE - 1:
                yield from pause(0)
        modules = tuple(known["modules"])
        if "tree" in known and not force and (added or removed):
            tree = _patched(layout, known["tree"], added, removed)
            if tree is not None:
                if count != known.get("entries"):
                    self._remember({**known, "entries": count})
                return Contents(tree, left_out, modes, modules)
        if added or removed:  # a killed process must not leave the record of an earlier index
            (self.folder / "state.json").unlink(missing_ok=True)
        if removed:  # first, as a file may have become a folder, or a folder a link
            words = ("update-index", "--force-remove", "-z", "--stdin")
            yield from self._private(*words, stdin=joined(removed))
        tree = known.get("tree")
        if added or removed or not tree:
            store = ("update-index", "--add", "--replace", "--remove", "-z", "--stdin")
            yield from self._private(*store, stdin=joined(added))
            tree = (yield from self._private("write-tree")).text
        state = {"tree": tree, "entries": count, "modes": modes, "modules": list(modules)}
        if state != known:
            self._remember(state)
        return Contents(tree, left_out, dict(modes), modules)

    def _remember(self, state: Mapping[str, Any]) -> None:
        write_atomic(self.folder / "state.json", json.dumps(state))

    def _state(self) -> dict[str, Any]:
        try:
            state = json.loads((self.folder / "state.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return state if isinstance(state, dict) and state.get("tree") else {}

    @property
    def git(self) -> Git:
        """Git in the top folder of the repository, whose layout is known."""
        assert self._layout is not None
        return self._here.at(self._layout.top)

    def _private(self, *args: str, stdin: bytes | None = None) -> Flow[Said]:
        """Run a git command with the private index."""
        layout = self._layout
        assert layout is not None
        passed = (
            word
            for name in _PASSED
            if (value := layout.settings.get(name)) is not None
            for word in ("-c", f"{name}={value}")
        )
        words = (f"--git-dir={self.folder}", f"--work-tree={layout.top}", *_OWN_INDEX, *passed)
        return (
            yield from self.git.must(
                *words,
                *args,
                stdin=stdin,
                env={"GIT_OBJECT_DIRECTORY": str(layout.objects)},
                writes=(self.folder,),
            )
        )

    def ignored(self, rules: Path, paths: Iterable[str]) -> Flow[frozenset[str]]:
        """Return which paths are ignored by the `.gitignore` files below the folder `rules`."""
        layout = yield from self.layout()
        excludes = layout.settings.get("core.excludesfile")
        own = ("-c", f"core.excludesFile={excludes}") if excludes is not None else ()
        words = (f"--git-dir={self.folder}", f"--work-tree={rules}", *own)
        command = (*words, "check-ignore", "--no-index", "-z", "--stdin")
        said = yield from self._here.at(rules).run(*command, stdin=joined(paths))
        if said.code not in (0, 1):  # 1: none of them
            raise failed(command, said.code, said.words)
        return frozenset(said.fields)


_OWN_INDEX = ("-c", "core.untrackedCache=false", "-c", "core.splitIndex=false")
_PASSED = (
    *("core.filemode", "core.ignorecase", "core.precomposeunicode", "core.symlinks"),
    *("core.longpaths", "core.excludesfile"),
)
_MOST = 1000


def write_private(folder: Path, *, exclude: bytes, algorithm: str = "sha1") -> None:
    """Make the folder a git directory without any setting, filter or hook, or keep it one.

    `exclude` are rules for files to ignore.
    """
    for name in ("objects", "refs", "info"):
        if not (folder / name).is_dir():
            (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "index.lock").unlink(missing_ok=True)
    if not (folder / ".gitignore").exists():
        (folder / ".gitignore").write_text("*\n", encoding="ascii")
    if not (folder / "HEAD").exists():
        (folder / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")
    config = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tautocrlf = false\n"
    if algorithm != "sha1":
        config += f"[extensions]\n\tobjectformat = {algorithm}\n"
    _write(folder / "config", config.encode("ascii"))
    _write(folder / "info" / "attributes", _NO_ATTRIBUTES.encode("ascii"))
    _write(folder / "info" / "exclude", exclude)


def _write(path: Path, content: bytes) -> None:
    """Write a small file in place, unless it has this content: to empty one waits for the disk."""
    try:
        with path.open("r+b") as file:
            if file.read() != content:
                file.seek(0)
                file.write(content)
                file.truncate()
    except FileNotFoundError:
        path.write_bytes(content)


def _create(path: Path, text: str) -> bool:
    """Create the file with the text, as a whole; return False if it exists.

    An empty reference, of a killed process, would stop `git gc` and `git fetch`.
    """
    for _ in range(3):
        if path.exists():
            return False
        with suppress(FileNotFoundError):  # git has just removed the empty folder
            write_atomic(path, text, sync=False)
            return True
    raise FileNotFoundError(path)


def _stored(top: Path, entry: Changed, modes: dict[str, str], max_file: int) -> tuple[bool, str]:
    """Return whether a changed file is to be stored; if not, why, or ""."""
    path = entry.path
    if path.endswith("/"):
        return False, "a repository of its own"
    file = top / path
    try:
        found = file.lstat()
    except OSError:
        return False, ""
    if entry.is_removed:  # also one below a folder that has become a link
        return False, ""
    if stat.S_ISLNK(found.st_mode):
        modes.pop(path, None)
        return True, ""
    if not stat.S_ISREG(found.st_mode):
        return False, ""
    if found.st_size > max_file:
        return False, f"{found.st_size / 1e6:,.0f} MB"
    if not os.access(file, os.R_OK):
        return False, "unreadable"
    mode = stat.S_IMODE(found.st_mode)
    if mode in _USUAL:
        modes.pop(path, None)
    else:
        modes[path] = f"{mode:o}"
    return True, ""


def _patched(layout: Layout, tree: str, added: list[str], removed: list[str]) -> str | None:
    """Return the tree of the private index with a few changes, stored without a process.

    The index stays behind until there are more; None if git is needed.
    """
    if not layout.is_usual or len(added) + len(removed) > _FEW_FILES:
        return None
    store = layout.store
    changes: dict[bytes, Entry | None] = dict.fromkeys(map(os.fsencode, removed))
    left = _FEW_BYTES
    try:
        for path in added:
            mode, content = read_file(layout.top / path, left)
            left -= len(content)
            changes[os.fsencode(path)] = Entry(mode.encode(), store.write(b"blob", content))
        return store.tree_with(bytes.fromhex(tree), changes).hex()
    except (OSError, UnknownObject):
        return None


def _has_size(file: Path, size: bytes) -> bool:
    try:
        return file.lstat().st_size == int(size)
    except (OSError, ValueError):  # missing, here or in git
        return False


def _count_of(index: Path) -> int:
    """Return the number of entries in an index of git; 0 if it cannot be read."""
    try:
        with index.open("rb") as file:
            return int.from_bytes(file.read(12)[8:12], "big")
    except OSError:
        return 0
