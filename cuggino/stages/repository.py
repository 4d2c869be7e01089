"""Stages of the project's git repository: commit, push, recover (CUG-050 to CUG-054)."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from reactivex import Observable, operators as ops

from cuggino.domain import without_escapes
from cuggino.errors import ProcessError, WorkNotCommitted
from cuggino.events import (
    CommitFailed,
    CommitPerformed,
    DirtyFilesCommitted,
    Event,
    PushFailed,
    PushPerformed,
)
from cuggino.files import is_own_output
from cuggino.git import (
    LIMIT_S,
    NONE,
    SSH_COMMAND,
    STATUS,
    Changed,
    Git,
    Layout,
    Said,
    changed_files,
    checked_out,
    commit_of,
    commits_of_refs,
    current_branch,
    distrusted_repositories,
    failed,
    is_ancestor,
    joined,
    layout_of,
    make_commit,
    remove_stale_locks,
    ssh_environment,
)
from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.sandbox import Views
from cuggino.stages.acts import act
from cuggino.stages.dirty import is_unchanged, name_of, states_of
from cuggino.stages.merging import Merge, is_merging, merge_flow, stage_resolution
from cuggino.storage import WORKSPACE_FOLDER

SUBJECT_LIMIT = 72
_HOOK = ("rev-parse", "--git-path", "hooks/pre-push")
_SHORT = 7
"""Characters of an abbreviated hash."""
EMPTY_MESSAGE = "cuggino: progress"
_STATUS = (*STATUS, "--untracked-files=all")
_STAGED = ("diff", "--cached", "--name-only", "--no-relative", "--no-renames", "-z")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that reorder text."""
_MOST_COMMITS = 200

Commits = Callable[[Path, "str | None"], Observable[list[list[str]]]]
"""Lists the commits since one, as `commits_since` does."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit."""

    hash: str
    message: str
    left: tuple[str, ...] = ()
    """Submodules with uncommitted changes, which only a commit inside them can hold."""
    nested: tuple[str, ...] = ()
    """Repositories that were made within this one; no commit of it can hold their files."""
    mixed: tuple[str, ...] = ()
    """Files that were dirty before the work and have changed since."""


class Repository(Protocol):
    """The version control that a loop needs."""

    def head(self) -> Observable[str | None]:
        """Emit the hash of the current commit, or None."""

    def commit(self, message: str, *, exclude: tuple[Path, ...] = ()) -> Observable[Commit]:
        """Commit all changes outside the paths in `exclude`; emits the commit, if there are any."""

    def push(self, remote: str, branch: str) -> Observable[Any]:
        """Push the current commit to the branch of the remote, never forced.

        Emits nothing, and completes when the remote has it. Errors: `ProcessError`.
        """


@runtime_checkable
class Recovers(Protocol):
    """A `Repository` that can clean up after a process killed during a commit."""

    def recover(self, since: datetime) -> Observable[Any]:
        """Remove leftovers not older than `since` and emit them; errors: `ProcessError`."""


@runtime_checkable
class LeavesDirty(Protocol):
    """A `Repository` that keeps files out of commits that were dirty before the work."""

    def dirty(self, *, exclude: tuple[Path, ...] = ()) -> Observable[dict[str, str]]:
        """Emit the files with uncommitted changes, each with its state; never an error."""

    def commit(
        self, message: str, *, exclude: tuple[Path, ...] = (), dirty: Mapping[str, str] = NONE
    ) -> Observable[Commit]:
        """Commit all changes but those of files that are still in the states of `dirty`."""


@runtime_checkable
class KnowsAncestors(Protocol):
    """A `Repository` that knows whether a commit is part of the current history."""

    def is_ancestor(self, commit: str) -> Observable[bool]:
        """Emit whether the current commit is that one or follows it; True if unknown."""


@runtime_checkable
class Merges(Protocol):
    """A `Repository` that can merge, and leaves conflicts to be resolved."""

    def merge(
        self, commit: str, message: str, *, exclude: tuple[Path, ...] = ()
    ) -> Observable[Merge]:
        """Merge the commit into the current one; emits the conflicts. Errors: `ProcessError`."""

    def conclude(
        self, commit: str, message: str, paths: Sequence[str], *, exclude: tuple[Path, ...] = ()
    ) -> Observable[Commit]:
        """Commit the resolution of the conflicts in `paths`; emits nothing if that was done.

        Errors: `ProcessError`, also while a conflict is left.
        """


