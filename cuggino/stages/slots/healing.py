"""Healing of a fast-forward that was killed with half of the files written."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cuggino.events import WatchFollowHealed
from cuggino.files import remove_file, storing
from cuggino.git import (
    EXECUTABLE,
    IDENTITY,
    LINK,
    PLAIN,
    Git,
    diff_trees,
    files_of,
    index_files,
    joined,
    remove_stale_locks,
)
from cuggino.operators import Flow, ask
from cuggino.stages.acts import act
from cuggino.stages.slots.position import (
    MOVING_FROM,
    MOVING_TO,
    Place,
    Position,
    move_refs,
)
from cuggino.stages.slots.refs import KEPT

_FOLDER = "040000"
_CLOCK_S = 2.0
"""Seconds by which times of files may differ."""


class Locked(NamedTuple):
    """A repository that cannot be healed yet, because another git command is at work in it."""

    reason: str


class _Version(NamedTuple):
    mode: str
    blob: str


@dataclass
class _Found:
    """The files that a killed fast-forward has left, by path."""

    whole: dict[str, _Version] = field(default_factory=dict)
    """Files that are as they were to become."""
    torn: dict[str, _Version] = field(default_factory=dict)
    """Files with a beginning of what they were to become."""
    missing: set[str] = field(default_factory=set)

    @property
    def paths(self) -> list[str]:
        return [*self.whole, *self.torn, *self.missing]


def heal(place: Place, now: Position) -> Flow[WatchFollowHealed | Locked | None]:
    """Undo a killed fast-forward, so that it can begin again.

    A file counts as written by it if it is byte for byte the new version, or a truncated copy of
    it. Such a file goes back to its version at HEAD, after its content was kept under a ref. All
    other files belong to the user and stay. A killed healing is repeated.

    Raises:
        ProcessError: git cannot keep the files, for example on a full disk.
    """
    if now.moving is None:
        return None
    locks = [lock for lock in place.layout.locks(now.at) if os.path.lexists(lock)]
    if locks:
        since = _time_of(place.layout.common / MOVING_FROM)
        yield from ask(act(lambda: remove_stale_locks(locks, place.git.cwd, since=since)))
        if any(map(os.path.lexists, locks)):
            return Locked(f"another git command is at work ({locks[0].name} exists)")
    old, new = now.moving
    healed: WatchFollowHealed | None = None
    if now.head != new:
        healed = yield from _put_back(place, now, old, new)
    yield from move_refs(f"delete {MOVING_FROM}", f"delete {MOVING_TO}", git=place.git)
    return healed


def _time_of(ref: Path) -> datetime:
    with suppress(OSError):
        return datetime.fromtimestamp(ref.stat().st_mtime - _CLOCK_S, UTC)
    return datetime.fromtimestamp(0, UTC)


def _put_back(place: Place, now: Position, old: str, new: str) -> Flow[WatchFollowHealed | None]:
    git, top = place.git, place.git.cwd
    written = yield from _changes(git, old, new)
    at_head = yield from _tree(git, now.head)
    staged, sparse = yield from _index(git)
    due = {
        path: version
        for path, version in written.items()
        if at_head.get(path) != version and path not in sparse
    }
    found = yield from _found(git, due, at_head)
    # A person has staged something else meanwhile: it is theirs.
    for path in found.paths:
        if staged.get(path) not in (due[path], at_head.get(path)):
            found.whole.pop(path, None)
            found.torn.pop(path, None)
            found.missing.discard(path)
    index = {path: at_head.get(path) for path, new_ in due.items() if staged.get(path) == new_}
    if not found.paths and not index:
        return None
    kept = yield from _keep(git, now.head, found)
    gone = [path for path in (*found.whole, *found.torn) if path not in at_head]
    yield from ask(act(lambda: _remove(top, gone)))
    if index:
        lines = b"".join(_index_line(path, was, len(now.head)) for path, was in index.items())
        yield from git.must("update-index", "-z", "--index-info", stdin=lines)
    # git would remove a whole folder that is in the place of a file.
    back = [path for path in found.paths if path in at_head and not _is_folder(top / path)]
    words = ("checkout-index", "--force", "--index", "-z", "--stdin")
    yield from git.must(*words, stdin=joined(back))
    return WatchFollowHealed(branch=now.at, restored=len(found.paths), kept=kept)


def _changes(git: Git, old: str, new: str) -> Flow[dict[str, _Version | None]]:
    """Return the files that the fast-forward writes; None for one that it removes."""
    return {
        one.path: None if one.state == "D" else _Version(one.mode, one.blob)
        for one in (yield from diff_trees(git, old, new))
        if not one.has_module
    }


def _tree(git: Git, commit: str) -> Flow[dict[str, _Version]]:
    """Return mode and blob of each file of a commit."""
    files = yield from files_of(git, commit)
    return {file.path: _Version(file.mode, file.blob) for file in files}


def _index(git: Git) -> Flow[tuple[dict[str, _Version], set[str]]]:
    """Return mode and blob of each staged file, and those that a sparse checkout leaves out."""
    versions: dict[str, _Version] = {}
    sparse: set[str] = set()
    words = ("ls-files", "-t", "--stage", "-z", "--full-name")
    for file in index_files((yield from git.must(*words)).fields):
        if file.tag == "S":
            sparse.add(file.path)
        elif file.stage == "0":
            versions[file.path] = _Version(file.mode, file.blob)
    return versions, sparse


def _found(
    git: Git, due: Mapping[str, _Version | None], at_head: Mapping[str, _Version]
) -> Flow[_Found]:
    """Compare the files with those that were to be written."""
    modes = (yield from ask(act(lambda: {path: _mode(git.cwd / path) for path in due}))) or {}
    found = _Found()
    regular = [path for path, mode in modes.items() if mode.startswith("100")]
    blobs = yield from _blobs(git, regular)
    for path, version in due.items():
        mode = modes[path]
        if not mode:
            if path in at_head:
                found.missing.add(path)
            continue
        if version is None or mode == _FOLDER:
            if mode == _FOLDER and path in at_head:
                found.missing.add(path)
            continue
        blob = blobs.get(path)
        if mode == LINK:
            blob = (yield from _link_blob(git, path)) if version.mode == LINK else None
        if blob == version.blob:
            if mode == version.mode or _Version(mode, blob) != at_head.get(path):
                found.whole[path] = version
            continue
        before = at_head.get(path)
        is_unlike = blob is not None and (before is None or blob != before.blob)
        if is_unlike and version.mode != LINK and (yield from _begins(git, path, version)):
            found.torn[path] = version
    return found


def _is_folder(path: Path) -> bool:
    return _mode(path) == _FOLDER


def _mode(path: Path) -> str:
    """Return git's mode of a file, "" if there is none."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return ""
    if stat.S_ISLNK(mode):
        return LINK
    if stat.S_ISREG(mode):
        return EXECUTABLE if mode & stat.S_IXUSR else PLAIN
    return _FOLDER if stat.S_ISDIR(mode) else "other"


