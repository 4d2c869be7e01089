"""Record the file changes and commits of a session, and replay them.

Files ignored by git are skipped, except the loops' folders (`.cuggino`, `.autonoe`, `.lopen`) apart
from files that cuggino itself writes while an agent works. Without a repository, the usual folders
of dependencies and caches are skipped.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from cuggino.agents.cassettes.cassette import CommitMade, FileState
from cuggino.agents.cassettes.places import Places, Writing
from cuggino.errors import CassetteError, ProcessError
from cuggino.git import EXECUTABLE, LINK, NONE, Git, differences
from cuggino.protection import own_write

MOST_COMMITS = 100
"""Maximum number of commits recorded per tool call; the last ones count."""

_LIMIT_S = 60


def listed_files(project: Path) -> list[str] | None:
    """Return the project's files that git tracks or does not ignore; None without a repository."""
    said = _git(project, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return None if said is None else _texts(said)


def head_commit(project: Path) -> str | None:
    """Return the hash of the current commit; None without one."""
    said = _git(project, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
    return None if said is None else said.decode().strip()


def commits_since(
    project: Path, before: str | None, now: str, *, state: Callable[[bytes, bool], FileState]
) -> list[CommitMade]:
    """Return the commits between the two with their files, oldest first.

    A merge counts as one commit. If history was rewritten, the commits are those since the last
    common one. `state` converts a file's content and its executable bit.
    """
    base = before and _text(_git(project, "merge-base", before, now))
    span = f"{base}..{now}" if base else now
    most = f"--max-count={MOST_COMMITS}"
    listed = _git(project, "rev-list", "--first-parent", most, span)
    return [_commit(project, name, state) for name in reversed(_text(listed).split())]


def commit_again(project: Path, commit: CommitMade, paths: list[str]) -> None:
    """Commit these paths in their current state, in the name of the recorded author.

    Raises:
        CassetteError: git fails.
    """
    names = {"NAME": commit.author or "recorded", "EMAIL": commit.email or "recorded@invalid"}
    env = {f"GIT_{who}_{k}": v for who in ("AUTHOR", "COMMITTER") for k, v in names.items()}
    words = ("--no-verify", "--no-gpg-sign", "--allow-empty", "--quiet", "-F", "-")
    given = "\0".join(paths).encode("utf-8", "surrogateescape")
    ok: bytes | None = b""
    if paths:
        from_stdin = ("--pathspec-from-file=-", "--pathspec-file-nul")
        ok = _git(project, "--literal-pathspecs", "add", "-A", "-f", *from_stdin, stdin=given)
    message = commit.message.encode("utf-8", "replace")
    if ok is not None:
        # Hooks ran when it was recorded.
        commit_words = ("commit", "--cleanup=verbatim", *words)
        ok = _git(project, *commit_words, stdin=message, env=env)
    if ok is None:
        subject = commit.message.strip().partition("\n")[0]
        raise CassetteError(
            f"git could not repeat the recorded commit “{subject}”",
            hint="see what `git status` says in the project",
        )


def _commit(project: Path, name: str, state: Callable[[bytes, bool], FileState]) -> CommitMade:
    told = _git(project, "log", "-1", "--format=%an%x00%ae%x00%B", name) or b"\0\0"
    author, email, message = told.decode("utf-8", "replace").removesuffix("\n").split("\0", 2)
    files: dict[str, FileState] = {}
    first = ("diff-tree", "-r", "-z", "--no-commit-id", "--no-renames", "--relative")
    parent = _git(project, "rev-parse", "--quiet", "--verify", f"{name}^1")
    compared = (f"{name}^1", name) if parent is not None else ("--root", name)
    for one in differences(_texts(_git(project, *first, *compared) or b"")):
        if one.state == "D":
            files[one.path] = FileState(gone=True)
            continue
        data = _git(project, "cat-file", "blob", one.blob)
        if data is None:
            continue  # another repository within this one
        if one.mode == LINK:
            files[one.path] = FileState(link=os.fsdecode(data))
        else:
            files[one.path] = state(data, one.mode == EXECUTABLE)
    return CommitMade(message=message, author=author, email=email, files=files)


def _git(
    project: Path,
    *args: str,
    stdin: bytes = b"",
    env: Mapping[str, str] = NONE,
) -> bytes | None:
    """Return the output of git, or None if it fails or is not installed."""
    try:
        done = Git(cwd=project).now(*args, stdin=stdin, env=env, limit=_LIMIT_S)
    except ProcessError:
        return None
    return None if done.code else done.output


def _text(said: bytes | None) -> str:
    return (said or b"").decode().strip()


def _texts(said: bytes) -> list[str]:
    return [os.fsdecode(part) for part in said.split(b"\0") if part]


FILE_LIMIT = 5 * 1024 * 1024
"""Maximum bytes of a file recorded with its content."""

_LISTS = re.compile(r"\.autonoe/status\.json|\.cuggino/wip/[^/]+\.verified\.json")
"""What the deliverable tools of a run write."""

_OWN_FOLDERS = (".cuggino", ".autonoe", ".lopen")
_OF_CUGGINO = (".cuggino/journal", ".cuggino/lock", ".cuggino/.gitignore")
_NOT_LOOKED_AT = frozenset(
    {
        *(".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".tox", ".cache"),
    }
)


class _Seen(NamedTuple):
    """Metadata by which a changed file is noticed."""

    mode: int
    size: int
    changed_ns: int
    written_ns: int
    inode: int


class Tree:
    """The files of a project; `changes` returns the differences since the last call."""

    def __init__(self, project: Path, *, writing: Writing, without: Iterable[Path] = ()) -> None:
        self._project = project
        self._writing = writing
        own = (_relative(project, path) for path in without)
        self._without = frozenset(path for path in own if path is not None)
        self._is_repository = False
        self._seen: dict[str, _Seen] = {}
        self._seen = self._look()

    def changes(self) -> dict[str, FileState]:
        """Return each file that was changed, created or removed, by its path."""
        now, before = self._look(), self._seen
        self._seen = now
        changed = [path for path, seen in now.items() if before.get(path) != seen]
        states = {path: self._state(path) for path in sorted(changed)}
        for path in sorted(before.keys() - now.keys()):
            file = self._project / path
            if not (file.is_symlink() or file.is_file()):  # otherwise it is ignored now
                states[path] = FileState(gone=True)
        return {self._writing.text(path): state for path, state in states.items()}

    def leaves_out(self, path: str) -> bool:
        """Return whether the file is not part of the work, such as the recording itself."""
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
            listed = list(self._seen)  # git fails, so the ignored files are unknown
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
    """Return the state of a file with this content: as text, or else in base64."""
    if len(data) > FILE_LIMIT:
        digest = hashlib.sha256(data).hexdigest()
        return FileState(omitted=f"it has {len(data)} bytes", sha256=digest, executable=executable)
    with suppress(UnicodeDecodeError):
        text = data.decode()
        if "\0" not in text:
            return FileState(text=writing.content(text), executable=executable)
    if writing.masker.is_in(data):
        digest = hashlib.sha256(data).hexdigest()
        why = "its bytes contain a secret"
        return FileState(omitted=why, sha256=digest, executable=executable)
    return FileState(base64=base64.b64encode(data).decode(), executable=executable)


def put_files(
    project: Path, files: dict[str, FileState], places: Places, *, without: Path | None = None
) -> list[str]:
    """Restore the recorded files in the project, except `without`; return their paths.

    Raises:
        CassetteError: a path is outside the project or in its repository, or a content was not
            recorded and is missing.
    """
    paths: list[str] = []
    # Remove first, as a folder may become a file, or a file a folder.
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
    # The tools of the run wrote these lists, not the agent.
    is_own = _LISTS.fullmatch(path) is not None
    with own_write(file, data) if is_own else nullcontext():
        file.write_bytes(data)
    mode = stat.S_IMODE(file.stat().st_mode)
    bits = mode & 0o444
    file.chmod(mode | bits >> 2 if state.executable else mode & ~0o111)


def _remove_empty(folder: Path) -> None:
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
    if not refused:  # the target counts, not only the path
        real, root = file.parent.resolve(), project.resolve()
        refused = not real.is_relative_to(root) or any(
            part.casefold() == ".git" for part in real.relative_to(root).parts
        )
    if refused:
        raise CassetteError(
            f"the cassette would write {path}, which is not a file of the project",
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