@runtime_checkable
class Moves(Protocol):
    """A `Repository` that can be opened in another folder, such as a slot."""

    def at(self, cwd: Path, *, views: Views | None) -> Repository:
        """Return the repository of that folder, otherwise like this one."""


class GitRepository:
    """The repository of the folder `cwd`. Commits leave out the paths in `exclude`.

    A command that takes longer than `timeout` seconds (a hook, a signature that waits for a
    password, a remote that does not answer) is terminated and fails.

    Commits run hooks, which agents may have written, in the view of commands; files are staged in
    that of git (`Views`). They are signed outside, where the user's keys and their agents are. A
    push is outside, too, for its credentials, after its hook has run in a view.
    """

    def __init__(
        self,
        cwd: Path,
        *,
        exclude: tuple[Path, ...] = (),
        timeout: float = LIMIT_S,
        views: Views | None = None,
    ):
        self._cwd = cwd
        self._git = Git(cwd=cwd, views=views, limit=timeout)
        self._exclude = exclude
        self._began = datetime.now(UTC)

    def at(self, cwd: Path, *, views: Views | None) -> GitRepository:
        """Return the repository of another folder, otherwise like this one."""
        return GitRepository(cwd, exclude=self._exclude, timeout=self._git.limit, views=views)

    def head(self) -> Observable[str | None]:
        return flow(self._head)

    def _head(self) -> Flow[None]:
        commit = commit_of(self._cwd)
        if commit is None:  # none yet, or references that are not files
            with suppress(ProcessError):
                said = yield from self._git.run("rev-parse", "--verify", "--quiet", "HEAD")
                commit = said.text if said.code == 0 else None
        yield from emit(commit)

    def recover(self, since: datetime) -> Observable[list[str]]:
        """Remove the locks of a killed git that no running one can hold."""
        return flow(lambda: self._recover(since))

    def commit(
        self, message: str, *, exclude: tuple[Path, ...] = (), dirty: Mapping[str, str] = NONE
    ) -> Observable[Commit]:
        left_out = self._within((*self._exclude, *exclude))
        return flow(lambda: self._commit(message, left_out, dirty))

    def dirty(self, *, exclude: tuple[Path, ...] = ()) -> Observable[dict[str, str]]:
        left_out = self._within((*self._exclude, *exclude))
        return flow(lambda: self._dirty(left_out))

    def is_ancestor(self, commit: str) -> Observable[bool]:
        return flow(lambda: self._is_ancestor(commit))

    def _is_ancestor(self, commit: str) -> Flow[None]:
        is_one: bool | None = commit == commit_of(self._cwd)
        if not is_one:
            try:
                is_one = yield from is_ancestor(self._git, commit)
            except ProcessError:
                is_one = None
        yield from emit(is_one is not False)

    def _dirty(self, left_out: tuple[str, ...]) -> Flow[None]:
        states: dict[str, str] = {}
        with suppress(ProcessError):  # no repository: nothing will be committed either
            entries = yield from self._changed(left_out)
            states = yield from states_of(self._cwd, (entry.path for entry in entries))
        yield from emit(states)

    def _changed(self, left_out: tuple[str, ...]) -> Flow[list[Changed]]:
        """Return the changed files, each with its path from the folder.

        A file that this process prints into, such as a log of its own, is left out.
        """
        paths = (".", *(f":(exclude,literal){path}" for path in left_out))
        wary: tuple[str, ...] = ()
        if not self._git.is_enclosed and (yield from distrusted_repositories(self._git)):
            wary = ("--ignore-submodules=dirty",)
        status = yield from self._git.must(*_STATUS, *wary, "--", *paths)
        # `status` prints paths from the top of the repository, `add` takes them from the folder.
        entries = _entries(status, (yield from layout_of(self._git)).prefix)
        return [entry for entry in entries if not is_own_output(self._cwd / entry.path)]

    def merge(
        self, commit: str, message: str, *, exclude: tuple[Path, ...] = ()
    ) -> Observable[Merge]:
        keep = self._within(exclude)

        def run() -> Flow[None]:
            yield from emit((yield from merge_flow(self._git, commit, message, keep)))

        return flow(run)

    def conclude(
        self, commit: str, message: str, paths: Sequence[str], *, exclude: tuple[Path, ...] = ()
    ) -> Observable[Commit]:
        left_out = self._within((*self._exclude, *exclude))
        return flow(lambda: self._conclude(commit, message, paths, left_out))

    def _conclude(
        self, commit: str, message: str, paths: Sequence[str], left_out: tuple[str, ...]
    ) -> Flow[None]:
        git = self._git
        merging = yield from is_merging(git)
        if not merging and not (yield from is_ancestor(git, commit)):
            yield from ask(flow(lambda: self._commit(message, left_out, NONE)))
            keep = tuple(path for path in left_out if path != WORKSPACE_FOLDER)
            merged = yield from merge_flow(git, commit, message, keep)
            if merged.paths:
                raise ProcessError("git", "the merge was aborted; started again")
            head = (yield from git.must("rev-parse", "HEAD")).text
            yield from emit(Commit(hash=head[:_SHORT], message=message))
            return
        if not merging:  # the agent, or a process that was killed then, has committed it
            yield from self._commit(message, left_out, NONE)
            return
        yield from stage_resolution(git, commit, paths, left_out)
        yield from self._stage((yield from self._changed(left_out)))
        yield from self._record(message)

    def push(self, remote: str, branch: str) -> Observable[Any]:
        return flow(lambda: self._push(remote, branch))

    def _recover(self, since: datetime) -> Flow[None]:
        layout = yield from layout_of(self._git)
        locks = layout.locks((yield from checked_out(self._git, layout)))
        removed = yield from self._unlock(locks, layout, since=since)
        yield from emit([str(path) for path in removed])

    def _unlock(
        self, locks: Iterable[Path], layout: Layout, *, since: datetime
    ) -> Flow[list[Path]]:
        removed = yield from ask(act(lambda: remove_stale_locks(locks, layout.top, since=since)))
        return removed or []

    def _within(self, paths: tuple[Path, ...]) -> tuple[str, ...]:
        """Return the paths inside the folder, relative to it; git rejects all others."""
        relative = (Path(os.path.relpath(self._cwd / path, self._cwd)) for path in paths)
        return tuple(str(path) for path in relative if path.parts[:1] != ("..",))

    def _commit(
        self, message: str, left_out: tuple[str, ...], dirty: Mapping[str, str]
    ) -> Flow[None]:
        entries = yield from self._changed(left_out)
        layout = yield from layout_of(self._git)
        prefix = layout.prefix
        # An agent that was ended may have left those of its git.
        locks = layout.locks(current_branch(self._cwd) or "")
        yield from self._unlock(locks, layout, since=self._began)
        kept, mixed = self._sorted_out(entries, dirty)
        # git would link to the commit of a new repository, without its files.
        nested = tuple(one.path for one in entries if one.is_untracked and one.path.endswith("/"))
        entries = [entry for entry in entries if entry.path not in {*kept, *nested}]
        if unmerged := [entry.path for entry in entries if entry.is_unmerged]:
            raise ProcessError("git", f"unresolved merge conflicts in {', '.join(unmerged)}")
        yield from self._stage(entries)
        left: tuple[str, ...] = ()
        if modules := [one.path for one in entries if one.is_modified and self._is_dir(one.path)]:
            status = yield from self._git.must("--literal-pathspecs", *_STATUS, "--", *modules)
            left = tuple(one.path for one in _entries(status, prefix) if one.is_modified)
        names = (yield from self._git.must(*_STAGED)).fields
        ours = [
            name
            for name in names
            if _is_in(name, prefix, left_out) and name.removeprefix(prefix) not in kept
        ]
        if not ours:
            if left or nested:
                raise ProcessError("git", _left(left, nested))
            return
        others = [name.removeprefix(prefix) for name in ours] if ours != names else []
        yield from self._record(message, only=others, left=left, nested=nested, mixed=mixed)

    def _stage(self, entries: list[Changed]) -> Flow[None]:
        """Stage the changed files.

        Paths are added one by one: `git add` fails on an excluded path that is ignored, as
        `.cuggino` often is, and on a removed one that is already staged.
        """
        # Removed ones first: a file may have become a folder, or a folder a link.
        if removed := [entry.path for entry in entries if entry.is_removed]:
            command = ("update-index", "--force-remove", "-z", "--stdin")
            yield from self._git.must(*command, stdin=joined(removed))
        others = [one.path for one in entries if one.is_in_work_tree and not one.is_removed]
        if others:
            adding = ("add", "--pathspec-from-file=-", "--pathspec-file-nul")
            yield from self._git.must("--literal-pathspecs", *adding, stdin=joined(others))

    def _record(
        self,
        message: str,
        *,
        only: Sequence[str] = (),
        left: tuple[str, ...] = (),
        nested: tuple[str, ...] = (),
        mixed: tuple[str, ...] = (),
    ) -> Flow[None]:
        """Commit the index, or the paths in `only`, and emit the commit."""
        git = self._git
        text = commit_message(message)
        # `whitespace` keeps lines that begin with `#`.
        command: tuple[str, ...] = ("commit", "--cleanup=whitespace", "-F", "-")
        reads: list[Path] = []
        with ExitStack() as stack:
            if only:
                # An excluded path is staged; `--only` leaves it staged.
                listed = stack.enter_context(tempfile.NamedTemporaryFile(prefix="cuggino-session-"))
                listed.write(joined(only))
                listed.flush()
                words = ("--only", f"--pathspec-from-file={listed.name}", "--pathspec-file-nul")
                command = ("--literal-pathspecs", *command, *words)
                reads = [Path(listed.name)]
            stdin = text.encode("utf-8", "replace")
            committing = partial(git.must, *command, stdin=stdin, merge_stderr=True, hooks=True)
            yield from make_commit(git, lambda more: committing(*more, reads=reads))
        short = (yield from git.must("rev-parse", "--short", "HEAD")).text
        subject = text.partition("\n")[0]
        yield from emit(Commit(hash=short, message=subject, left=left, nested=nested, mixed=mixed))

    def _sorted_out(
        self, entries: list[Changed], dirty: Mapping[str, str]
    ) -> tuple[frozenset[str], tuple[str, ...]]:
        """Return the changed files that stay out of the commit, and those that both changed."""
        kept: set[str] = set()
        mixed: list[str] = []
        for _state, path in entries if dirty else ():
            name = name_of(path)
            if name not in dirty:
                continue
            if is_unchanged(self._cwd / path, dirty[name]):
                kept.add(path)
            else:
                mixed.append(name)
        return frozenset(kept), tuple(dict.fromkeys(mixed))

    def _is_dir(self, path: str) -> bool:
        return (self._cwd / path).is_dir()

    def _push(self, remote: str, branch: str) -> Flow[None]:
        git = self._git
        env = ssh_environment((yield from git.run(*SSH_COMMAND)))
        yield from self._before_push(remote, f"refs/heads/{branch}", env)
        command = ("push", "--porcelain", remote, f"HEAD:refs/heads/{branch}")
        yield from git.must(*command, merge_stderr=True, env=env)

    def _before_push(self, remote: str, ref: str, env: Mapping[str, str]) -> Flow[None]:
        """Run the project's hook as git would, but in the view of commands."""
        git = self._git
        top = (yield from layout_of(git)).top
        path = (yield from git.at(top).must(*_HOOK, hooks=True)).text
        hook = top / path
        head = yield from ask(self.head())
        if head is None or not (hook.is_file() and os.access(hook, os.X_OK)):
            return
        listed = yield from git.run("ls-remote", "--refs", remote, ref, env=env)
        if listed.code:
            raise failed(("push",), listed.code, listed.words)
        theirs = commits_of_refs(listed.text).get(ref, "0" * len(head))
        url = (yield from git.run("remote", "get-url", "--push", remote)).text
        stdin = b"" if theirs == head else f"HEAD {head} {ref} {theirs}\n".encode()
        said = yield from git.at(top).hook(hook, remote, url, stdin=stdin)
        if said.code:
            raise failed(("push",), said.code, said.words)


