"""The project's git repository as stages (CUG-050 to CUG-054)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from reactivex import Observable, from_iterable, operators as ops, throw, timer

from cuggino.errors import ProcessError, ProcessFailed
from cuggino.events import CommitFailed, CommitPerformed, PushFailed, PushPerformed
from cuggino.operators import Flow, ask, emit, flow, interrupt_when
from cuggino.sources.git import git_lines, has_own_ssh
from cuggino.sources.git_locks import remove_stale_locks
from cuggino.stages.act import act
from cuggino.stages.git_words import gist, push_gist

SUBJECT_LIMIT = 72
_SHORT = 7
"""Characters of an abbreviated hash."""
EMPTY_MESSAGE = "cuggino: progress"
_STATUS = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
_UNMERGED = ("DD", "AU", "UD", "UA", "DU", "AA", "UU")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that was made."""

    hash: str
    message: str
    left: tuple[str, ...] = ()
    """The submodules with changes in them, which only a commit in there can hold."""


class Repository(Protocol):
    """What a loop asks of version control."""

    def head(self) -> Observable[str | None]:
        """Emit the hash of the present commit, None when there is none."""

    def commit(self, message: str) -> Observable[Commit]:
        """Commit what has changed; emits the commit, or nothing when nothing has changed."""

    def push(self, remote: str, branch: str) -> Observable[Any]:
        """Push the present commit to the branch of the remote, never forced.

        Emits nothing, and completes when the remote has it. Errors: `ProcessError`.
        """


@runtime_checkable
class Recovers(Protocol):
    """A `Repository` that can put away what a killed process has left in the midst of a commit."""

    def recover(self, since: datetime) -> Observable[Any]:
        """Emit what was put away, of what is not older than `since`; errors: `ProcessError`."""


