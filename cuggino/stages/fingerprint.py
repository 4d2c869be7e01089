"""The fingerprint of a project, which shows whether agents change anything."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from reactivex import Observable, operators as ops, throw, timer

from cuggino.errors import ProcessError
from cuggino.operators import Flow, ask, emit, flow, interrupt_when, pause
from cuggino.sources import git_lines

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

_TELLTALES = frozenset({b"CACHEDIR.TAG", b"pyvenv.cfg"})
"""Files that mark their folder as a cache or a virtual environment."""

_SLICE_FILES, _SLICE_BYTES = 256, 16 * 1024 * 1024
"""What is read in one go before the scheduler may run other work."""

_Entries = dict[bytes, bytes]
"""The kind and the hash of each file, by its path relative to the folder."""


def fingerprint_stage(
    cwd: Path, *, exclude: tuple[Path, ...], plan: Path | None, timeout: float = 60.0
) -> Observable[str]:
    """Emit 16 hexadecimal digits that identify the content of the project.

    Two fingerprints are equal when `cwd` holds the same files with the same content and executable
    bits, committed or not, whatever their times, and the same items of the plan are checked. So a
    commit changes nothing, and a revert restores the earlier fingerprint.

    In a git repository the files are those below `cwd` that are tracked or not ignored, as git
    would commit them (after its filters). A submodule counts with its commit; a modified one, and
    a nested repository, with their files. Without git, or where git fails or ignores everything,
    it is all files outside hidden folders, caches, `node_modules` and the like. Links count with
    their target's name. Paths in `exclude`, relative to `cwd` or absolute, do not count. An
    untracked file above 64 MiB counts with its size, its first and its last MiB.

    Of the `plan` file only the positions of the checked boxes (`- [x]`) count, up to its progress
    log: neither a new plan nor prose is progress.

    Nothing is written: no index, no object (a clean filter of the project's own, such as that of
    large file storage, may do so, as in any `git status`). There is never an error: when git fails
    or `timeout` seconds pass, the fingerprint is random, so that a failure never looks like a
    standstill.
    """
    root = cwd.absolute()
    excluded = tuple(root / path for path in exclude)

    def whole() -> Flow[None]:
        entries = yield from _content(root, excluded)
        yield from emit(_digest(entries, b"%r" % (_checked(plan),)))

    def run() -> Flow[None]:
        late = ProcessError("git", f"the fingerprint took longer than {timeout:g} s")
        alarm = timer(timeout).pipe(ops.flat_map(lambda _tick: throw(late)))
        try:
            fingerprint = yield from ask(flow(whole).pipe(interrupt_when(alarm)))
        except Exception:  # even a defect must not end the loop
            fingerprint = None
        yield from emit(fingerprint or secrets.token_hex(DIGITS // 2))

    return flow(run)


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
        return checked_items(plan.read_text(encoding="utf-8", errors="replace"))
    except OSError:  # there is none yet
        return ()


def _digest(entries: _Entries, *more: bytes) -> str:
    state = hashlib.sha256()
    for path, content in sorted(entries.items()):
        state.update(b"%d:%b%d:%b" % (len(path), path, len(content), content))
    for part in more:
        state.update(b"+%b" % part)
    return state.hexdigest()[:DIGITS]


def _content(folder: Path, exclude: tuple[Path, ...], depth: int = 0) -> Flow[_Entries]:
    """Read the folder with git, or without it where that is impossible."""
    entries: _Entries = {}
    if depth <= _DEPTH:
        try:
            entries = yield from _of_repository(folder, exclude, depth)
        except ProcessError:  # no repository, a broken one, no git
            entries = {}
    # Nothing: an empty folder, or one that the repository around it ignores.
    return entries or (yield from _of_folder(folder, exclude))


def _of_repository(folder: Path, exclude: tuple[Path, ...], depth: int) -> Flow[_Entries]:
    """Read the files of HEAD, with the modified and the untracked ones on top."""
    left_out = _excluder(folder, exclude)
    try:
        tree = yield from _git(folder, "rev-parse", "--verify", "--quiet", "HEAD^{tree}")
    except ProcessError:  # before the first commit: the empty tree, which every git knows
        tree = yield from _git(folder, "hash-object", "-t", "tree", "--stdin")
    name = os.fsdecode(tree.strip())
    entries: _Entries = {}
    for record in (yield from _git(folder, "ls-tree", "-r", "-z", name)).split(b"\0"):
        words, _, path = record.partition(b"\t")
        if path and not left_out(path):
            mode, _type, blob = words.split()
            entries[path] = b"%b %b" % (mode, blob)

    differing: dict[bytes, bytes | None] = {}  # with the mode that git sees, None if it sees none
    fields = (yield from _git(folder, *_DIFF, name, "--", ".")).split(b"\0")
    for words, path in zip(fields[::2], fields[1::2], strict=False):
        if left_out(path):
            continue
        _old_mode, mode, _old_blob, blob, _status = words.split()
        entries.pop(path, None)
        if blob.strip(b"0") and mode != b"160000":
            entries[path] = b"%b %b" % (mode, blob)  # staged, and so in the folder
        elif mode.strip(b"0"):
            differing[path] = mode
        elif words.endswith(b"U"):
            differing[path] = None  # a conflict
    untracked = yield from _git(folder, "ls-files", "--others", "--exclude-standard", "-z")
    for path in untracked.split(b"\0"):
        if path and not left_out(path.rstrip(b"/")):
            differing.setdefault(path.rstrip(b"/"), None)

    regular: list[tuple[bytes, bytes]] = []
    turn = _Turn()
    for path, seen in differing.items():
        file = _below(folder, path)
        try:
            status = file.lstat()
        except OSError:  # deleted
            continue
        mode = seen or (b"100755" if status.st_mode & stat.S_IXUSR else b"100644")
        if stat.S_ISDIR(status.st_mode):
            try:
                within = _digest((yield from _content(file, exclude, depth + 1)))
            except OSError:
                within = "unreadable"
            entries[path] = b"160000 " + within.encode()
        elif stat.S_ISLNK(status.st_mode):
            entries[path] = b"120000 " + _blob_of_link(file, len(name))
        elif stat.S_ISREG(status.st_mode) and (seen or status.st_size <= _WHOLE):
            regular.append((path, mode))
        else:
            entries[path] = mode + b" " + _identity(file, status)
        if turn.is_over(0):
            yield from pause(0)
    blobs = yield from _blobs(folder, [path for path, _mode in regular])
    for (path, mode), blob in zip(regular, blobs, strict=True):
        entries[path] = b"%b %b" % (mode, blob)
    return entries


_DIFF = ("diff-index", "--raw", "-z", "--no-renames", "--relative", "--ignore-submodules=none")


def _blobs(folder: Path, paths: list[bytes]) -> Flow[list[bytes]]:
    """Return git's hash of each file, or our own where git cannot read it."""
    blobs: list[bytes] = []
    if not paths:
        return blobs
    # `hash-object` takes names from the top of the repository.
    where = yield from _git(folder, "rev-parse", "--show-cdup", "--show-prefix")
    up, _, prefix = where.partition(b"\n")
    failures = 0
    turn = _Turn()
    while len(blobs) < len(paths):
        if failures < 8:
            # Quoted, since a name may have any byte in it.
            names = (prefix + path for path in paths[len(blobs) :])
            quoted = (re.sub(rb'["\\]', rb"\\\g<0>", name) for name in names)
            stdin = b"".join(b'"%b"\n' % name.replace(b"\n", rb"\n") for name in quoted)
            lines = _git_lines(_below(folder, up), "hash-object", "--stdin-paths", stdin=stdin)
            try:
                yield from ask(lines.pipe(ops.do_action(blobs.append)))
            except ProcessError:  # at the file whose name is not there
                failures += 1
            if len(blobs) == len(paths):
                break
        file = _below(folder, paths[len(blobs)])
        try:
            status = file.lstat()
            blobs.append(_identity(file, status))
        except OSError:
            blobs.append(b"gone")
        else:
            if turn.is_over(status.st_size):
                yield from pause(0)
    return blobs


