"""The fingerprint of a project, which shows whether agents change anything."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from reactivex import Observable, defer, timer

from cuggino.errors import ProcessError
from cuggino.files import read_regular, readable
from cuggino.git import (
    EACH_REF,
    STATUS,
    Contents,
    Git,
    WorkTree,
    blob_name,
    changed_files,
    index_files,
    read_file,
    write_private,
)
from cuggino.operators import Flow, emit, flow, interrupt_when, pause
from cuggino.sandbox import Views, git_folders

DIGITS = 16
"""Length of a fingerprint."""

_DEPTH = 4
"""Nesting to which repositories in repositories are read with git."""

_WHOLE = 64 * 1024 * 1024
"""Largest file whose whole content counts, in bytes."""

_SAMPLE = 1024 * 1024
"""Bytes at the start and the end that count of a larger one, besides its size."""

_LEFT_OUT = frozenset({b"node_modules", b"bower_components", b"__pycache__", b"venv"})
"""Generated folders, skipped where no git knows what to ignore."""

_HIDDEN = re.compile(rb"\.(?:git|hypothesis|nox|tox|.*cache)")
"""Folders that git and tests fill."""

_TELLTALES = frozenset({b"CACHEDIR.TAG", b"pyvenv.cfg"})
"""Files that mark their folder as a cache or a virtual environment."""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags for opening files; non-blocking, in case a pipe has replaced one."""

_SLICE_FILES, _SLICE_BYTES = 256, 16 * 1024 * 1024
"""Maximum files and bytes read before the scheduler may run other work."""

_INDEX = ".cuggino/snapshots"
"""The private index of a project."""

_TREE = b"40000"


def fingerprint_stage(
    cwd: Path,
    *,
    exclude: tuple[Path, ...],
    plan: Path | None,
    index: Path | None = None,
    views: Views | None = None,
    timeout: float = 60.0,
) -> Observable[str]:
    """Emit 16 hexadecimal digits that identify the content of the project.

    Two fingerprints are equal when `cwd` holds the same files with the same content and executable
    bits, committed or not and regardless of timestamps, and the same items of the plan are checked.
    So a commit changes nothing, and a revert restores the earlier fingerprint.

    In a git repository the files are those below `cwd` that are tracked or not ignored, byte for
    byte: the tree of `WorkTree`, whose private index is in the folder `index`, by default that of
    snapshots. Submodules and nested repositories count with their files; no setting of theirs is
    read. Without git, or where git fails or ignores everything, they are all files outside hidden
    folders, caches, `node_modules` and the like. Links count with their target's name. Paths in
    `exclude`, relative to `cwd` or absolute, do not count. Of a file that is too large for the tree
    the size, the first and the last MiB count.

    Of the `plan` file only the positions of the checked boxes (`- [x]`) count, up to its progress
    log: neither a new plan nor prose is progress.

    The stage never fails: if git does, or after `timeout` seconds, the fingerprint is random, so
    that a failure never looks like a standstill.
    """
    root = cwd.absolute()
    excluded = tuple(root / path for path in exclude)
    work = WorkTree(root, root / _INDEX if index is None else index, views=views)

    def run() -> Flow[None]:
        try:
            content = yield from _content(work, root, excluded)
            state = hashlib.sha256(b"%b+%r" % (content, _checked(plan)))
            fingerprint = state.hexdigest()[:DIGITS]
        except Exception:  # even a defect must not end the loop
            fingerprint = _random()
        yield from emit(fingerprint)

    return defer(lambda _: flow(run).pipe(interrupt_when(timer(timeout), _random())))


def trace_stage(
    cwd: Path, *, exclude: tuple[Path, ...], views: Views | None = None, timeout: float = 60.0
) -> Observable[str]:
    """Emit 16 hexadecimal digits that identify what agents may leave beside the fingerprint.

    These are the tags of the repository, empty folders, and files that git ignores. Caches and
    generated folders do not count: tests fill them whatever an agent does. Files that count in the
    fingerprint count here, too. `exclude` and failures as in `fingerprint_stage`.
    """
    root = cwd.absolute()
    excluded = tuple(root / path for path in exclude)
    work = WorkTree(root, root / _INDEX, views=views)

    def run() -> Flow[None]:
        try:
            tags = b""
            if work.is_in_repository():
                tags = (yield from Git(cwd=root, views=views).run(*EACH_REF, "refs/tags")).output
            files = yield from _of_folder(root, excluded, is_whole=True)
            trace = hashlib.sha256(b"%b+%b" % (files, tags)).hexdigest()[:DIGITS]
        except Exception:  # even a defect must not end the loop
            trace = _random()
        yield from emit(trace)

    return defer(lambda _: flow(run).pipe(interrupt_when(timer(timeout), _random())))


