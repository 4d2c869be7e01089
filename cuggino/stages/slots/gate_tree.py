"""The gate tree: cuggino's own work tree, where candidates are merged and checked."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cuggino.files import storing
from cuggino.operators import Flow, ask
from cuggino.sandbox import Enclosure
from cuggino.stages.acts import act
from cuggino.stages.enclosing import Enclose, no_enclosure
from cuggino.stages.slots.copying import copy_included
from cuggino.stages.slots.folder import Slot
from cuggino.stages.slots.git import HOOKS, PLAIN, Said, failure, must, run_git
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
_SIGNS = ("config", "--type=bool", "--get", "commit.gpgSign")
_UNMERGED = ("diff", "--name-only", "--diff-filter=U", "-z")


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

    The project's hooks run at a merge, in the enclosure that `enclose` makes. Commits are signed
    outside of it.
    """

    def __init__(
        self,
        place: Place,
        slot: Slot,
        *,
        enclose: Enclose = no_enclosure,
        timeout: float = 600.0,
    ) -> None:
        self.folder = slot.root
        self._slot = slot
        self._top = place.top
        self._common = place.common
        self._enclose = enclose
        self._timeout = timeout

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
            raise failure(checked_out, ("checkout",))
        yield from must("clean", "-ffdq", cwd=self.folder, timeout=self._timeout)
        return (yield from self.head())

    def _checkout(self, commit: str) -> Flow[Said]:
        # Filters of the project (LFS) may run programs.
        words = ("checkout", "--quiet", "--force", "--detach", "--no-recurse-submodules", commit)
        return (
            yield from run_git(*PLAIN, *words, cwd=self.folder, sweep=True, timeout=self._timeout)
        )

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
        made = (yield from must(*whole, cwd=self.folder)).text
        words: tuple[str, ...] = ("cherry-pick", "--no-commit", made)
        picked = yield from self._merging(*PLAIN, *words)
        if picked.code:
            if paths := (yield from self._unmerged()):
                return NotMerged(picked.text, paths)
            raise failure(picked, words)
        words = ("--allow-empty", "--cleanup=whitespace", "-m", message)
        refused = yield from self._commit("commit", *words)
        if refused is not None:
            return refused
        return (yield from self.head())

    def head(self) -> Flow[Merged]:
        """Return the commit and the tree at HEAD."""
        words = ("rev-parse", "HEAD", "HEAD^{tree}")
        commit, tree = (yield from must(*words, cwd=self.folder)).text.split()
        return Merged(commit, tree)

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
        `.gitattributes` rejects, does not count.
        """
        head, found = yield from self._differing()
        if head != commit:
            return ("HEAD",)
        if not found:
            return ()
        before = yield from self._content(found)
        yield from must("reset", "--hard", "--quiet", cwd=self.folder, sweep=True)
        _, usual = yield from self._differing()
        after = yield from self._content(tuple(path for path in found if path in usual))
        return tuple(path for path in found if before[path] != after.get(path, b"reset"))

    def _differing(self) -> Flow[tuple[str, tuple[str, ...]]]:
        """Return the current commit, and the tracked files that differ from it."""
        words = ("--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=no")
        said = yield from must(
            "status",
            *words,
            "--ignore-submodules=untracked",
            cwd=self.folder,
            timeout=self._timeout,
        )
        head = next(line for line in said.fields if line.startswith(_OID)).removeprefix(_OID)
        changed = [line for line in said.fields if not line.startswith("# ")]
        # Fields before the path: 8 of a changed file, 10 of an unmerged one.
        return head, tuple(line.split(" ", 8 if line[0] == "1" else 10)[-1] for line in changed)

    def _content(self, paths: tuple[str, ...]) -> Flow[dict[str, bytes]]:
        return (yield from ask(act(lambda: {path: self._bytes(path) for path in paths}))) or {}

    def _bytes(self, path: str) -> bytes:
        place = self.folder / path
        try:
            if place.is_symlink():
                return b"link " + os.fsencode(place.readlink())
            return b"%d " % (place.stat().st_mode & 0o111) + place.read_bytes()
        except OSError:
            return b"missing"

    def hand_over(self, cwd: Path) -> Flow[None]:
        """Copy the objects of HEAD into the project's repository.

        Raises:
            ProcessError: git cannot write them, for example on a full disk.
        """
        words: tuple[str, ...] = (
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-auto-maintenance",
            "--no-write-fetch-head",
        )
        words = (*words, "--no-recurse-submodules", str(self.folder), f"+HEAD:{HANDED}")
        yield from must(*words, cwd=cwd, timeout=self._timeout)

    # -- the parts

    def _commit(self, command: str, *words: str) -> Flow[NotMerged | None]:
        enclosure = self._enclose(())
        signs = False
        if enclosure is not None:
            signs = (yield from run_git(*_SIGNS, cwd=self.folder)).text == "true"
        unsigned = ("--no-gpg-sign",) if signs else ()
        before = (yield from self.head()).commit if signs else ""
        said = yield from self._merging(*HOOKS, command, *unsigned, *words, enclosure=enclosure)
        if said.code == 0:
            if signs and (yield from self.head()).commit != before:
                yield from self._sign()
            return None
        if paths := (yield from self._unmerged()):
            return NotMerged(said.text, paths)
        if "unrelated histories" in said.text:
            return NotMerged(said.text)
        if said.code == 1 and "error: gpg" not in said.text:
            text = f"A hook of the repository refuses the commit.\n{said.text}"
            return NotMerged(text, is_conflict=False)
        raise failure(said, (command,))

    def _merging(self, *args: str, enclosure: Enclosure | None = None) -> Flow[Said]:
        """Run a command that merges, over files that differ as soon as they are checked out."""
        for is_first in (True, False):
            said = yield from run_git(
                *args,
                cwd=self.folder,
                merge_stderr=True,
                sweep=True,
                enclosure=enclosure,
                timeout=self._timeout,
            )
            if said.code == 0 or _IN_THE_WAY not in said.text or not is_first:
                break
            for path in (yield from self._differing())[1]:
                (self.folder / path).unlink(missing_ok=True)
        if not is_first and said.code == 0:
            words = ("checkout-index", "--all", "--quiet")
            yield from must(*words, cwd=self.folder, sweep=True, timeout=self._timeout)
        return said

    def _unmerged(self) -> Flow[tuple[str, ...]]:
        return tuple((yield from must(*_UNMERGED, cwd=self.folder)).fields)

    def _sign(self) -> Flow[None]:
        """Replace the current commit, whose hooks have run, with a signed one."""
        text = (yield from must("log", "-1", "--format=%B", cwd=self.folder)).output.rstrip(b"\n")
        listed = yield from must("rev-list", "--parents", "-n", "1", "HEAD", cwd=self.folder)
        parents = [word for parent in listed.text.split()[1:] for word in ("-p", parent)]
        words = ("commit-tree", "-S", "HEAD^{tree}", *parents, "-F", "-")
        said = yield from must(
            *words,
            cwd=self.folder,
            stdin=text + b"\n",
            sweep=True,
            timeout=self._timeout,
        )
        yield from must("update-ref", "--no-deref", "HEAD", said.text, cwd=self.folder)

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
            format_ = yield from run_git("rev-parse", "--show-object-format", cwd=self._top)
            words = ("--object-format=sha256",) if format_.text == "sha256" else ()
            yield from must("init", "--quiet", "--template=", *words, cwd=self.folder)
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
                shutil.copyfile(self._common / "shallow", own / "shallow")
            config = (own / "config").read_text(encoding="utf-8", errors="surrogateescape")
        alternates = os.fsdecode(self._common / "objects") + "\n"
        project = str(self._slot.project)
        record = SlotRecord(project=project, config=config, alternates=alternates)
        write_record(self._slot, record)
        return record
