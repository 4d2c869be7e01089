"""The gate tree: cuggino's own work tree, where candidates are merged and checked."""

from __future__ import annotations

import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cuggino.domain import is_cache
from cuggino.files import storing
from cuggino.git import (
    LIMIT_S,
    STATUS_V2,
    UNMERGED,
    Git,
    Said,
    failed,
    make_commit,
    read_file,
    tracked_changes,
    unmerged_files,
)
from cuggino.operators import Flow, ask
from cuggino.stages.acts import act
from cuggino.stages.slots.copying import copy_included
from cuggino.stages.slots.folder import Slot
from cuggino.stages.slots.position import Place
from cuggino.stages.slots.record import SlotRecord, make_home, read_record, write_record
from cuggino.stages.slots.settings import forget_states, reset_settings
from cuggino.stages.slots.submodules import update_submodules

_OID = "# branch.oid "
HANDED = "refs/cuggino/landing"
"""The commit that was handed over to the project, until its own ref holds it."""
EPOCH = datetime.fromtimestamp(0, UTC)
"""Older than any lock."""
_IN_THE_WAY = "local changes to the following files would be overwritten"


class Merged(NamedTuple):
    """A commit in the gate tree."""

    commit: str
    tree: str


class NotMerged(NamedTuple):
    """The reason why a candidate cannot be merged."""

    output: str
    paths: tuple[str, ...] = ()
    """Files in conflict."""
    is_conflict: bool = True
    """False if a hook has refused the commit."""


