"""The slots of a project and the work that they hold: shown, and removed where that is safe."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from reactivex import Observable

from cuggino.errors import ProcessError, ProcessFailed, StorageError
from cuggino.files import storing
from cuggino.git import Git, slot_home
from cuggino.operators import Flow, ask, emit, flow, pause
from cuggino.processes import process_output
from cuggino.sandbox import Views
from cuggino.stages.slots.folder import HANDS, Slot, is_gate_tree, slot_in
from cuggino.stages.slots.keeping import known_refs, left_in
from cuggino.stages.slots.record import SlotRecord, record_of, record_path
from cuggino.stages.slots.refs import ATTEMPTS, CANDIDATES, KEPT, TRUNK, base_ref, item_of
from cuggino.stages.slots.settings import reset_settings

SlotFolderKind = Literal["slot", "hand", "gate", "aside", "remains"]

_KINDS: Mapping[str, Literal["candidate", "kept", "attempt"]] = MappingProxyType(
    {CANDIDATES: "candidate", KEPT: "kept", ATTEMPTS: "attempt"}
)
_ASIDE, _REMAINS = "kept-", (".new", ".gone")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotFolder:
    """A folder in the slot folder of a project."""

    kind: SlotFolderKind
    """`slot`; `hand`: a clone of the first slot, for a task of a run; `gate`: a gate tree; `aside`:
    a slot that was set aside with work in it; `remains`: leftovers of a killed process."""
    folder: Path
    number: int = 0
    """Of a slot or a hand, from 1."""
    item: str = ""
    """The item that it was used for last, or is used for now."""
    base: str = ""
    size: int = 0
    """Bytes on the disk; what slots share with the project does not count."""
    busy: bool = False
    """A run holds the project, so that agents may work here."""
    unlanded: str = ""
    """The work in it that no ref holds; empty if there is none, or if `busy`."""

    @property
    def is_removable(self) -> bool:
        """Return whether the folder can be removed without losing anything but caches."""
        return not self.busy and not self.unlanded and self.kind != "aside"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRef:
    """Work on an item under a ref in the user's repository."""

    kind: Literal["candidate", "kept", "attempt"]
    """`attempt`: that of an attempt which has lost, as another one landed."""
    ref: str
    commit: str
    item: str
    subject: str
    landed: bool
    """True if a branch or the trunk holds the commit, so that the ref is not needed any more."""

    @property
    def is_removable(self) -> bool:
        """Return whether cleaning removes it."""
        return self.landed or self.kind == "attempt"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotListing:
    """The folders and refs of a project's slots."""

    folder: Path
    """The folder of all slots."""
    trunk: str | None
    """The latest commit that has landed."""
    folders: tuple[SlotFolder, ...] = ()
    refs: tuple[SlotRef, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsCleaned:
    """The folders and refs of slots that were removed, or would be."""

    folders: tuple[SlotFolder, ...]
    refs: tuple[SlotRef, ...]
    left: SlotListing
    """The folders and refs that remain."""


def list_slots(
    project: Path,
    slot_folder: str | None = None,
    *,
    specs: str = ".specs",
    busy: bool = False,
    views: Views | None = None,
) -> Observable[SlotListing]:
    """Emit the slots of the project, in use or not, and the refs with work.

    With `busy` a run holds the project: the content of the slots is not read.

    Errors: `ConfigError` for a slot folder that cannot be used, `ProcessError` from git.
    """
    git = Git(cwd=project.resolve(), views=views)
    return flow(lambda: _emitted(_listing(git, slot_folder, specs, busy)))


def clean_slots(
    project: Path,
    slot_folder: str | None = None,
    *,
    specs: str = ".specs",
    dry_run: bool = False,
    views: Views | None = None,
) -> Observable[SlotsCleaned]:
    """Remove the folders and refs that hold no unlanded work; emits what was removed.

    The work of attempts that have lost is removed, too. The caller holds the project, so that no
    run works in it. With `dry_run` nothing is removed.

    Errors: as `list_slots`, and `StorageError` for a folder that cannot be removed.
    """
    git = Git(cwd=project.resolve(), views=views)
    return flow(lambda: _cleaned(git, slot_folder, specs, dry_run))


def _emitted(listing: Flow[SlotListing]) -> Flow[None]:
    yield from emit((yield from listing))


def _listing(git: Git, slot_folder: str | None, specs: str, busy: bool) -> Flow[SlotListing]:
    project = git.cwd
    home = slot_home(project, slot_folder)
    try:
        known = yield from known_refs(git)
    except ProcessFailed:  # no repository, so no slots
        known = {}
    folders = yield from _folders(home, git, known, specs, busy)
    hands = yield from _hands(home, git, specs, busy)
    if any(hand.unlanded for hand in hands):  # its objects are in their clone
        folders = [
            one if one.number != 1 else replace(one, unlanded=one.unlanded or "work of hands")
            for one in folders
        ]
    refs = yield from _refs(git, known)
    return SlotListing(
        folder=home, trunk=known.get(TRUNK), folders=(*folders, *hands), refs=tuple(refs)
    )


def _hands(home: Path, git: Git, specs: str, busy: bool) -> Flow[list[SlotFolder]]:
    """Describe the folders of hands, which are slots of the clone of their run."""
    clone = slot_in(home, 1, git.cwd, views=git.views)
    if not (home / HANDS).is_dir():
        return []
    known: Mapping[str, str] = {}
    if not busy and clone.root.is_dir():
        with suppress(ProcessFailed):  # what git cannot read is not removed
            known = yield from known_refs(clone.git)
    found = yield from _folders(home / HANDS, replace(git, cwd=clone.folder), known, specs, busy)
    return [replace(one, kind="hand") if one.kind == "slot" else one for one in found]


def _folders(
    home: Path, git: Git, known: Mapping[str, str], specs: str, busy: bool
) -> Flow[list[SlotFolder]]:
    folders = []
    for path in _entries(home):
        entry = yield from _folder(path, git, known, specs, busy)
        if entry is not None:
            folders.append(entry)
    return folders


def _folder(
    path: Path, git: Git, known: Mapping[str, str], specs: str, busy: bool
) -> Flow[SlotFolder | None]:
    """Describe a folder; None for one that is not a slot of this project."""
    name = path.name
    if name.endswith(_REMAINS):
        size = yield from _size(path)
        return SlotFolder(kind="remains", folder=path, size=size, busy=busy)
    record = record_of(path)
    if record is None:
        return None
    owner = Path(record.project)
    if is_gate_tree(path) and (owner == git.cwd or owner.is_relative_to(path.parent)):
        size = yield from _size(path)
        return SlotFolder(kind="gate", folder=path, size=size, busy=busy)
    if owner != git.cwd:
        return None
    size = yield from _size(path)
    if name.startswith(_ASIDE):
        why = "it was set aside with its work"
        return SlotFolder(
            kind="aside", folder=path, item=record.item, base=record.base, size=size, unlanded=why
        )
    number = name.removeprefix("slot-")
    if not number.isdecimal():
        return None
    slot = slot_in(path.parent, int(number), git.cwd, views=git.views)
    unlanded = "" if busy else (yield from _unlanded(slot, record, known, specs))
    return SlotFolder(
        kind="slot",
        folder=path,
        number=slot.number,
        item=record.item,
        base=record.base,
        size=size,
        busy=busy,
        unlanded=unlanded,
    )


def _unlanded(slot: Slot, record: SlotRecord, known: Mapping[str, str], specs: str) -> Flow[str]:
    if not record.ready:  # what it held before was kept
        return ""
    try:
        yield from reset_settings(slot, record)
        return ", ".join((yield from left_in(slot, record, known, specs)))
    except (ProcessError, StorageError) as error:
        return f"git cannot read it: {error.message}"


def _refs(git: Git, known: Mapping[str, str]) -> Flow[list[SlotRef]]:
    if not any(name.startswith(tuple(f"{one}/" for one in _KINDS)) for name in known):
        return []
    safe = [commit for name, commit in known.items() if name == TRUNK or name.startswith("refs/h")]
    words = ("for-each-ref", "--format=%(refname)%00%(objectname)%00%(contents:subject)")
    merged = [f"--merged={commit}" for commit in dict.fromkeys(safe)]
    landed = set()
    if merged:
        command = ("for-each-ref", "--format=%(refname)", *merged, *_KINDS)
        landed = set((yield from git.must(*command)).text.splitlines())
    listed = (yield from git.must(*words, *_KINDS)).text
    found = []
    for line in listed.splitlines():
        name, commit, subject = line.split("\0")
        found.append(
            SlotRef(
                kind=next(kind for one, kind in _KINDS.items() if name.startswith(f"{one}/")),
                ref=name,
                commit=commit,
                item=item_of(name),
                subject=subject,
                landed=name in landed,
            )
        )
    return found


def _cleaned(git: Git, slot_folder: str | None, specs: str, dry_run: bool) -> Flow[None]:
    before = yield from _listing(git, slot_folder, specs, busy=False)
    folders = tuple(folder for folder in before.folders if folder.is_removable)
    refs = tuple(ref for ref in before.refs if ref.is_removable)
    if not dry_run:
        # hands before the clone that they depend on
        for folder in sorted(folders, key=lambda one: one.folder.parent == before.folder):
            yield from _remove(folder)
        gone = [ref.ref for ref in refs]
        gone += [base_ref(folder.number) for folder in folders if folder.kind == "slot"]
        stdin = "".join(f"option no-deref\ndelete {name}\n" for name in gone).encode()
        if gone:
            yield from git.must("update-ref", "--stdin", stdin=stdin)
        with suppress(OSError):  # not empty
            (before.folder / HANDS).rmdir()
        with suppress(OSError):
            before.folder.rmdir()
    left = SlotListing(
        folder=before.folder,
        trunk=before.trunk,
        folders=tuple(folder for folder in before.folders if folder not in folders),
        refs=tuple(ref for ref in before.refs if ref not in refs),
    )
    yield from emit(SlotsCleaned(folders=folders, refs=refs, left=left))


def _remove(entry: SlotFolder) -> Flow[None]:
    """Rename a folder, then remove it, so that a killed removal leaves no broken slot."""
    gone = entry.folder
    with storing("remove", entry.folder):
        if entry.kind != "remains":
            gone = entry.folder.with_name(f"{entry.folder.name}.gone")
            entry.folder.rename(gone)
            record_path(entry.folder).unlink(missing_ok=True)
    try:
        yield from _run("rm", "-rf", "--", gone)
    except ProcessFailed:  # folders that are read-only, as in caches of Go
        yield from _run("chmod", "-R", "u+w", "--", gone)
        try:
            yield from _run("rm", "-rf", "--", gone)
        except ProcessFailed as error:
            raise StorageError("remove", f"{gone}: {error.message}") from error


def _run(*words: str | Path) -> Flow[None]:
    argv = [os.fspath(word) for word in words]
    yield from ask(process_output(argv, cwd="/", env=dict(os.environ), sweep=False))


def _entries(home: Path) -> Iterator[Path]:
    with suppress(OSError):
        paths = [path for path in home.iterdir() if path.is_dir() and not path.is_symlink()]
        yield from sorted(paths, key=lambda path: (len(path.name), path.name))


def _size(folder: Path) -> Flow[int]:
    total = 0
    folders = [folder]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
        yield from pause(0)
    return total