def _random() -> str:
    return secrets.token_hex(DIGITS // 2)


def checked_items(plan: str) -> tuple[int, ...]:
    """Return the positions, from 0, of the checked boxes among all boxes of a Markdown plan.

    Code blocks and everything from the heading `# Progress Log` on do not count.
    """
    checked = []
    number, fence = 0, ""
    for line in plan.splitlines():
        if found := _FENCE.match(line):
            if not fence:
                fence = found[1]
            elif found[1].startswith(fence) and not found[2].strip():
                fence = ""
        elif fence:
            continue
        elif _LOG.match(line):
            break
        elif box := _BOX.match(line):
            if box[1] in "xX":
                checked.append(number)
            number += 1
    return tuple(checked)


_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_LOG = re.compile(r"#+\s+progress log\s*#*\s*$", re.IGNORECASE)
_BOX = re.compile(r"[\s>]*(?:[-*+]|\d{1,9}[.)])\s+\[([ xX])\](?:\s|$)")


def _checked(plan: Path | None) -> tuple[int, ...]:
    if plan is None:
        return ()
    try:
        return checked_items(read_regular(plan).decode("utf-8", "replace"))
    except (OSError, ValueError):  # there is none yet
        return ()


def _content(work: WorkTree, root: Path, exclude: tuple[Path, ...]) -> Flow[bytes]:
    """Return the digest of the files, with git or without it where that is impossible."""
    if work.is_in_repository():
        with suppress(ProcessError):  # a broken one, no git
            if (found := (yield from _of_repository(work, root, exclude))) is not None:
                return found
    # An empty folder, or one that the repository around it ignores.
    return (yield from _of_folder(root, exclude))


def _of_repository(work: WorkTree, root: Path, exclude: tuple[Path, ...]) -> Flow[bytes | None]:
    """Return the digest of the files in the repository; None if there are none below `root`."""
    contents = yield from work.contents()
    prefix = Path((yield from work.layout()).prefix)
    excluded = _names(root, exclude)
    tree = yield from _below(work, contents.tree, prefix)
    state = hashlib.sha256()
    if tree is not None:
        state.update((yield from _digest(work, tree, excluded)) or b"")
    apart = sorted(_apart(contents, prefix, excluded))
    for path in apart:
        file = root / path
        if file.is_dir():
            digest = yield from _nested(work, file, exclude, 1)
        else:
            digest = _identity_of(file)
        state.update(b"%d:%b%b" % (len(os.fsencode(path)), os.fsencode(path), digest))
    return state.digest() if apart or tree is not None else None


def _below(work: WorkTree, tree: str, prefix: Path) -> Flow[str | None]:
    """Return the tree of a folder in the repository; None without files in it."""
    for part in prefix.parts:
        entry = (yield from work.entries(tree)).get(os.fsencode(part))
        if entry is None or entry.mode != _TREE:
            return None
        tree = entry.name.hex()
    return tree


def _digest(work: WorkTree, tree: str, excluded: frozenset[bytes]) -> Flow[bytes | None]:
    """Return the digest of a tree without the excluded paths; None if nothing is left of it."""
    if not excluded:
        return bytes.fromhex(tree)
    state = hashlib.sha256()
    is_empty = True
    for name, entry in sorted((yield from work.entries(tree)).items()):
        within = frozenset(
            path.partition(b"/")[2] for path in excluded if path.partition(b"/")[0] == name
        )
        if b"" in within:
            continue
        digest: bytes | None = entry.name
        if entry.mode == _TREE and within:
            digest = yield from _digest(work, entry.name.hex(), within)
        if digest is not None:
            state.update(b"%b %d:%b%b" % (entry.mode, len(name), name, digest))
            is_empty = False
    return None if is_empty else state.digest()


def _apart(contents: Contents, prefix: Path, excluded: frozenset[bytes]) -> Iterator[str]:
    """Yield what the tree does not hold, relative to the folder: large files and repositories."""
    for path in (*contents.left_out, *contents.modules):
        with suppress(ValueError):
            name = Path(path).relative_to(prefix)
            names = {os.fsencode(part) for part in (name, *name.parents)}
            if not names & excluded:
                yield os.fspath(name)


def _nested(work: WorkTree, folder: Path, exclude: tuple[Path, ...], depth: int) -> Flow[bytes]:
    """Return the digest of a repository within the repository.

    It is read through a copy of its index, so that none of its settings counts: an agent may have
    made it, and named programs in them.
    """
    if depth > _DEPTH or not (folder / ".git").exists():
        return (yield from _of_folder(folder, exclude))
    private = work.folder / "nested"
    shutil.rmtree(private, ignore_errors=True)
    git = Git(cwd=folder, views=work.views)
    own = git_folders(folder)
    rules = readable(own[-1] / "info" / "exclude") if own else b""
    try:
        write_private(private, exclude=rules)
        with suppress(OSError, IndexError):  # nothing was added to it yet
            shutil.copy2(own[0] / "index", private / "index")
        words = (f"--git-dir={private}", f"--work-tree={folder}")
        listed = yield from git.must(*words, "ls-files", "--stage", "-z")
        apart = _names(folder, exclude)
        left_out = (f":(exclude,literal){os.fsdecode(name)}" for name in sorted(apart))
        every = ("--untracked-files=all", "--ignore-submodules=all")
        status = (*STATUS, *every, "--", ".", *left_out)
        changed = yield from git.must(*words, *status, writes=(private,))
    except ProcessError:  # one that git cannot read
        return (yield from _of_folder(folder, exclude))
    files = {
        os.fsencode(one.path): f"{one.mode} {one.blob}".encode()
        for one in index_files(listed.fields)
    }
    turn = _Turn()
    for entry in changed_files(changed.fields):
        if entry.is_in_work_tree:
            path = os.fsencode(entry.path.rstrip("/"))
            files.pop(path, None)
            file = folder / os.fsdecode(path)
            if file.is_dir() and not file.is_symlink():
                files[path] = yield from _nested(work, file, exclude, depth + 1)
            elif os.path.lexists(file):
                files[path] = _state_of(file)
            if turn.is_over(0):
                yield from pause(0)
    left = _names(folder, exclude)
    state = hashlib.sha256()
    for path, about in sorted(files.items()):
        if path not in left and not any(path.startswith(name + b"/") for name in left):
            state.update(b"%d:%b%b" % (len(path), path, about))
    return state.digest()


def _state_of(file: Path) -> bytes:
    """Return mode and hash of a file as an index has them; our own hash of one that git refuses."""
    try:
        mode, content = read_file(file, _WHOLE)
    except OSError:
        return _identity_of(file)
    return f"{mode} {blob_name(content)}".encode()


def _of_folder(folder: Path, exclude: tuple[Path, ...], *, is_whole: bool = False) -> Flow[bytes]:
    """Return the digest of all files below the folder, except hidden and generated folders.

    If it `is_whole`, empty folders count, and hidden ones that are no cache.

    Raises:
        OSError: the folder itself cannot be read.
    """
    excluded = _names(folder, exclude)
    files: list[tuple[bytes, bytes]] = []
    turn = _Turn()
    waiting = [b""]
    while waiting:
        parent = waiting.pop()
        try:
            found = list(_listing(folder, parent))
        except OSError:
            if not parent:
                raise
            files.append((parent, b"unreadable"))
            continue
        if parent and _TELLTALES.intersection(name for name, _is_folder in found):
            continue
        for name, is_folder in found:
            path = parent + b"/" + name if parent else name
            if path in excluded:
                continue
            if is_folder:
                is_hidden = name.startswith(b".") if not is_whole else _HIDDEN.fullmatch(name)
                if not is_hidden and name not in _LEFT_OUT:
                    waiting.append(path)
                    if is_whole:
                        files.append((path, b"folder"))
                continue
            try:
                status = (folder / os.fsdecode(path)).lstat()
            except OSError:  # deleted just now
                continue
            content = _identity(folder / os.fsdecode(path), status)
            files.append((path, b"%o %b" % (status.st_mode & 0o170100, content)))
            if turn.is_over(status.st_size):
                yield from pause(0)
    state = hashlib.sha256()
    for path, content in sorted(files):
        state.update(b"%d:%b%b" % (len(path), path, content))
    return state.digest()


def _listing(folder: Path, parent: bytes) -> Iterator[tuple[bytes, bool]]:
    with os.scandir(os.fsencode(folder / os.fsdecode(parent))) as found:
        for entry in found:
            yield entry.name, entry.is_dir(follow_symlinks=False)


def _identity(file: Path, status: os.stat_result) -> bytes:
    """Return a hash of the content; reads at most 64 MiB."""
    try:
        if stat.S_ISLNK(status.st_mode):
            return hashlib.sha256(os.fsencode(file.readlink())).hexdigest().encode()
        if not stat.S_ISREG(status.st_mode):
            return b"special"
        with os.fdopen(os.open(file, _READ), "rb") as content:
            if status.st_size <= _WHOLE:
                return hashlib.sha256(content.read(_WHOLE)).hexdigest().encode()
            sampled = hashlib.sha256(content.read(_SAMPLE))
            content.seek(-_SAMPLE, os.SEEK_END)
            sampled.update(content.read(_SAMPLE))
            return b"%d %b" % (status.st_size, sampled.hexdigest().encode())
    except OSError:
        return b"unreadable %d" % status.st_size


def _identity_of(file: Path) -> bytes:
    try:
        return _identity(file, file.lstat())
    except OSError:
        return b"gone"


def _names(folder: Path, exclude: Sequence[Path]) -> frozenset[bytes]:
    """Return the excluded paths within the folder, relative to it."""
    relative = (os.fsencode(os.path.relpath(path, folder)) for path in exclude)
    return frozenset(name for name in relative if name.split(b"/")[0] not in (b".", b".."))


class _Turn:
    """The amount read since the last pause."""

    def __init__(self) -> None:
        self._files = self._bytes = 0

    def is_over(self, size: int) -> bool:
        """Count a file of this size; return True when it is time for a pause."""
        self._files += 1
        self._bytes += min(size, _WHOLE)
        over = self._files >= _SLICE_FILES or self._bytes >= _SLICE_BYTES
        if over:
            self._files = self._bytes = 0
        return over