def _blobs(git: Git, paths: Iterable[str]) -> Flow[dict[str, str]]:
    """Return the blob that each file would be committed as."""
    plain = [path for path in paths if "\n" not in path]
    stdin = b"".join(os.fsencode(path) + b"\n" for path in plain)
    said = yield from git.must("hash-object", "--stdin-paths", stdin=stdin)
    blobs = dict(zip(plain, said.text.split("\n"), strict=True)) if plain else {}
    for path in paths:
        if "\n" in path:
            blobs[path] = (yield from git.must("hash-object", "--", path)).text
    return blobs


def _link_blob(git: Git, path: str) -> Flow[str]:
    target = (yield from ask(act(lambda: os.fsencode((git.cwd / path).readlink())))) or b""
    return (yield from git.must("hash-object", "--stdin", stdin=target)).text


def _begins(git: Git, path: str, version: _Version) -> Flow[bool]:
    """Return whether the file is a truncated copy of the version that was to be written."""
    words = ("cat-file", "--filters", f"--path={path}", version.blob)
    said = yield from git.run(*words)
    content = yield from _bytes(git.cwd / path)
    return said.code == 0 and said.output.startswith(content)


def _bytes(path: Path) -> Flow[bytes]:
    return (yield from ask(act(path.read_bytes))) or b""


def _keep(git: Git, head: str, found: _Found) -> Flow[str]:
    """Commit the files as they were found, beside HEAD, and return the ref."""
    entries: dict[str, _Version | None] = dict.fromkeys(found.missing)
    entries.update(found.whole)
    for path, version in found.torn.items():
        content = yield from _bytes(git.cwd / path)
        words = ("hash-object", "-w", "--stdin")
        entries[path] = _Version(version.mode, (yield from git.must(*words, stdin=content)).text)
    lines = b"".join(_index_line(path, version, len(head)) for path, version in entries.items())
    with tempfile.TemporaryDirectory(prefix="cuggino-session-healing-") as folder:
        env = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        yield from git.must("read-tree", head, env=env)
        yield from git.must("update-index", "-z", "--index-info", env=env, stdin=lines)
        tree = (yield from git.must("write-tree", env=env)).text
    message = "Files that were found half moved to what has landed"
    made = ("--no-gpg-sign", tree, "-p", head, "-m", message)
    commit = (yield from git.must("commit-tree", *made, env=IDENTITY)).text
    ref = f"{KEPT}/follow/{commit[:12]}"
    yield from git.must("update-ref", ref, commit)
    return ref


def _index_line(path: str, version: _Version | None, length: int) -> bytes:
    mode, blob = version if version is not None else ("0", "0" * length)
    return f"{mode} {blob}\t".encode() + os.fsencode(path) + b"\0"


def _remove(top: Path, paths: Iterable[str]) -> None:
    """Remove files that HEAD does not have, and the folders that are empty then."""
    for path in paths:
        with storing("remove", top / path):
            remove_file(top, path)