def _blob_of_link(link: Path, digits: int) -> bytes:
    """Return git's hash of a link; the number of `digits` selects the hash function."""
    try:
        target = os.fsencode(link.readlink())
    except OSError:
        return b"unreadable"
    function = hashlib.sha1 if digits == 40 else hashlib.sha256
    return function(b"blob %d\0%b" % (len(target), target)).hexdigest().encode()


def _git(folder: Path, *args: str) -> Flow[bytes]:
    """Return the whole output of a git command."""
    said: list[bytes] = []
    yield from ask(_git_lines(folder, *args).pipe(ops.do_action(said.append)))
    return b"\n".join(said)


def _git_lines(folder: Path, *args: str, stdin: bytes | None = None) -> Observable[bytes]:
    # Without the file system monitor, which would be started here and killed with the command.
    return git_lines("-c", "core.fsmonitor=false", *args, cwd=folder, stdin=stdin)


def _of_folder(folder: Path, exclude: tuple[Path, ...]) -> Flow[_Entries]:
    """Read all files below the folder, except hidden and generated folders.

    Raises:
        OSError: the folder itself cannot be read.
    """
    left_out = _excluder(folder, exclude)
    entries: _Entries = {}
    turn = _Turn()
    waiting = [b""]
    while waiting:
        parent = waiting.pop()
        try:
            found = list(_listing(folder, parent))
        except OSError:
            if not parent:
                raise
            entries[parent] = b"unreadable"
            continue
        if parent and _TELLTALES.intersection(name for name, _is_folder in found):
            continue
        for name, is_folder in found:
            path = parent + b"/" + name if parent else name
            if left_out(path):
                continue
            if is_folder:
                if not name.startswith(b".") and name not in _LEFT_OUT:
                    waiting.append(path)
                continue
            file = _below(folder, path)
            try:
                status = file.lstat()
            except OSError:  # deleted just now
                continue
            entries[path] = b"%o %b" % (status.st_mode & 0o170100, _identity(file, status))
            if turn.is_over(status.st_size):
                yield from pause(0)
    return entries


