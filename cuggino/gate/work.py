"""The work as git can hold it: at the start of a run, now, with files of the start, and in HEAD."""

from __future__ import annotations

import os
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from reactivex import Observable, just

from cuggino.domain import is_test_file
from cuggino.errors import ProcessError
from cuggino.files import is_own_output, storing
from cuggino.git import (
    EXECUTABLE,
    IDENTITY,
    LINK,
    WorkTree,
    current_branch,
    diff_trees,
    files_of,
    is_ancestor,
    joined,
    read_file,
)
from cuggino.operators import Flow, emit, flow, forward
from cuggino.processes import process_lines
from cuggino.sandbox import Views, home_of, named_paths, without_logins, without_repository

Shell: TypeAlias = Callable[[str, Path], Observable[bytes]]
"""Runs a command line in a folder, and emits the lines of its output."""

State: TypeAlias = Mapping[str, Any]
"""The work at one time: `tree`, `ignored` files with mode and blob, `head` and `branch`."""

_MOST_IGNORED, _LARGEST_IGNORED = 500, 256 * 1024
"""The number and the bytes of ignored files whose content is kept."""
_MOST_LISTED = 5_000
"""The number of ignored files and folders of which new ones are told; more are no settings."""


_UNCHANGED: State = {
    "changed": [],
    "added": [],
    "ignored": [],
    "listed": [],
    "had_tests": False,
    "tree": None,
}


class Standing(NamedTuple):
    """The difference between the work tree and the current commit."""

    missing: tuple[str, ...] = ()
    """Files of which the commit has another version, or none."""
    removed: tuple[str, ...] = ()
    """Files that only the commit has."""
    nested: tuple[str, ...] = ()
    """Folders that are repositories of their own, since the start."""
    ignored: tuple[str, ...] = ()
    """Files and folders that git ignores, since the start or changed since then."""


class Work(Protocol):
    """The files of the project, as the gate looks at them."""

    def state(self, commit: str | None = None) -> Observable[State | None]:
        """Emit the work as it is now, or as in a commit; None where nothing can be compared."""

    def changed(self, start: State) -> Observable[State]:
        """Emit what differs from the start, and the `tree` as it is.

        `changed` are files that the start had too, in another version or removed; what was only
        moved is not, unless it is a test. `added` are new ones. Ignored files are among both, and
        the new ones in `ignored` as well. `had_tests` tells whether the start had any; `listed` are
        all ignored files and folders, from the top of the repository. Other paths are relative to
        the project.
        """

    def copy(
        self, start: State, paths: Sequence[str], *, env: Mapping[str, str]
    ) -> Observable[Shell | None]:
        """Emit a shell for commands in a copy of the project, where `paths` are as at the start.

        What they write vanishes. None where that is impossible.
        """

    def standing(
        self, start: State, *, checked: str | None, exclude: Sequence[str]
    ) -> Observable[Standing]:
        """Emit what the current commit lacks of the work since the start, outside of `exclude`.

        What has changed since the tree `checked` was written by the check.
        """

    def stage(self, paths: Sequence[str]) -> Observable[Any]:
        """Stage these files as they are, whatever git's index says about them; emits nothing."""

    def as_commit(self) -> Observable[str | None]:
        """Emit a commit of the files as they are, on no branch; None without a repository."""

    def return_to(self, branch: str) -> Observable[bool]:
        """Check out the branch again with the current commit, if that contains what it has.

        Emits whether HEAD is on the branch then.
        """


class NoWork:
    """A project whose files cannot be compared, such as one without a repository."""

    def state(self, commit: str | None = None) -> Observable[State | None]:
        return just(None)

    def changed(self, start: State) -> Observable[State]:
        return just(_UNCHANGED)

    def copy(
        self, start: State, paths: Sequence[str], *, env: Mapping[str, str]
    ) -> Observable[Shell | None]:
        return just(None)

    def standing(
        self, start: State, *, checked: str | None, exclude: Sequence[str]
    ) -> Observable[Standing]:
        return just(Standing())

    def stage(self, paths: Sequence[str]) -> Observable[Any]:
        return just(None)

    def as_commit(self) -> Observable[str | None]:
        return just(None)

    def return_to(self, branch: str) -> Observable[bool]:
        return just(True)