CommitEvent: TypeAlias = "DirtyFilesCommitted | CommitPerformed | CommitFailed"
"""The events of a commit."""


def commit_to(
    repository: Repository,
    message: str,
    *,
    iteration: int,
    base: str | None = None,
    exclude: tuple[Path, ...] = (),
    dirty: Mapping[str, str] = NONE,
) -> Observable[CommitEvent]:
    """Commit the work of a task outside `exclude`.

    Emits `CommitPerformed`, `CommitFailed`, or nothing. Files that were `dirty` before (`dirty` of
    `LeavesDirty`) stay out as long as they do not change; `DirtyFilesCommitted` first names those
    that have.

    Without changes there is no event. A failure is an event, never an error: the loop continues.
    Changes within a submodule cannot be committed here: they cause a `CommitFailed` before the
    `CommitPerformed` of the rest.

    `base` is the commit from before the task. With nothing to commit and a current commit other
    than `base`, an earlier process was killed after committing: that commit is reported.
    """

    def run() -> Flow[None]:
        try:
            if dirty and isinstance(repository, LeavesDirty):
                made = repository.commit(message, exclude=exclude, dirty=dirty)
            else:
                made = repository.commit(message, exclude=exclude)
            commit = yield from ask(made)
            if commit is None and base is not None:
                head = yield from ask(repository.head())
                if head is not None and head != base:
                    subject = commit_message(message).partition("\n")[0]
                    commit = Commit(hash=head[:_SHORT], message=subject)
        except ProcessError as error:
            yield from emit(CommitFailed(iteration=iteration, message=error.message))
            return
        if commit is not None:
            if commit.mixed:
                yield from emit(DirtyFilesCommitted(paths=commit.mixed))
            if commit.left or commit.nested:
                why = _left(commit.left, commit.nested)
                yield from emit(CommitFailed(iteration=iteration, message=why))
            yield from emit(
                CommitPerformed(
                    iteration=iteration,
                    commit_hash=commit.hash,
                    message=commit.message,
                    left=commit.left,
                )
            )

    return flow(run)