class GitRepository:
    """The repository that `cwd` is in. Commits leave out the paths in `exclude`.

    A commit or a push that takes longer than `timeout` seconds (a hook, a signature that waits
    for a password, a remote that does not answer) is ended and fails.
    """

    def __init__(self, cwd: Path, *, exclude: tuple[Path, ...] = (), timeout: float = 600.0):
        self._cwd = cwd
        self._timeout = timeout
        relative = (Path(os.path.relpath(cwd / path, cwd)) for path in exclude)
        # A path outside of the folder is not committed anyway, and git refuses to name it.
        self._paths = [
            ".",
            *(f":(exclude,literal){path}" for path in relative if path.parts[:1] != ("..",)),
        ]

    def head(self) -> Observable[str | None]:
        return self._text("rev-parse", "--verify", "--quiet", "HEAD").pipe(
            ops.map(lambda text: text or None),
            ops.catch(from_iterable([None])),
        )

    def recover(self, since: datetime) -> Observable[list[str]]:
        """Remove the locks of a git that was killed, and that no living one can hold."""
        return flow(lambda: self._recover(since))

    def commit(self, message: str) -> Observable[Commit]:
        return self._bounded("commit", flow(lambda: self._commit(message)))

    def push(self, remote: str, branch: str) -> Observable[Any]:
        return self._bounded("push", flow(lambda: self._push(remote, branch)))

    def _bounded(self, command: str, stream: Observable[Any]) -> Observable[Any]:
        late = ProcessError("git", f"git {command} was ended after {self._timeout:g} s")
        # A notifier that fails ends the stream with its error.
        alarm = timer(self._timeout).pipe(ops.flat_map(lambda _tick: throw(late)))
        return stream.pipe(interrupt_when(alarm))

    def _recover(self, since: datetime) -> Flow[None]:
        top = Path((yield from ask(self._text("rev-parse", "--show-toplevel"))) or self._cwd)
        branch = self._text("symbolic-ref", "--quiet", "HEAD").pipe(ops.catch(from_iterable([""])))
        refs = ["index", "HEAD", (yield from ask(branch)) or ""]
        locks: list[Path] = []
        for ref in filter(None, refs):
            path = yield from ask(self._text("rev-parse", "--git-path", f"{ref}.lock"))
            locks.append((self._cwd / (path or "")).resolve())
        removed = yield from ask(act(lambda: remove_stale_locks(locks, top, since=since)))
        yield from emit([str(path) for path in removed or []])

    def _commit(self, message: str) -> Flow[None]:
        # The changed paths are named one by one, as `git add` fails on an excluded path that is
        # ignored, which `.cuggino` often is, and on a removed one that somebody has staged.
        command: tuple[str, ...]
        status = yield from ask(self._text(*_STATUS, "--", *self._paths))
        # `status` names paths from the top of the repository, `add` takes them from the folder.
        prefix = (yield from ask(self._text("rev-parse", "--show-prefix"))) or ""
        entries = _entries(status, prefix)
        if unmerged := [path for state, path in entries if state in _UNMERGED]:
            raise ProcessError("git", f"unresolved merge conflicts in {', '.join(unmerged)}")
        # Removed ones first: a file may have become a folder, or a folder a link.
        if removed := [path for state, path in entries if state[1] == "D"]:
            command = ("update-index", "--force-remove", "-z", "--stdin")
            yield from ask(self._text(*command, stdin=_joined(removed)))
        if others := [path for state, path in entries if state[1] not in " D"]:
            command = ("add", "--pathspec-from-file=-", "--pathspec-file-nul")
            yield from ask(self._text("--literal-pathspecs", *command, stdin=_joined(others)))
        left: tuple[str, ...] = ()
        if modules := [path for state, path in entries if state[1] == "M" and self._is_dir(path)]:
            status = yield from ask(self._text("--literal-pathspecs", *_STATUS, "--", *modules))
            left = tuple(path for state, path in _entries(status, prefix) if state[1] == "M")
        diff = ("diff", "--cached", "--name-only", "--no-relative", "-z")
        ours = yield from ask(self._text(*diff, "--", *self._paths))
        if not ours:
            if left:
                raise ProcessError("git", _left(left))
            return
        text = commit_message(message)
        # `whitespace`: a line that begins with `#` is no comment.
        command = ("commit", "--cleanup=whitespace", "-F", "-")
        if ours != (yield from ask(self._text(*diff))):
            # Somebody has staged what is excluded; `--only` leaves it staged.
            command = (*command, "--only", "--", *self._paths)
        stdin = text.encode("utf-8", "replace")
        yield from ask(self._text(*command, stdin=stdin, merge_stderr=True))
        short = yield from ask(self._text("rev-parse", "--short", "HEAD"))
        yield from emit(Commit(hash=short or "", message=text.partition("\n")[0], left=left))

    def _is_dir(self, path: str) -> bool:
        return (self._cwd / path).is_dir()

    def _push(self, remote: str, branch: str) -> Flow[None]:
        env = {}
        if not has_own_ssh() and not (yield from ask(self._configured("core.sshCommand"))):
            env["GIT_SSH_COMMAND"] = "ssh -o BatchMode=yes"  # asks no password and for no host key
        command = ("push", "--porcelain", remote, f"HEAD:refs/heads/{branch}")
        yield from ask(self._text(*command, merge_stderr=True, env=env))

    def _configured(self, key: str) -> Observable[str]:
        """The value of git's configuration, empty when there is none."""
        return self._text("config", "--get", key).pipe(ops.catch(from_iterable([""])))

    def _text(
        self,
        *args: str,
        stdin: bytes | None = None,
        merge_stderr: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> Observable[str]:
        """The whole output of a git command; its failure says what git said."""
        command = args[1] if args[0].startswith("-") else args[0]

        def fail(error: ProcessError, said: str) -> ProcessError:
            if not isinstance(error, ProcessFailed):
                return error
            failure = ProcessFailed("git", error.child_exit_code, said)
            failure.message = f"git {command} exited with code {error.child_exit_code}"
            words = push_gist(said) if command == "push" else gist(said)
            failure.message += f": {words}" if words else ""
            return failure

        def run() -> Flow[None]:
            said: list[bytes] = []
            lines = git_lines(*args, cwd=self._cwd, stdin=stdin, merge_stderr=merge_stderr, env=env)
            try:
                yield from ask(lines.pipe(ops.do_action(said.append)))
            except ProcessError as error:
                output = b"\n".join(said).decode("utf-8", "replace")
                errors = error.stderr_tail if isinstance(error, ProcessFailed) else ""
                raise fail(error, f"{output}\n{errors}") from error
            yield from emit(b"\n".join(said).decode("utf-8", "surrogateescape"))

        return flow(run)


def commit_stage(
    repository: Repository, message: str, *, iteration: int, base: str | None = None
) -> Observable[CommitPerformed | CommitFailed]:
    """Commit the work of a task; emits `CommitPerformed`, `CommitFailed`, or nothing.

    Nothing changed means no event. A failure is an event and never an error: the loop goes on.
    Changes within a submodule cannot be committed here: that is a `CommitFailed`, before the
    `CommitPerformed` of the rest.

    `base` is the commit that was there before. With nothing to commit, and another commit there
    than `base`, the stage had been here already, in a process that was killed: that commit is the
    event's.
    """

    def run() -> Flow[None]:
        try:
            commit = yield from ask(repository.commit(message))
            if commit is None and base is not None:
                head = yield from ask(repository.head())
                if head is not None and head != base:
                    subject = commit_message(message).partition("\n")[0]
                    commit = Commit(hash=head[:_SHORT], message=subject)
        except ProcessError as error:
            yield from emit(CommitFailed(iteration=iteration, message=error.message))
            return
        if commit is not None:
            if commit.left:
                yield from emit(CommitFailed(iteration=iteration, message=_left(commit.left)))
            yield from emit(
                CommitPerformed(
                    iteration=iteration, commit_hash=commit.hash, message=commit.message
                )
            )

    return flow(run)


def push_stage(
    repository: Repository, target: str, commit_hash: str, *, iteration: int
) -> Observable[PushPerformed | PushFailed]:
    """Push the commit to `target`, a `remote/branch`; emits `PushPerformed` or `PushFailed`.

    A failure is an event and never an error: the next push brings the commit along.
    """

    def run() -> Flow[None]:
        remote, _, branch = target.partition("/")
        try:
            yield from ask(repository.push(remote, branch))
        except ProcessError as error:
            yield from emit(PushFailed(iteration=iteration, message=error.message))
            return
        yield from emit(PushPerformed(iteration=iteration, commit_hash=commit_hash, remote=target))

    return flow(run)


def commit_message(text: str) -> str:
    """A marker's text as a commit message: the first line is the subject, cut at a word.

    A subject above 72 characters is cut there, and the whole text becomes the body.
    """
    text = text.strip() or EMPTY_MESSAGE
    first, _, rest = text.partition("\n")
    subject = first.strip()
    if len(subject) <= SUBJECT_LIMIT:
        return f"{subject}\n\n{rest.strip()}\n" if rest.strip() else f"{subject}\n"
    head = subject[: SUBJECT_LIMIT - 2]
    cut = head.rsplit(" ", 1)[0] if " " in head else head
    return f"{cut.rstrip()} …\n\n{text}\n"


def _entries(status: str | None, prefix: str) -> list[tuple[str, str]]:
    """State and path of each entry of `_STATUS`, the path from the folder of that prefix."""
    return [(e[:2], e[3:].removeprefix(prefix)) for e in (status or "").split("\0") if e]


def _left(modules: tuple[str, ...]) -> str:
    return f"changes within the submodule {', '.join(modules)} are left: commit them in there"


def _joined(paths: list[str]) -> bytes:
    return os.fsencode("\0".join(paths))
