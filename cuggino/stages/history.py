"""`History`: the branches of a repository and the specifications in it, as they were.

Programs can change both without writing a file of the work tree, with git's own tools.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from reactivex import operators as ops

from cuggino.operators import Flow, ask
from cuggino.sources import git_output

_PLAIN = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
"""Settings that start no program of the project."""

_KEPT = ("refs/heads/", "refs/tags/", "refs/stash", "refs/cuggino/")
"""References that agents may not move or remove; others follow a remote."""

_FOLDERS = 8
"""Folders whose references are kept in mind."""


@dataclass(frozen=True, slots=True)
class _State:
    head: str
    """What HEAD says: `ref: refs/heads/main`, or a commit."""
    refs: Mapping[str, str]
    index: tuple[int, int, int]

    @property
    def branch(self) -> str:
        return self.head.removeprefix("ref: ") if self.head.startswith("ref: ") else ""

    @property
    def commit(self) -> str:
        return self.refs.get(self.branch, "") if self.branch else self.head


class History:
    """What git knows of a project; reading it costs no process as long as nothing has changed.

    `looks` is for roles that may not change the repository at all. Others may commit and make
    branches; the branches that exist stay, and so do the `specs` in the commit and in the index.
    """

    def __init__(self, project: Path, folders: tuple[Path, ...], *, specs: str | None, looks: bool):
        self._project = project
        self._folders = folders
        self._specs = specs
        self._looks = looks
        self._before: _State | None = None

    def take(self) -> None:
        """Remember the state as it is now."""
        self._before = self._state()

    def changes(self) -> Flow[dict[str, str]]:
        """Return what has changed though it may not, with the commit that it has now, or "".

        A reference is named in full, a specification as `HEAD:PATH`, or `:PATH` in the index.
        """
        before = self._before
        now = None if before is None else self._state()
        if before is None or now is None or before == now:
            return {}
        changed = dict(self._refs(before, now))
        if self._looks:
            if before.head != now.head and (before.branch or now.branch):
                changed["HEAD"] = now.commit
        elif self._specs is not None:
            moved = before.commit != now.commit
            if moved and before.commit and now.commit:
                for path in (yield from self._differing(before.commit, now.commit)):
                    changed[f"HEAD:{path}"] = now.commit
            if before.index != now.index and now.commit:
                staged = yield from self._differing("--cached", now.commit)
                # What a person stages is what the work tree has.
                unlike = (yield from self._differing()) if staged else ()
                changed.update({f":{path}": "" for path in staged if path in unlike})
        return changed

    def put_back(self, changed: Mapping[str, str]) -> Flow[None]:
        """Undo these changes; no file of the work tree is written.

        Raises:
            ProcessError: git failed.
        """
        before = self._before
        if before is None:
            return
        commands = "".join(
            f"update {ref} {before.refs[ref]}\n" if ref in before.refs else f"delete {ref}\n"
            for ref in changed
            if ref.startswith("refs/")
        )
        if commands:
            yield from self._git("update-ref", "--stdin", stdin=commands.encode())
        if "HEAD" in changed:
            words = ("symbolic-ref", "HEAD", before.branch)
            yield from self._git(
                *(words if before.branch else ("update-ref", "--no-deref", "HEAD", before.head))
            )
        if any(name.startswith("HEAD:") for name in changed):
            yield from self._git("reset", "--quiet", "--soft", before.commit)
        if any(":" in name for name in changed):
            yield from self._git("reset", "--quiet", before.commit, "--", self._specs or ".")

    def _refs(self, before: _State, now: _State) -> Iterator[tuple[str, str]]:
        for ref in sorted({*before.refs, *now.refs}):
            old, new = before.refs.get(ref), now.refs.get(ref)
            may_change = not self._looks and (old is None or ref in (before.branch, now.branch))
            if old != new and ref.startswith(_KEPT) and not (may_change and new is not None):
                yield ref, new or ""

    def _differing(self, *between: str) -> Flow[tuple[str, ...]]:
        """Return the specifications that differ between commits, the index or the work tree."""
        words = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "--relative", "-z")
        said = yield from self._git(*words, *between, "--", self._specs or ".")
        return tuple(os.fsdecode(path) for path in said.split(b"\0") if path)

    def _git(self, *args: str, stdin: bytes | None = None) -> Flow[bytes]:
        output = git_output(*_PLAIN, *args, cwd=self._project, stdin=stdin, sweep=False)
        return (yield from ask(output.pipe(ops.last_or_default(b"")))) or b""

    def _state(self) -> _State | None:
        """Read the files of the repository; None without one that keeps its references in files."""
        if not self._folders or any((folder / "reftable").exists() for folder in self._folders):
            return None
        try:
            head = (self._folders[0] / "HEAD").read_text("utf-8", "replace").strip()
        except OSError:
            return None
        refs: dict[str, str] = {}
        for folder in reversed(self._folders):
            refs.update(_packed(folder / "packed-refs"))
            refs.update(_loose(folder))
        index = (0, 0, 0)
        with suppress(OSError):
            index = _print((self._folders[0] / "index").stat())
        return _State(head, refs, index)


def _packed(file: Path) -> Iterator[tuple[str, str]]:
    with suppress(OSError):
        for line in file.read_text("utf-8", "surrogateescape").splitlines():
            value, _, ref = line.partition(" ")
            if ref and value[:1] not in "#^":
                yield ref, value


_read: dict[str, dict[str, tuple[tuple[int, int, int], str]]] = {}
"""The references that were read, by folder and file: a run has one for each of its snapshots."""


def _loose(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the references in files of their own; one is only read when its file has changed."""
    top = os.fspath(folder)
    before, now = _read.get(top, {}), {}
    for place, _folders, names in os.walk(f"{top}/refs"):
        for name in names:
            file = f"{place}/{name}"
            if name.endswith(".lock"):
                continue
            with suppress(OSError):
                print_ = _print(os.stat(file))  # noqa: PTH116
                known = before.get(file)
                if known is None or known[0] != print_:
                    with open(file, encoding="utf-8", errors="replace") as opened:  # noqa: PTH123
                        known = print_, opened.read().strip()
                now[file] = known
                yield file[len(top) + 1 :], known[1]
    if len(_read) >= _FOLDERS:
        _read.clear()
    _read[top] = now


def _print(state: os.stat_result) -> tuple[int, int, int]:
    """Return what differs when a file has been written."""
    return state.st_ino, state.st_ctime_ns, state.st_size