class GitWork:
    """The work in a git repository, by the private index of `tree` that snapshots use, too.

    Of ignored files those count that lie outside of ignored folders, as settings such as `.env` do.
    The content of `hide` is not kept.
    """

    def __init__(self, cwd: Path, tree: WorkTree, *, hide: Sequence[str] = ()) -> None:
        self._cwd = cwd.resolve()
        self._work = tree
        self._hidden = tuple(path.resolve() for path in named_paths(hide, home_of(os.environ)))

    @classmethod
    def of(
        cls, cwd: Path, folder: Path, *, views: Views | None = None, hide: Sequence[str] = ()
    ) -> GitWork:
        """Return the work in the repository around `cwd`; `folder` keeps its private index."""
        return cls(cwd, WorkTree(cwd, folder, views=views), hide=hide)

    def at(self, cwd: Path, folder: Path, *, views: Views | None) -> GitWork:
        """Return the work in another folder, otherwise like this one."""
        moved = GitWork.of(cwd, folder, views=views)
        moved._hidden = self._hidden
        return moved

    def state(self, commit: str | None = None) -> Observable[State | None]:
        return flow(lambda: self._state(commit))

    def _state(self, commit: str | None) -> Flow[None]:
        state: State | None = None
        with suppress(ProcessError, OSError):  # no repository, or one that git cannot read
            if self._work.is_in_repository():
                state = yield from self._now()
                if commit is not None:
                    state = {**state, "tree": commit, "head": commit}
        yield from emit(state)

    def _now(self) -> Flow[State]:
        contents = yield from self._work.contents()
        layout = yield from self._work.layout()
        listed = yield from self._ignored()
        files = [path for path in listed if not path.endswith("/")][:_MOST_IGNORED]
        kept: dict[str, list[str]] = {}
        for path in files:
            place = layout.top / path
            if not any(place.is_relative_to(hidden) for hidden in self._hidden):
                with suppress(OSError):
                    mode, content = read_file(place, _LARGEST_IGNORED)
                    kept[path] = [mode, layout.store.write(b"blob", content).hex()]
        return {
            "tree": contents.tree,
            "head": layout.head(),
            "branch": current_branch(self._cwd),
            "ignored": kept,
            "listed": listed,
            "nested": [path for path in contents.left_out if path.endswith("/")],
        }

    def _ignored(self) -> Flow[list[str]]:
        """Return ignored files, and ignored folders with a slash at the end, from the top."""
        words = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
        listed = sorted((yield from self._work.git.must(*words)).fields)
        return listed if len(listed) <= _MOST_LISTED else []

    def changed(self, start: State) -> Observable[State]:
        return flow(lambda: self._changed(start))

    def _changed(self, start: State) -> Flow[None]:
        found: State = _UNCHANGED
        with suppress(ProcessError, OSError):
            now = yield from self._now()
            prefix = (yield from self._work.layout()).prefix
            changes = yield from diff_trees(self._work.git, start["tree"], now["tree"])
            new = {change.blob for change in changes if change.state == "A"}
            kept = [
                change
                for change in changes
                if not (change.state == "D" and change.blob_before in new)
                or is_test_file(change.path.removeprefix(prefix))
            ]
            before, after = start["ignored"], now["ignored"]
            ignored = after.keys() - before.keys()
            others = {path for path in before if before[path] != after.get(path)}
            added = {change.path for change in kept if change.state == "A"} | ignored
            files = yield from files_of(self._work.git, start["tree"])
            found = {
                "changed": _below(prefix, {c.path for c in kept if c.state != "A"} | others),
                "added": _below(prefix, added),
                "ignored": _below(prefix, ignored),
                "had_tests": any(is_test_file(file.path) for file in files),
                "tree": now["tree"],
                "listed": now["listed"],
            }
        yield from emit(found)

    def copy(
        self, start: State, paths: Sequence[str], *, env: Mapping[str, str]
    ) -> Observable[Shell | None]:
        return flow(lambda: self._copy(start, paths, env))

    def _copy(self, start: State, paths: Sequence[str], env: Mapping[str, str]) -> Flow[None]:
        shell: Shell | None = None
        with suppress(ProcessError, OSError):
            packed = yield from self._packed(start, paths)
            shell = self._shell(packed, paths, env)
        yield from emit(shell)

    def _packed(self, start: State, paths: Sequence[str]) -> Flow[bytes]:
        """Return a tar file of these paths as they were at the start."""
        layout = yield from self._work.layout()
        wanted = {f"{layout.prefix}{path}": path for path in paths}
        entries = {
            name: tuple(start["ignored"][name]) for name in wanted if name in start["ignored"]
        }
        words = ("ls-tree", "-r", "-z", "--full-tree", start["tree"])
        for field in (yield from self._work.git.must(*words)).fields if wanted else ():
            about, _, name = field.partition("\t")
            mode, kind, blob = about.split(" ")
            if name in wanted and kind == "blob":
                entries[name] = (mode, blob)
        packed = BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for name, (mode, blob) in sorted(entries.items()):
                content = (yield from self._work.git.must("cat-file", "blob", blob)).output
                member = tarfile.TarInfo(wanted[name])
                member.mode = 0o755 if mode == EXECUTABLE else 0o644
                if mode == LINK:
                    member.type, member.linkname = tarfile.SYMTYPE, os.fsdecode(content)
                else:
                    member.size = len(content)
                archive.addfile(member, BytesIO(content))
        return packed.getvalue()

    def _shell(self, packed: bytes, paths: Sequence[str], env: Mapping[str, str]) -> Shell:
        views = self._work.views

        def run(command: str, cwd: Path) -> Flow[None]:
            with tempfile.TemporaryDirectory(prefix="cuggino-session-copy-") as name:
                folder = Path(name).resolve()
                with storing("write", folder):
                    (folder / "files.tar").write_bytes(packed)
                    (folder / "removed").write_bytes(joined(paths))
                view = None if views is None else views.of_copy(cwd, reads=(folder,))
                root = cwd
                if view is None:
                    root = folder / "copy"
                    yield from forward(_in(("/bin/sh", "-c", _COPY, "sh", cwd, root), cwd, {}))
                    view = None if views is None else views.of_commands(root, reads=(folder,))
                argv = ("/bin/sh", "-c", _PUT_BACK, "sh", root, folder, command)
                # What was put back is newer than all that was built from what it replaces; bytecode
                # would be taken for that of a file of the same size and second.
                own = {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
                whole = without_logins({**without_repository(os.environ), **env, **own}, ())
                yield from forward(_in(argv, root, whole, view))

        return lambda command, cwd: flow(lambda: run(command, cwd.resolve()))

    def standing(
        self, start: State, *, checked: str | None, exclude: Sequence[str]
    ) -> Observable[Standing]:
        return flow(lambda: self._standing(start, checked, exclude))

    def _standing(self, start: State, checked: str | None, exclude: Sequence[str]) -> Flow[None]:
        standing = Standing()
        with suppress(ProcessError, OSError):
            now = yield from self._now()
            if now["head"] is not None:
                standing = yield from self._compared(start, checked or now["tree"], now, exclude)
        yield from emit(standing)

    def _compared(
        self, start: State, checked: str, now: State, exclude: Sequence[str]
    ) -> Flow[Standing]:
        git, layout = self._work.git, (yield from self._work.layout())
        by_check = {one.path for one in (yield from diff_trees(git, checked, now["tree"]))}
        since = {change.path for change in (yield from diff_trees(git, start["tree"], now["tree"]))}
        dirty = yield from self._differing(start)
        found = [
            change
            for change in (yield from diff_trees(git, now["head"], now["tree"]))
            if change.path in since or change.path not in dirty
            if not change.has_module and self._is_ours(change.path, layout.prefix, exclude)
        ]
        there = [one for one in found if one.state != "D" and one.path not in by_check]
        # A filter or a conversion of line ends makes a file differ from its blob.
        blobs = yield from self._blobs([change.path for change in there])
        left = [
            c.path for c in there if blobs.get(c.path) != c.blob_before or c.mode_before != c.mode
        ]
        gone = [change.path for change in found if change.state == "D"]
        gone = [path for path in gone if not os.path.lexists(layout.top / path)]
        strip = len(layout.prefix)
        before, by_start = start["ignored"], start.get("written", ())
        others = [p for p, kept in now["ignored"].items() if before.get(p, kept) != kept]
        others = [path for path in others if path[strip:] not in by_start]
        new = sorted({*now["listed"]} - {*start.get("listed", ())} | {*others})
        nested = [p for p in now["nested"] if p not in start.get("nested", ())]
        return Standing(
            missing=tuple(path[strip:] for path in left),
            removed=tuple(path[strip:] for path in gone),
            nested=tuple(p[strip:] for p in nested if self._is_ours(p, layout.prefix, exclude)),
            ignored=tuple(p[strip:] for p in new if self._is_ours(p, layout.prefix, exclude)),
        )

    def _differing(self, start: State) -> Flow[set[str]]:
        """Return the files that had uncommitted changes at the start: all, before any commit."""
        if start["head"] is None:
            return {file.path for file in (yield from files_of(self._work.git, start["tree"]))}
        changes = yield from diff_trees(self._work.git, start["head"], start["tree"])
        return {change.path for change in changes}

    def _is_ours(self, path: str, prefix: str, exclude: Sequence[str]) -> bool:
        own = path.removeprefix(prefix)
        return path.startswith(prefix) and not (
            any(own == name or own.startswith(f"{name}/") for name in exclude)
            or is_own_output(self._cwd / own)
        )

    def _blobs(self, paths: Sequence[str]) -> Flow[dict[str, str]]:
        """Return the blob as which git would store each file."""
        top = (yield from self._work.layout()).top
        plain = [path for path in paths if "\n" not in path and not (top / path).is_symlink()]
        if not plain:
            return {}
        stdin = b"".join(os.fsencode(path) + b"\n" for path in plain)
        said = yield from self._work.git.must("hash-object", "-w", "--stdin-paths", stdin=stdin)
        return dict(zip(plain, said.text.split("\n"), strict=True))

    def stage(self, paths: Sequence[str]) -> Observable[Any]:
        return flow(lambda: self._stage(paths))

    def _stage(self, paths: Sequence[str]) -> Flow[None]:
        layout = yield from self._work.layout()
        names = [f"{layout.prefix}{path}" for path in paths]
        blobs = yield from self._blobs(names)
        lines: list[bytes] = []
        for name in names:
            with suppress(OSError):
                mode, content = read_file(layout.top / name, 1 << 40)
                blob = blobs.get(name) or layout.store.write(b"blob", content).hex()
                lines.append(f"{mode} {blob}\t".encode() + os.fsencode(name) + b"\0")
        lines[:0] = yield from self._other_cases(names)
        words = ("-c", "core.ignorecase=false", "update-index", "-z", "--index-info")
        yield from self._work.git.must(*words, stdin=b"".join(lines))

    def _other_cases(self, names: Iterable[str]) -> Flow[list[bytes]]:
        """Return lines that remove from the index what is gone and differs in case only."""
        layout = yield from self._work.layout()
        own = {name.casefold(): name for name in names}
        listed = (yield from self._work.git.must("ls-files", "-z")).fields
        zero = "0" * (64 if layout.algorithm == "sha256" else 40)
        return [
            f"0 {zero}\t".encode() + os.fsencode(name) + b"\0"
            for name in listed
            if name.casefold() in own and name != own[name.casefold()]
            if name not in os.listdir((layout.top / name).parent)  # noqa: PTH208
        ]

    def as_commit(self) -> Observable[str | None]:
        return flow(self._as_commit)

    def _as_commit(self) -> Flow[None]:
        commit: str | None = None
        with suppress(ProcessError, OSError):
            tree = (yield from self._work.contents()).tree
            made = ("commit-tree", tree, "-m", "The work as it is")
            commit = (yield from self._work.git.must(*made, env=IDENTITY)).text
        yield from emit(commit)

    def return_to(self, branch: str) -> Observable[bool]:
        return flow(lambda: self._return_to(branch))

    def _return_to(self, branch: str) -> Flow[None]:
        is_there = False
        with suppress(ProcessError, OSError):
            yield from self._work.layout()
            git, ref = self._work.git, f"refs/heads/{branch}"
            head = (yield from git.must("rev-parse", "HEAD")).text
            tip = yield from git.run("rev-parse", "--verify", "--quiet", ref)
            if tip.code or (yield from is_ancestor(git, tip.text, head)):
                before = "0" * len(head) if tip.code else tip.text
                why = ("-m", "cuggino: back on the branch with the work")
                yield from git.must("update-ref", *why, ref, head, before)
                yield from git.must("symbolic-ref", *why, "HEAD", ref)
                is_there = True
        yield from emit(is_there)


def _below(prefix: str, paths: Iterable[str]) -> list[str]:
    return sorted(path.removeprefix(prefix) for path in paths if path.startswith(prefix))


_COPY = 'mkdir -- "$2" && { cp -pR -- "$1/." "$2" >/dev/null 2>&1; true; }'
_PUT_BACK = (
    'cd -- "$1" && xargs -0 rm -rf -- <"$2/removed" && tar -xmpf "$2/files.tar" && '
    'exec /bin/sh -c "$3"'
)


def _in(
    argv: Sequence[str | Path], cwd: Path, env: Mapping[str, str], view: Any = None
) -> Observable[bytes]:
    return process_lines(
        [os.fspath(word) for word in argv],
        cwd=cwd,
        env=dict(env) or None,
        merge_stderr=True,
        keep_ends=True,
        enclosure=view,
    )
