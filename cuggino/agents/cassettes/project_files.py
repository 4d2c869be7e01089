"""The files of a project around a session: what it has changed, and the same change once more.

What git ignores is not looked at, but for the folders of the loops (`.cuggino`, `.autonoe`,
`.lopen`); of those neither what cuggino itself writes while an agent works. In a folder without a
repository the usual folders of dependencies and caches are left out.
"""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cuggino.agents.cassettes.cassette import FileState
from cuggino.agents.cassettes.git import listed_files
from cuggino.agents.cassettes.text import Places, Writing
from cuggino.errors import CassetteError

FILE_LIMIT = 5 * 1024 * 1024
"""Bytes of a file that is recorded with its content."""

_OWN_FOLDERS = (".cuggino", ".autonoe", ".lopen")
_OF_CUGGINO = (".cuggino/journal", ".cuggino/lock", ".cuggino/.gitignore")
_NOT_LOOKED_AT = frozenset(
    {
        *(".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".tox", ".cache"),
    }
)


class _Seen(NamedTuple):
    """By what a change of a file is noticed."""

    mode: int
    size: int
    changed_ns: int
    written_ns: int
    inode: int


class Tree:
    """The files of a project; `changes` tells what has become different since the last look."""

    def __init__(self, project: Path, *, writing: Writing, without: Iterable[Path] = ()) -> None:
        self._project = project
        self._writing = writing
        own = (_relative(project, path) for path in without)
        self._without = frozenset(path for path in own if path is not None)
        self._is_repository = False
        self._seen: dict[str, _Seen] = {}
        self._seen = self._look()

    def changes(self) -> dict[str, FileState]:
        """Each file that was changed, made or removed, by its path."""
        now, before = self._look(), self._seen
        self._seen = now
        changed = [path for path, seen in now.items() if before.get(path) != seen]
        states = {path: self._state(path) for path in sorted(changed)}
        for path in sorted(before.keys() - now.keys()):
            file = self._project / path
            if not (file.is_symlink() or file.is_file()):  # else it is ignored by now
                states[path] = FileState(gone=True)
        return {self._writing.text(path): state for path, state in states.items()}

    def leaves_out(self, path: str) -> bool:
        """Whether the file is no part of what a session changes: the recording itself, say."""
        return path in self._without or path.startswith(_OF_CUGGINO)

    def _look(self) -> dict[str, _Seen]:
        found: dict[str, _Seen] = {}
        for path in self._paths():
            if self.leaves_out(path):
                continue
            with suppress(OSError, ValueError):
                state = (self._project / path).lstat()
                if not (stat.S_ISREG(state.st_mode) or stat.S_ISLNK(state.st_mode)):
                    continue
                found[path] = _Seen(
                    state.st_mode, state.st_size, state.st_ctime_ns, state.st_mtime_ns, state.st_ino
                )
        return found

    def _paths(self) -> Iterator[str]:
        listed = listed_files(self._project)
        if listed is None and self._is_repository:
            listed = list(self._seen)  # git is in trouble, and what it ignores is not known now
        if listed is None:
            yield from _walked(self._project, self._project)
            return
        self._is_repository = True
        yield from listed
        for folder in _OWN_FOLDERS:
            yield from _walked(self._project / folder, self._project)

    def _state(self, path: str) -> FileState:
        file = self._project / path
        try:
            state = file.lstat()
            if stat.S_ISLNK(state.st_mode):
                return FileState(link=self._writing.text(os.readlink(file)))  # noqa: PTH115
            executable = bool(state.st_mode & stat.S_IXUSR)
            if state.st_size > FILE_LIMIT:
                return self._omitted(file, f"it has {state.st_size} bytes", executable)
            data = file.read_bytes()
        except FileNotFoundError:
            return FileState(gone=True)
        except OSError as error:
            return FileState(omitted=f"it could not be read: {error.strerror or error}")
        return content_state(data, executable=executable, writing=self._writing)

    def _omitted(self, file: Path, why: str, executable: bool) -> FileState:
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        return FileState(omitted=why, sha256=digest, executable=executable)


def content_state(data: bytes, *, executable: bool, writing: Writing) -> FileState:
    """The state of a file with this content: text as text, what is none in base64."""
    if len(data) > FILE_LIMIT:
        digest = hashlib.sha256(data).hexdigest()
        return FileState(omitted=f"it has {len(data)} bytes", sha256=digest, executable=executable)
    with suppress(UnicodeDecodeError):
        text = data.decode()
        if "\0" not in text:
            return FileState(text=writing.content(text), executable=executable)
    if writing.masker.is_in(data):
        digest = hashlib.sha256(data).hexdigest()
        why = "there is a secret in its bytes"
        return FileState(omitted=why, sha256=digest, executable=executable)
    return FileState(base64=base64.b64encode(data).decode(), executable=executable)


def put_files(
    project: Path, files: dict[str, FileState], places: Places, *, without: Path | None = None
) -> list[str]:
    """Make the files of the project as they were recorded, `without` one; gives their paths.

    Raises:
        CassetteError: a path leaves the project or is of its repository, or a content was not
            recorded and is not there.
    """
    paths: list[str] = []
    # Where a folder becomes a file, or a file a folder, first what was there goes.
    for name, state in sorted(files.items(), key=lambda item: not item[1].gone):
        path = places.filled(name)
        file = _inside(project, path)
        if without is not None and file.resolve() == without:
            continue
        try:
            _put(file, state, places.filled, path)
        except (OSError, ValueError) as error:
            raise CassetteError(f"cannot put the recorded file {path} back: {error}") from error
        paths.append(path)
    return paths


def _put(file: Path, state: FileState, filled: Callable[[str], str], path: str) -> None:
    if state.gone:
        file.unlink(missing_ok=True)
        return
    if state.omitted is not None:
        if not _is_there(file, state):
            raise CassetteError(
                f"the content of {path} was not recorded: {state.omitted}",
                hint="put the file there before the replay, or record without it",
            )
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_dir() and not file.is_symlink():
        _remove_empty(file)
    elif file.is_symlink() or state.link is not None:
        file.unlink(missing_ok=True)
    if state.link is not None:
        file.symlink_to(filled(state.link))
        return
    if state.base64 is not None:
        data = base64.b64decode(state.base64)
    else:
        data = filled(state.text or "").encode("utf-8", "surrogatepass")
    file.write_bytes(data)
    mode = stat.S_IMODE(file.stat().st_mode)
    bits = mode & 0o444
    file.chmod(mode | bits >> 2 if state.executable else mode & ~0o111)


def _remove_empty(folder: Path) -> None:
    """Remove the folder and those in it, of which no file is left."""
    for place, _, _ in os.walk(folder, topdown=False):
        Path(place).rmdir()


def _is_there(file: Path, state: FileState) -> bool:
    if state.sha256 is None:
        return False
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest() == state.sha256
    except OSError:
        return False


def _inside(project: Path, path: str) -> Path:
    parts = Path(path).parts
    refused = not parts or Path(path).is_absolute() or ".." in parts
    refused = refused or any(part.casefold() == ".git" for part in parts)
    refused = refused or "\0" in path
    file = project / path
    if not refused:  # where it leads to counts, not only how it is written
        real, root = file.parent.resolve(), project.resolve()
        refused = not real.is_relative_to(root) or any(
            part.casefold() == ".git" for part in real.relative_to(root).parts
        )
    if refused:
        raise CassetteError(
            f"the cassette would write {path}, which is none of the project's files",
            hint="do not use this cassette",
        )
    return file


def _walked(folder: Path, project: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _NOT_LOOKED_AT]
        for name in names:
            yield os.path.relpath(Path(place, name), project)


def _relative(project: Path, path: Path) -> str | None:
    whole = Path(os.path.normpath(project / path))
    for root in (project, project.resolve()):
        for form in (whole, whole.parent.resolve() / whole.name):
            if form.is_relative_to(root):
                return form.relative_to(root).as_posix()
    return None
