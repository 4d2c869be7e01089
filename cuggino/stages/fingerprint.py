"""The fingerprint of a project, which shows whether agents change anything."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from reactivex import Observable, defer, operators as ops, timer

from cuggino.errors import ProcessError
from cuggino.files import read_regular
from cuggino.operators import Flow, ask, emit, flow, interrupt_when, pause
from cuggino.sources import git_output
from cuggino.stages.conversion import stores_as_is

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

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags for opening files; non-blocking, in case a pipe has replaced one."""

_SLICE_FILES, _SLICE_BYTES = 256, 16 * 1024 * 1024
"""Maximum files and bytes read before the scheduler may run other work."""


def fingerprint_stage(
    cwd: Path, *, exclude: tuple[Path, ...], plan: Path | None, timeout: float = 60.0
) -> Observable[str]:
    """Emit 16 hexadecimal digits that identify the content of the project.

    Two fingerprints are equal when `cwd` holds the same files with the same content and executable
    bits, committed or not and regardless of timestamps, and the same items of the plan are checked.
    So a commit changes nothing, and a revert restores the earlier fingerprint.

    In a git repository the files are those below `cwd` that are tracked or not ignored, as git
    would commit them (after its filters). A submodule counts with its commit; a modified one, and
    a nested repository, with their files. Without git, or where git fails or ignores everything,
    they are all files outside hidden folders, caches, `node_modules` and the like. Links count with
    their target's name. Paths in `exclude`, relative to `cwd` or absolute, do not count. An
    untracked file above 64 MiB counts with its size, its first and its last MiB.

    Of the `plan` file only the positions of the checked boxes (`- [x]`) count, up to its progress
    log: neither a new plan nor prose is progress.

    Nothing is written: no index, no object (a clean filter of the project, such as that of large
    file storage, may do so, as in any `git status`). The stage never fails: if git does, or after
    `timeout` seconds, the fingerprint is random, so that a failure never looks like a standstill.
    """
    root = cwd.absolute()
    excluded = tuple(root / path for path in exclude)

    def run() -> Flow[None]:
        try:
            contents = yield from _content(root, excluded)
            fingerprint = contents.digest(b"%r" % (_checked(plan),))
        except Exception:  # even a defect must not end the loop
            fingerprint = _random()
        yield from emit(fingerprint)

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


class _Contents:
    """A set of files with their contents, without the files: their number and a sum of hashes.

    The sum does not depend on the order, and a file can be taken out again, so an update costs only
    as much as has changed.
    """

    def __init__(self, count: int = 0, total: int = 0) -> None:
        self.count = count
        self._total = total

    def copy(self) -> _Contents:
        return _Contents(self.count, self._total)

    def add(self, path: bytes, content: bytes) -> None:
        self.count += 1
        self._total += _number(path, content)

    def remove(self, path: bytes, content: bytes) -> None:
        self.count -= 1
        self._total -= _number(path, content)

    def digest(self, *more: bytes) -> str:
        state = hashlib.sha256(b"%d %x" % (self.count, self._total % _MODULUS))
        for part in more:
            state.update(b"+%b" % part)
        return state.hexdigest()[:DIGITS]


_MODULUS = 1 << 256


def _number(path: bytes, content: bytes) -> int:
    whole = b"%d:%b%b" % (len(path), path, content)
    return int.from_bytes(hashlib.sha256(whole).digest(), "big")


def _content(folder: Path, exclude: tuple[Path, ...], depth: int = 0) -> Flow[_Contents]:
    """Read the folder with git, or without it where that is impossible."""
    if depth <= _DEPTH:
        try:
            contents = yield from _of_repository(folder, exclude, depth)
        except ProcessError:  # no repository, a broken one, no git
            pass
        else:
            if contents.count:
                return contents
    # Nothing: an empty folder, or one that the repository around it ignores.
    return (yield from _of_folder(folder, exclude))


@dataclass(slots=True)
class _Status:
    """The output of `git status` in the folder; paths are relative to it."""

    commit: bytes = b""
    """Empty before the first one."""
    committed: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Changed files as the commit has them."""
    staged: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Changed files that are in the folder as in the index."""
    differing: dict[bytes, bytes | None] = field(default_factory=dict)
    """Files only the folder has like this, with their mode; None if git does not know them."""