def must_commit(committed: Observable[Event]) -> Observable[Event]:
    """Fail with `WorkNotCommitted` after a `CommitFailed`: what follows needs the commit.

    ::

        -F-K|  becomes  -F-K#
    """

    def run() -> Flow[None]:
        failures: list[str] = []

        def note(event: Event) -> None:
            if isinstance(event, CommitFailed):
                failures.append(event.message)

        yield from forward(committed.pipe(ops.do_action(note)))
        if failures:
            raise WorkNotCommitted(failures[0])

    return flow(run)


def push_to(
    repository: Repository, target: str, commit_hash: str, *, iteration: int
) -> Observable[PushPerformed | PushFailed]:
    """Push the commit to `target`, a `remote/branch`; emits `PushPerformed` or `PushFailed`.

    A failure is an event, never an error: the next push includes the commit.
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
    """Return a marker's text as a commit message: the first line is the subject, cut at a word.

    A subject above 72 characters is cut there, and the whole text becomes the body. Control
    characters are dropped, with the terminal sequences that they begin.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _CONTROL.sub("", without_escapes(text)).strip() or EMPTY_MESSAGE
    first, _, rest = text.partition("\n")
    subject = first.strip()
    if len(subject) <= SUBJECT_LIMIT:
        return f"{subject}\n\n{rest.strip()}\n" if rest.strip() else f"{subject}\n"
    head = subject[: SUBJECT_LIMIT - 2]
    cut = head.rsplit(" ", 1)[0] if " " in head else head
    return f"{cut.rstrip()} …\n\n{text}\n"


