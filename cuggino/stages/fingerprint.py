"""The state of a project in one short text, to see whether agents change anything."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reactivex import Observable, operators as ops, throw, timer

from cuggino.errors import ProcessError
from cuggino.operators import Flow, ask, emit, flow, interrupt_when
from cuggino.sources.git import git_lines
from cuggino.stages.folder_content import (
    WHOLE,
    Entries,
    Turn,
    below,
    excluder,
    identity,
    of_folder,
    pause,
)

DIGITS = 16
"""Length of a fingerprint."""

_DEPTH = 4
"""How deep repositories in repositories are read as such."""


def apart_from(
    files: tuple[Path, ...], fingerprint: Callable[..., Observable[str]]
) -> Callable[..., Observable[str]]:
    """The stage `fingerprint`, in which these files do not count either."""
    if not files:
        return fingerprint

    def without(cwd: Path, *, exclude: tuple[Path, ...], **options: Any) -> Observable[str]:
        return fingerprint(cwd, exclude=(*exclude, *files), **options)

    return without


def fingerprint_stage(
    cwd: Path, *, exclude: tuple[Path, ...], plan: Path | None, timeout: float = 60.0
) -> Observable[str]:
    """Emit 16 hexadecimal digits that stand for the content of the project, and complete.

    Two of them are equal when the same files with the same content and the same executable bits
    are in `cwd`, committed or not, staged or not, whatever their times are; and when the same
    items of the plan are checked off. So a commit of what is there changes nothing, and a revert
    gives the former fingerprint again, with or without a commit.

    In a git repository its files are those below `cwd` that are tracked or not ignored, as git
    would commit them (its filters are applied). A submodule counts with its commit; one that is not
    as HEAD has it, and a repository within, with their files. Without git, or where git fails or
    ignores all there is, it is all files but those in hidden folders, caches, `node_modules` and
    such. Links count with what they say, not where they lead. Paths in `exclude`, relative to
    `cwd` or absolute, and what is below them do not count. An untracked file above 64 MiB counts
    with its size, its first and its last MiB.

    Of the `plan` file only the positions of the checked boxes (`- [x]`) count, up to its progress
    log: a new plan that nobody has worked on is no progress, nor is prose.

    Nothing is written: no index, no object (a clean filter of the project's own, such as that of
    large file storage, may do so, as in any `git status`). Disposal ends the running git. There is
    never an error: what cannot be told within `timeout` seconds, or at all, has a fingerprint that
    equals no other, so that a failure is never taken for a standstill.
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
        except Exception:  # also a defect: a loop does not end because it cannot be measured
            fingerprint = None
        yield from emit(fingerprint or secrets.token_hex(DIGITS // 2))

    return flow(run)


def checked_items(plan: str) -> tuple[int, ...]:
    """The positions, from 0, of the checked boxes among all boxes of a plan's Markdown.

    What stands in code blocks and from the heading `# Progress Log` on does not count.
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


def _digest(entries: Entries, *more: bytes) -> str:
    state = hashlib.sha256()
    for path, content in sorted(entries.items()):
        state.update(b"%d:%b%d:%b" % (len(path), path, len(content), content))
    for part in more:
        state.update(b"+%b" % part)
    return state.hexdigest()[:DIGITS]


def _content(folder: Path, exclude: tuple[Path, ...], depth: int = 0) -> Flow[Entries]:
    """What is in the folder, as git sees it, or else as it lies there."""
    entries: Entries = {}
    if depth <= _DEPTH:
        try:
            entries = yield from _of_repository(folder, exclude, depth)
        except ProcessError:  # no repository, a broken one, no git
            entries = {}
    # Nothing at all: an empty folder, or one that the repository around it ignores.
    return entries or (yield from of_folder(folder, exclude))


def _of_repository(folder: Path, exclude: tuple[Path, ...], depth: int) -> Flow[Entries]:
    """The files of HEAD, with those in their place that differ now, and the untracked ones."""
    left_out = excluder(folder, exclude)
    try:
        tree = yield from _git(folder, "rev-parse", "--verify", "--quiet", "HEAD^{tree}")
    except ProcessError:  # before the first commit: the empty tree, which every git knows
        tree = yield from _git(folder, "hash-object", "-t", "tree", "--stdin")
    name = os.fsdecode(tree.strip())
    entries: Entries = {}
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
    turn = Turn()
    for path, seen in differing.items():
        file = below(folder, path)
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
        elif stat.S_ISREG(status.st_mode) and (seen or status.st_size <= WHOLE):
            regular.append((path, mode))
        else:
            entries[path] = mode + b" " + identity(file, status)
        if turn.is_over(0):
            yield from pause()
    blobs = yield from _blobs(folder, [path for path, _mode in regular])
    for (path, mode), blob in zip(regular, blobs, strict=True):
        entries[path] = b"%b %b" % (mode, blob)
    return entries


_DIFF = ("diff-index", "--raw", "-z", "--no-renames", "--relative", "--ignore-submodules=none")


def _blobs(folder: Path, paths: list[bytes]) -> Flow[list[bytes]]:
    """The names that git would give to the files' contents; our own where git cannot."""
    blobs: list[bytes] = []
    if not paths:
        return blobs
    # Here git takes names from the top of the repository, wherever it was started.
    where = yield from _git(folder, "rev-parse", "--show-cdup", "--show-prefix")
    up, _, prefix = where.partition(b"\n")
    failures = 0
    turn = Turn()
    while len(blobs) < len(paths):
        if failures < 8:
            # Quoted, since a name may have any byte in it.
            names = (prefix + path for path in paths[len(blobs) :])
            quoted = (re.sub(rb'["\\]', rb"\\\g<0>", name) for name in names)
            stdin = b"".join(b'"%b"\n' % name.replace(b"\n", rb"\n") for name in quoted)
            lines = _git_lines(below(folder, up), "hash-object", "--stdin-paths", stdin=stdin)
            try:
                yield from ask(lines.pipe(ops.do_action(blobs.append)))
            except ProcessError:  # at the file whose name is not there
                failures += 1
            if len(blobs) == len(paths):
                break
        file = below(folder, paths[len(blobs)])
        try:
            status = file.lstat()
            blobs.append(identity(file, status))
        except OSError:
            blobs.append(b"gone")
        else:
            if turn.is_over(status.st_size):
                yield from pause()
    return blobs


def _blob_of_link(link: Path, digits: int) -> bytes:
    """The name that git gives to a link; `digits` tells which hash function it uses."""
    try:
        target = os.fsencode(link.readlink())
    except OSError:
        return b"unreadable"
    function = hashlib.sha1 if digits == 40 else hashlib.sha256
    return function(b"blob %d\0%b" % (len(target), target)).hexdigest().encode()


def _git(folder: Path, *args: str) -> Flow[bytes]:
    """The whole output of a git command."""
    said: list[bytes] = []
    yield from ask(_git_lines(folder, *args).pipe(ops.do_action(said.append)))
    return b"\n".join(said)


def _git_lines(folder: Path, *args: str, stdin: bytes | None = None) -> Observable[bytes]:
    # No monitor of the file system: it would be started here, and ended with the command.
    return git_lines("-c", "core.fsmonitor=false", *args, cwd=folder, stdin=stdin)