def _status(folder: Path, prefix: bytes, exclude: tuple[Path, ...]) -> Flow[_Status]:
    status = _Status()
    conflicts: list[bytes] = []
    left_out = _excluder(folder, exclude)
    # So that git does not list a backlog of thousands of files.
    excluded = sorted(map(os.fsdecode, _names(folder, exclude) - {b"."}))
    apart = (f":(exclude,literal){name}" for name in excluded)
    fields = iter((yield from _git(folder, *_STATUS, *apart)).split(b"\0"))
    for entry in fields:
        kind, _, rest = entry.partition(b" ")
        if kind == b"#":
            if rest.startswith(b"branch.oid ") and not rest.endswith(b"(initial)"):
                status.commit = rest.removeprefix(b"branch.oid ")
            continue
        words = rest.split(b" ", _WORDS.get(kind, 0))
        path = words[-1].removeprefix(prefix).rstrip(b"/")
        if not path or left_out(path):
            continue
        if kind == b"?":
            status.differing.setdefault(path, None)
        elif kind == b"u":
            conflicts.append(path)
            status.differing[path] = None
        elif kind == b"1":
            state, _sub, old_mode, index_mode, mode, old_blob, index_blob, _path = words
            _collect(status.committed, path, old_mode, old_blob)
            if state.endswith(b".") and index_mode != _MODULE:
                _collect(status.staged, path, index_mode, index_blob)
            elif mode.strip(b"0"):
                status.differing[path] = mode
    if conflicts and status.commit:  # whose stages may be of files with other names
        names = (os.fsdecode(status.commit), "--", *map(os.fsdecode, conflicts))
        for record in (yield from _git(folder, "ls-tree", "-z", *names)).split(b"\0"):
            head, _, path = record.partition(b"\t")
            if path in conflicts:
                mode, _type, blob = head.split()
                _collect(status.committed, path, mode, blob)
    return status


def _collect(files: list[tuple[bytes, bytes]], path: bytes, mode: bytes, blob: bytes) -> None:
    """Add a file, unless its mode is all zeros: a missing file."""
    if mode.strip(b"0"):
        files.append((path, b"%b %b" % (mode, blob)))


_STATUS = (
    "status",
    "--porcelain=v2",
    "--branch",
    "--no-ahead-behind",
    "-z",
    "--no-renames",
    "--untracked-files=all",
    "--ignore-submodules=none",
    "--",
    ".",
)

_WORDS = {b"1": 7, b"u": 9}
"""Spaces before the path of an entry of `_STATUS`, after that of its kind."""

_MODULE = b"160000"
"""The mode of a submodule."""


def _of_repository(folder: Path, exclude: tuple[Path, ...], depth: int) -> Flow[_Contents]:
    """Read the files of HEAD, with the modified and the untracked ones on top."""
    prefix = yield from prefix_of(folder)
    status = yield from _status(folder, prefix, exclude)
    contents = (yield from _committed(folder, prefix, status.commit, exclude)).copy()
    for path, content in status.committed:
        contents.remove(path, content)
    for path, content in status.staged:
        contents.add(path, content)

    # Before the first commit the empty tree, which every git knows, shows the length of a hash.
    empty = ("hash-object", "-t", "tree", "--stdin")
    digits = len(status.commit or (yield from _git(folder, *empty)).strip())
    regular: list[tuple[bytes, bytes]] = []
    size = 0
    turn = _Turn()
    for path, seen in status.differing.items():
        file = _below(folder, path)
        try:
            state = file.lstat()
        except OSError:  # deleted
            continue
        mode = seen or (b"100755" if state.st_mode & stat.S_IXUSR else b"100644")
        if stat.S_ISDIR(state.st_mode):
            try:
                within = (yield from _content(file, exclude, depth + 1)).digest()
            except OSError:
                within = "unreadable"
            contents.add(path, b"160000 " + within.encode())
        elif stat.S_ISLNK(state.st_mode):
            contents.add(path, b"120000 " + _blob_of_link(file, digits))
        elif stat.S_ISREG(state.st_mode) and (seen or state.st_size <= _WHOLE):
            regular.append((path, mode))
            size += state.st_size
        else:
            contents.add(path, mode + b" " + _identity(file, state))
        if turn.is_over(0):
            yield from pause(0)
    paths = [path for path, _mode in regular]
    is_small = len(paths) <= _SLICE_FILES and size <= _SLICE_BYTES and not prefix
    if paths and is_small and (yield from stores_as_is(folder, paths)):
        blobs = yield from _own_blobs(folder, paths, digits)
    else:
        blobs = yield from _blobs(folder, prefix, paths)
    for (path, mode), blob in zip(regular, blobs, strict=True):
        contents.add(path, b"%b %b" % (mode, blob))
    return contents