class GateTree:
    """A repository in a separate slot, which shares only the project's objects.

    It has no remotes and no branches, so a check that pushes, stashes or configures git changes
    nothing in the project. It stays between landings, with all ignored files: the caches of the
    check. `take` repairs any state that a killed process has left.

    The project's hooks run at a merge, in the view of commands. Commits are signed outside of it.
    """

    def __init__(
        self,
        place: Place,
        slot: Slot,
        *,
        timeout: float = LIMIT_S,
    ) -> None:
        self.folder = slot.root
        self._slot = slot
        self._place = place
        self._git = Git(cwd=slot.root, views=slot.views, limit=timeout)

    def take(self, commit: str) -> Flow[Merged]:
        """Check out the commit; only ignored files are left of an earlier merge or check.

        Raises:
            ProcessError: git cannot check it out, for example on a full disk.
        """
        yield from self.make()
        checked_out = yield from self._checkout(commit)
        if checked_out.code:
            # A killed git, a check that broke the repository, commits that are gone: start over.
            yield from ask(act(lambda: self._clear(self.folder / ".git")))
            yield from self.make()
            checked_out = yield from self._checkout(commit)
        if checked_out.code:
            raise failed(("checkout",), checked_out.code, checked_out.words)
        yield from self._git.must("clean", "-ffdq")
        return (yield from self.head())

    def _checkout(self, commit: str) -> Flow[Said]:
        # Filters of the project (LFS) may run programs.
        words = ("checkout", "--quiet", "--force", "--detach", "--no-recurse-submodules", commit)
        return (yield from self._git.run(*words))

    def merge(self, commit: str, message: str, *, only: bool = False) -> Flow[Merged | NotMerged]:
        """Merge the commit into HEAD.

        With `only`, HEAD is fast-forwarded if the commit contains it.

        Raises:
            ProcessError: git fails for a reason other than a conflict or a hook.
        """
        words: tuple[str, ...] = (
            "--ff" if only else "--no-ff",
            "--no-edit",
            "--no-log",
            "--no-squash",
        )
        words = (*words, "--no-verify-signatures", "--cleanup=whitespace", "-m", message, commit)
        refused = yield from self._commit("merge", *words)
        if refused is not None:
            return refused
        return (yield from self.head())

    def pick(self, commit: str, base: str, message: str) -> Flow[Merged | NotMerged]:
        """Commit the difference between `base` and the commit on top of HEAD.

        Raises:
            ProcessError: git fails for a reason other than a conflict or a hook.
        """
        whole = ("commit-tree", f"{commit}^{{tree}}", "-p", base, "-m", message)
        made = (yield from self._git.must(*whole)).text
        words: tuple[str, ...] = ("cherry-pick", "--no-commit", made)
        picked = yield from self._merging(*words)
        if picked.code:
            if paths := (yield from self._unmerged()):
                return NotMerged(picked.text, paths)
            raise failed(words, picked.code, picked.words)
        words = ("--allow-empty", "--cleanup=whitespace", "-m", message)
        refused = yield from self._commit("commit", *words)
        if refused is not None:
            return refused
        return (yield from self.head())

    def head(self) -> Flow[Merged]:
        """Return the commit and the tree at HEAD."""
        words = ("rev-parse", "HEAD", "HEAD^{tree}")
        commit, tree = (yield from self._git.must(*words)).text.split()
        return Merged(commit, tree)

    def tree_of(self, commit: str) -> Flow[str]:
        """Return the tree of a commit that the gate tree has."""
        return (yield from self._git.must("rev-parse", f"{commit}^{{tree}}")).text

    def furnish(self) -> Flow[None]:
        """Add what git does not check out: submodules, and files that `.worktreeinclude` names.

        Raises:
            ProcessError: a submodule cannot be checked out.
        """
        yield from update_submodules(self._slot)
        yield from copy_included(self._slot)

    def changed(self, commit: str) -> Flow[tuple[str, ...]]:
        """Return the tracked files that differ from the commit; "HEAD" if another one is current.

        A file that differs as soon as it is checked out, such as one with line ends that
        `.gitattributes` rejects, does not count, and neither do committed caches.
        """
        head, differing = yield from self._differing()
        found = tuple(path for path in differing if not is_cache(path))
        if head != commit:
            return ("HEAD",)
        if not found:
            return ()
        before = yield from self._content(found)
        yield from self._git.must("reset", "--hard", "--quiet")
        _, usual = yield from self._differing()
        after = yield from self._content(tuple(path for path in found if path in usual))
        return tuple(path for path in found if before[path] != after.get(path))

    def _differing(self) -> Flow[tuple[str, tuple[str, ...]]]:
        """Return the current commit, and the tracked files that differ from it."""
        words = (*STATUS_V2, "--branch", "--ignore-submodules=untracked")
        fields = (yield from self._git.must(*words)).fields
        head = next(field for field in fields if field.startswith(_OID)).removeprefix(_OID)
        return head, tuple(change.path for change in tracked_changes(fields))

    def _content(self, paths: tuple[str, ...]) -> Flow[dict[str, tuple[str, bytes]]]:
        """Return mode and content of each file, both empty if there is none."""
        return (yield from ask(act(lambda: {path: self._version(path) for path in paths}))) or {}

    def _version(self, path: str) -> tuple[str, bytes]:
        place = self.folder / path
        try:
            return read_file(place, place.lstat().st_size)
        except OSError:
            return "", b""

    def hand_over(self) -> Flow[None]:
        """Copy the objects of HEAD into the project's repository.

        Raises:
            ProcessError: git cannot write them, for example on a full disk.
        """
        yield from self._place.git.fetch(self.folder, f"+HEAD:{HANDED}")

    # -- the parts

    def _commit(self, command: str, *words: str) -> Flow[NotMerged | None]:
        said = yield from make_commit(
            self._git, lambda more: self._merging(command, *more, *words, hooks=True)
        )
        if said.code == 0:
            return None
        if paths := (yield from self._unmerged()):
            return NotMerged(said.text, paths)
        if "unrelated histories" in said.text:
            return NotMerged(said.text)
        if said.code == 1 and "error: gpg" not in said.text:
            text = f"A hook of the repository refuses the commit.\n{said.text}"
            return NotMerged(text, is_conflict=False)
        raise failed((command,), said.code, said.words)

    def _merging(self, *args: str, hooks: bool = False) -> Flow[Said]:
        """Run a command that merges, over files that differ as soon as they are checked out."""
        for is_first in (True, False):
            said = yield from self._git.run(*args, merge_stderr=True, hooks=hooks)
            if said.code == 0 or _IN_THE_WAY not in said.text or not is_first:
                break
            for path in (yield from self._differing())[1]:
                (self.folder / path).unlink(missing_ok=True)
        if not is_first and said.code == 0:
            words = ("checkout-index", "--all", "--quiet")
            yield from self._git.must(*words)
        return said

    def _unmerged(self) -> Flow[tuple[str, ...]]:
        return tuple(unmerged_files((yield from self._git.must(*UNMERGED)).fields))

    def make(self) -> Flow[None]:
        """Create the repository; an existing one gets the settings of the project again.

        Raises:
            ConfigError: the folder is not a gate tree of this project.
            ProcessError, StorageError: it cannot be created.
        """
        own = self.folder / ".git"
        record = yield from ask(act(self._record))
        assert record is not None
        if not record.config or not (own / "HEAD").is_file():
            yield from ask(act(lambda: self._clear(own)))
            algorithm = self._place.layout.algorithm
            words = ("--object-format=sha256",) if algorithm == "sha256" else ()
            yield from self._git.must("init", "--quiet", "--template=", *words)
            record = yield from ask(act(lambda: self._share(own)))
            assert record is not None
        yield from reset_settings(self._slot, record)
        yield from ask(act(lambda: forget_states(own)))

    def _record(self) -> SlotRecord:
        """Return the record of the gate tree, and claim its folder."""
        folder = self.folder
        with suppress(OSError):
            folder.rmdir()  # an empty one has no owner
        record = read_record(self._slot)
        if record is None or record.project != str(self._slot.project):
            record = SlotRecord(project=str(self._slot.project), config="")
            make_home(folder.parent)
            write_record(self._slot, record)
        return record

    def _clear(self, own: Path) -> None:
        """Remove a repository that is not whole; other files stay, as they may be caches."""
        shutil.rmtree(own, ignore_errors=True)
        with storing("create", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)

    def _share(self, own: Path) -> SlotRecord:
        """Let git find the objects of the project; the record completes the repository."""
        with storing("write", own):
            for folder in ("objects/info", "info"):
                (own / folder).mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                shutil.copyfile(self._place.layout.common / "shallow", own / "shallow")
            config = (own / "config").read_text(encoding="utf-8", errors="surrogateescape")
        alternates = f"{self._place.layout.objects}\n"
        project = str(self._slot.project)
        record = SlotRecord(project=project, config=config, alternates=alternates)
        write_record(self._slot, record)
        return record