def _entries(status: Said, prefix: str) -> list[Changed]:
    """Return the files that `_STATUS` lists, each with its path from the folder `prefix`."""
    entries = changed_files(status.fields)
    return [entry._replace(path=entry.path.removeprefix(prefix)) for entry in entries]


def _is_in(path: str, prefix: str, left_out: tuple[str, ...]) -> bool:
    """Return whether a path of the repository is in the folder `prefix`, but not left out."""
    below = path.removeprefix(prefix)
    return path.startswith(prefix) and not any(
        folder == "." or below == folder or below.startswith(f"{folder}/") for folder in left_out
    )


def _left(modules: tuple[str, ...], nested: tuple[str, ...]) -> str:
    told = []
    if modules:
        told.append(f"submodule {', '.join(modules)} has uncommitted changes; commit them there")
    if nested:
        what = "is a repository of its own" if len(nested) == 1 else "are repositories of their own"
        told.append(
            f"{', '.join(nested)} {what}, whose files no commit here can hold: "
            "remove the .git in it, or add it as a submodule"
        )
    return "; ".join(told)


def commits_since(cwd: Path, base: str | None) -> Observable[list[list[str]]]:
    """Emit the abbreviated hash and the subject of each commit since `base`, the oldest first.

    At most the latest 200; all of them without a `base`, none without a repository or when git
    fails.
    """
    return flow(lambda: _commits(cwd, base))


def _commits(cwd: Path, base: str | None) -> Flow[None]:
    what = f"{base}..HEAD" if base else "HEAD"
    words = ("log", f"--max-count={_MOST_COMMITS}", "--format=%h %s", what, "--")
    listed: list[str] = []
    with suppress(ProcessError):
        said = yield from Git(cwd=cwd).must(*words)
        listed = said.output.decode("utf-8", "replace").split("\n")
    lines = [line.partition(" ") for line in reversed(listed)]
    yield from emit([[commit, subject] for commit, _, subject in lines if commit])