def _listing(folder: Path, parent: bytes) -> Iterator[tuple[bytes, bool]]:
    with os.scandir(os.fsencode(_below(folder, parent))) as found:
        for entry in found:
            yield entry.name, entry.is_dir(follow_symlinks=False)


def _identity(file: Path, status: os.stat_result) -> bytes:
    """Return a hash of the content; reads 64 MiB at most."""
    try:
        if stat.S_ISLNK(status.st_mode):
            return hashlib.sha256(os.fsencode(file.readlink())).hexdigest().encode()
        if not stat.S_ISREG(status.st_mode):
            return b"special"
        # Non-blocking, in case a pipe has replaced it.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(file, flags), "rb") as content:
            if status.st_size <= _WHOLE:
                return hashlib.sha256(content.read(_WHOLE)).hexdigest().encode()
            sampled = hashlib.sha256(content.read(_SAMPLE))
            content.seek(-_SAMPLE, os.SEEK_END)
            sampled.update(content.read(_SAMPLE))
            return b"%d %b" % (status.st_size, sampled.hexdigest().encode())
    except OSError:
        return b"unreadable %d" % status.st_size


def _excluder(folder: Path, exclude: tuple[Path, ...]) -> Callable[[bytes], bool]:
    """Return a test whether a path, relative to the folder, is in an excluded one."""
    relative = {os.fsencode(os.path.relpath(path, folder)) for path in exclude}
    # Excluding the folder itself (`.`) would make every state the same: ignored.
    names = {name for name in relative if name.split(b"/")[0] != b".."}
    parents = tuple(name + b"/" for name in names)
    return lambda path: path in names or path.startswith(parents)


def _below(folder: Path, path: bytes) -> Path:
    """Return the path within the folder; an empty one is the folder."""
    return folder / os.fsdecode(path)


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