_Key = tuple[Path, bytes, frozenset[bytes], bytes]
"""A folder of a commit: its repository, its prefix, the excluded names, the commit's hash."""

_KEPT = 512
"""Maximum number of cached commit listings and folder prefixes: many loops may share a process."""

_listings: dict[_Key, _Contents] = {}
"""The contents of commits, which never change."""


def _committed(
    folder: Path, prefix: bytes, commit: bytes, exclude: tuple[Path, ...]
) -> Flow[_Contents]:
    """Return the contents of a commit: kept, as changes of one that is kept, or listed."""
    if not commit:
        return _Contents()
    left_out = _excluder(folder, exclude)
    kind = (_repository(folder), prefix, _names(folder, exclude))
    if kept := _listings.get((*kind, commit)):
        return kept
    contents = None
    for key, known in reversed(list(_listings.items())):
        if key[:3] == kind:
            try:
                contents = yield from _changed(folder, known, key[3], commit, left_out)
            except ProcessError:  # it is gone, or of a repository that was here before
                continue
            break
    if contents is None:
        contents = _Contents()
        turn = _Turn()
        listed = yield from _git(folder, "ls-tree", "-r", "-z", os.fsdecode(commit))
        for record in listed.split(b"\0"):
            words, _, path = record.partition(b"\t")
            if path and not left_out(path):
                mode, _type, blob = words.split()
                contents.add(path, b"%b %b" % (mode, blob))
            if turn.is_over(0):
                yield from pause(0)
    while len(_listings) >= _KEPT:
        _listings.pop(next(iter(_listings)), None)
    _listings[*kind, commit] = contents
    return contents


def _repository(folder: Path) -> Path:
    """Return the folder that holds the commits, which worktrees share, without running git."""
    place = folder / ".git"
    try:
        if place.is_file():
            place = folder / place.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
            place /= (place / "commondir").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):  # of a submodule, which has no other worktree
        pass
    return Path(os.path.normpath(place))


def _changed(
    folder: Path,
    contents: _Contents,
    before: bytes,
    after: bytes,
    left_out: Callable[[bytes], bool],
) -> Flow[_Contents]:
    """Return the contents of a commit by its differences to an earlier one."""
    contents = contents.copy()
    commits = (os.fsdecode(before), os.fsdecode(after))
    fields = (yield from _git(folder, *_DIFF, *commits, "--", ".")).split(b"\0")
    old: list[tuple[bytes, bytes]] = []
    new: list[tuple[bytes, bytes]] = []
    for words, path in zip(fields[::2], fields[1::2], strict=False):
        if not left_out(path):
            old_mode, mode, old_blob, blob, _status = words.removeprefix(b":").split()
            _collect(old, path, old_mode, old_blob)
            _collect(new, path, mode, blob)
    for file in old:
        contents.remove(*file)
    for file in new:
        contents.add(*file)
    return contents


_DIFF = (
    *("diff-tree", "-r", "-z", "--raw", "--no-renames", "--relative"),
    "--ignore-submodules=none",
)

_prefixes: dict[tuple[Path, int], bytes] = {}


def prefix_of(folder: Path) -> Flow[bytes]:
    """Return the path of the folder in its repository, empty or with a trailing slash.

    Git is asked once if the folder is the top of a repository, otherwise each time: a repository
    may appear in any folder above.
    """
    own = _own_repository(folder)
    if own is not None and own in _prefixes:
        return _prefixes[own]
    prefix = (yield from _git(folder, "rev-parse", "--show-prefix")).removesuffix(b"\n")
    _remember(own, prefix)
    return prefix


def remember_top(folder: Path) -> None:
    """Let `prefix_of` skip git for this folder, which git has named as the top of a repository."""
    _remember(_own_repository(folder), b"")


def _own_repository(folder: Path) -> tuple[Path, int] | None:
    with suppress(OSError):
        place = folder / ".git"  # a file in a worktree and in a submodule
        return folder, (place if place.is_file() else place / "HEAD").lstat().st_ino
    return None


def _remember(own: tuple[Path, int] | None, prefix: bytes) -> None:
    if own is not None:
        if len(_prefixes) >= _KEPT:
            _prefixes.pop(next(iter(_prefixes)), None)
        _prefixes[own] = prefix


def _blobs(folder: Path, prefix: bytes, paths: list[bytes]) -> Flow[list[bytes]]:
    """Return git's hash of each file, or our own where git cannot read it."""
    blobs: list[bytes] = []
    # `hash-object` takes names from the top of the repository.
    top = _below(folder, b"../" * prefix.count(b"/"))
    failures = 0
    turn = _Turn()

    def keep(said: bytes) -> None:
        blobs.extend(said.split())

    while len(blobs) < len(paths):
        if failures < 8:
            # Quoted, since a name may have any byte in it.
            names = (prefix + path for path in paths[len(blobs) :])
            quoted = (re.sub(rb'["\\]', rb"\\\g<0>", name) for name in names)
            stdin = b"".join(b'"%b"\n' % name.replace(b"\n", rb"\n") for name in quoted)
            output = _output(top, "hash-object", "--stdin-paths", stdin=stdin)
            try:
                yield from ask(output.pipe(ops.do_action(keep)))
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


def _own_blobs(folder: Path, paths: list[bytes], digits: int) -> Flow[list[bytes]]:
    """Return git's hash of each file, assuming that nothing converts it."""
    blobs: list[bytes] = []
    turn = _Turn()
    for path in paths:
        file = _below(folder, path)
        content = _read_whole(file)
        if content is None:
            blobs.append(_missing(file))
        else:
            blobs.append(_blob(content, digits))
            if turn.is_over(len(content)):
                yield from pause(0)
    return blobs


def _read_whole(file: Path) -> bytes | None:
    """Return the content of a regular file; None if it is no longer one or cannot be read."""
    try:
        with os.fdopen(os.open(file, _READ), "rb") as content:
            return content.read() if stat.S_ISREG(os.fstat(content.fileno()).st_mode) else None
    except OSError:
        return None


def _missing(file: Path) -> bytes:
    """Return our own hash of a file that git cannot read."""
    try:
        return _identity(file, file.lstat())
    except OSError:
        return b"gone"


def _blob(content: bytes, digits: int) -> bytes:
    """Return git's hash of a file's content; the number of `digits` selects the hash function."""
    function = hashlib.sha1 if digits == 40 else hashlib.sha256
    state = function(b"blob %d\0" % len(content), usedforsecurity=False)
    state.update(content)
    return state.hexdigest().encode()


def _blob_of_link(link: Path, digits: int) -> bytes:
    """Return git's hash of a link."""
    try:
        return _blob(os.fsencode(link.readlink()), digits)
    except OSError:
        return b"unreadable"


def _git(folder: Path, *args: str) -> Flow[bytes]:
    """Return the whole output of a git command."""
    return (yield from ask(_output(folder, *args))) or b""


def _output(folder: Path, *args: str, stdin: bytes | None = None) -> Observable[bytes]:
    # Without the file system monitor, which would be started here and killed with the command.
    return git_output("-c", "core.fsmonitor=false", *args, cwd=folder, stdin=stdin, sweep=False)


def _of_folder(folder: Path, exclude: tuple[Path, ...]) -> Flow[_Contents]:
    """Read all files below the folder, except hidden and generated folders.

    Raises:
        OSError: the folder itself cannot be read.
    """
    left_out = _excluder(folder, exclude)
    contents = _Contents()
    turn = _Turn()
    waiting = [b""]
    while waiting:
        parent = waiting.pop()
        try:
            found = list(_listing(folder, parent))
        except OSError:
            if not parent:
                raise
            contents.add(parent, b"unreadable")
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
            contents.add(path, b"%o %b" % (status.st_mode & 0o170100, _identity(file, status)))
            if turn.is_over(status.st_size):
                yield from pause(0)
    return contents


def _listing(folder: Path, parent: bytes) -> Iterator[tuple[bytes, bool]]:
    with os.scandir(os.fsencode(_below(folder, parent))) as found:
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


def _excluder(folder: Path, exclude: tuple[Path, ...]) -> Callable[[bytes], bool]:
    """Return a test whether a path, relative to the folder, is in an excluded one."""
    names = _names(folder, exclude)
    parents = tuple(name + b"/" for name in names)
    return lambda path: path in names or path.startswith(parents)


@lru_cache(maxsize=_KEPT)
def _names(folder: Path, exclude: tuple[Path, ...]) -> frozenset[bytes]:
    """Return the excluded paths within the folder, relative to it."""
    relative = (os.fsencode(os.path.relpath(path, folder)) for path in exclude)
    return frozenset(name for name in relative if name.split(b"/")[0] != b"..")


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
