"""Preparing a slot for an item: a clone with the base, the settings and the specifications."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from operator import itemgetter

from reactivex import Observable

from cuggino.errors import ProcessError, ProcessFailed
from cuggino.events import WatchSlotPrepared, WatchWorkKept
from cuggino.files import storing
from cuggino.git import changed_files, layout_of
from cuggino.operators import Flow, ask, emit, flow
from cuggino.sandbox import top_of
from cuggino.stages.acts import act
from cuggino.stages.slots.copying import copy_included, copy_specs
from cuggino.stages.slots.folder import Slot, slot_in
from cuggino.stages.slots.keeping import (
    Leftover,
    NotKept,
    changes,
    is_uncommitted,
    keep,
    known_refs,
    leftovers,
    numbered,
    set_aside,
)
from cuggino.stages.slots.position import contains
from cuggino.stages.slots.record import (
    SlotRecord,
    make_home,
    read_record,
    record_of,
    record_path,
    write_record,
)
from cuggino.stages.slots.refs import base_ref, candidate_ref
from cuggino.stages.slots.settings import clone_settings, forget_states, reset_settings
from cuggino.stages.slots.submodules import update_submodules

_BASE, _WORK = "refs/cuggino/base", "refs/cuggino/work"
"""The base of the work, in the slot, and unfinished work."""


def prepare_slot(
    slot: Slot, *, base: str, item: str, specs: str = ".specs", resume: bool = False
) -> Observable[WatchWorkKept | WatchSlotPrepared]:
    """Give the slot the commit `base`, for work on the item; the last event is `WatchSlotPrepared`.

    ::

        [WatchWorkKept ...] WatchSlotPrepared

    The slot is made if it is missing: a clone that shares the objects of the project, without a
    remote. Ignored files, such as caches, stay from one item to the next; everything else is that
    of `base`. Specifications, `.worktreeinclude` files, hooks and settings are those of the project
    now. Work of an earlier item that no ref holds is kept under `refs/cuggino/kept/` first; a slot
    that git cannot read, or whose work no commit can hold, is moved aside.

    With `resume` the slot gets the item's own unfinished work, uncommitted files included: as this
    or another slot holds it, else as it was kept, else the item's candidate; `base` only if there
    is none. The base of the event is then that of the work.

    Can be killed at any time and called again.

    Errors: `ConfigError` if a folder is in the way, `ProcessError` from git, `StorageError`.
    """
    return flow(lambda: _Preparing(slot, base, item, specs).run(resume))


def _others_with(slot: Slot, item: str) -> list[tuple[Slot, SlotRecord]]:
    """Return the other slots with work on the item, also those beyond the number in use.

    The one that was prepared last is the first.
    """
    found = []
    for path in slot.root.parent.glob("slot-*"):
        number, record = path.name.removeprefix("slot-"), record_of(path)
        is_other = path.is_dir() and number.isdecimal() and path != slot.root
        if is_other and record is not None and record.ready and record.item == item:
            other = slot_in(slot.root.parent, int(number), slot.project)
            found.append((record_path(path).stat().st_mtime_ns, other, record))
    return [(other, record) for _, other, record in sorted(found, key=itemgetter(0), reverse=True)]


class _Preparing:
    """One preparation of a slot."""

    def __init__(self, slot: Slot, base: str, item: str, specs: str) -> None:
        self._slot = slot
        self._base = base
        self._item = item
        self._specs = specs

    def run(self, resume: bool) -> Flow[None]:
        slot = self._slot
        record = yield from self._usable()
        if record is not None:
            yield from reset_settings(slot, record)
        if record is not None and resume and record.ready and record.item == self._item:
            yield from self._fill()
            yield from self._emit_prepared(record.base)
            return
        known = yield from known_refs(slot.project_git)
        if record is not None and record.ready:
            kept = yield from self._kept(slot, record, known)
            record = None if kept is None else record
        work = None
        if resume:
            work = yield from self._work(known)
        yield from self._protect()
        if record is None:
            record = yield from self._cloned()
        base = yield from self._checked_out(record, work)
        yield from self._emit_prepared(base)

    def _usable(self) -> Flow[SlotRecord | None]:
        """Return the record of the slot; None if the slot has to be created."""
        slot = self._slot
        record = yield from ask(act(lambda: read_record(slot)))
        if record is None:
            return None
        if not (slot.root / ".git").is_dir() or (slot.root / ".git").is_symlink():
            yield from emit(set_aside(slot, record, "its repository is gone"))
            return None
        if record.project != str(slot.project):  # it has moved
            layout = yield from layout_of(slot.project_git)
            objects = f"{layout.objects}\n" if record.alternates else ""
            record = replace(record, project=str(slot.project), alternates=objects)
            write_record(slot, record)
        return record

    def _kept(self, slot: Slot, record: SlotRecord, known: dict[str, str]) -> Flow[str | None]:
        """Keep the work in a slot, and return its commit.

        None if the slot is moved aside, or if it is another one, and is being prepared for another
        item by now: then its work was kept before.
        """
        problem, work, found = "", "", list[Leftover]()
        try:
            work, found = yield from leftovers(slot, record, known, self._specs)
        except (ProcessFailed, NotKept) as error:
            problem = str(error)
        if slot.root != self._slot.root and record_of(slot.root) != record:
            return None
        if problem:
            yield from emit(set_aside(slot, record, problem))
            return None
        events = yield from keep(slot, record, known, found)
        yield from emit(*events)
        if events:
            known.update((yield from known_refs(slot.project_git)))
        return work

    def _work(self, known: dict[str, str]) -> Flow[str | None]:
        """Return the commit with the unfinished work on the item, if there is any."""
        for other, record in _others_with(self._slot, self._item):
            yield from reset_settings(other, record)
            work = yield from self._kept(other, record, known)
            if work is not None:
                if record_of(other.root) == record:
                    write_record(other, replace(record, ready=False))
                return work
        known = yield from known_refs(self._slot.project_git)  # kept meanwhile, from another slot
        kept = numbered(known, self._item)
        latest = known[kept[max(kept)]] if kept else None
        candidate = known.get(candidate_ref(self._item))
        if latest is None or candidate is None:
            return latest or candidate
        is_newer = yield from contains(latest, candidate, self._slot.project_git)
        return latest if is_newer else candidate

    def _protect(self) -> Flow[None]:
        """Protect the base from git's garbage collection, even if no branch keeps it."""
        words = ("update-ref", base_ref(self._slot.number), self._base)
        yield from self._slot.project_git.must(*words)

    def _cloned(self) -> Flow[SlotRecord]:
        """Make the clone beside its place, so that a killed one is never taken for a slot."""
        slot = self._slot
        new = slot.root.with_name(f"{slot.root.name}.new")
        yield from ask(act(lambda: make_home(slot.root.parent)))
        try:
            shutil.rmtree(new, ignore_errors=True)
            words = ("--shared", "--no-checkout", "--template=", "--origin=origin", "--quiet")
            source = os.fspath(top_of(slot.project))
            yield from slot.git.at(slot.root.parent).must("clone", *words, "--", source, str(new))
            with storing("read", new):
                shared = new / ".git" / "objects" / "info" / "alternates"
                # A shallow repository cannot be shared.
                alternates = shared.read_text(encoding="utf-8") if shared.is_file() else ""
            config = yield from clone_settings(slot.git.at(new))
        except ProcessError as error:
            shutil.rmtree(new, ignore_errors=True)
            error.message = f"slot {slot.number} cannot be made: {error.message}"
            if error.hint is None:
                error.hint = (
                    f"check the free space of {slot.root.parent}, or choose another folder for "
                    'slots: "slotFolder", or --slot-folder'
                )
            raise
        record = SlotRecord(project=str(slot.project), config=config, alternates=alternates)
        with storing("move", new):
            write_record(slot, record)
            new.rename(slot.root)
        yield from reset_settings(slot, record)
        return record

    def _checked_out(self, record: SlotRecord, work: str | None) -> Flow[str]:
        """Make the slot the base, or the unfinished work; return the base."""
        slot = self._slot
        begun = replace(record, item=self._item, base=self._base, ready=False, dirt=())
        write_record(slot, begun)
        with storing("clean", slot.root):
            forget_states(slot.root / ".git")
        names = ["+refs/tags/*:refs/tags/*", f"+{base_ref(slot.number)}:{_BASE}"]
        names += [f"+{work}:{_WORK}"] * (work is not None)
        yield from slot.git.fetch(top_of(slot.project), *names, prune=True)
        yield from self._checkout(_BASE if work is None else _WORK)
        found = changed_files((yield from changes(slot, self._specs)))
        remaining = [entry.path for entry in found if entry.is_untracked]
        if remaining:
            yield from emit(set_aside(slot, begun, f"{remaining[0]} cannot be removed"))
            record = yield from self._cloned()
            return (yield from self._checked_out(record, work))
        yield from update_submodules(slot)
        dirt = yield from changes(slot, self._specs)
        base = self._base
        if work is not None:
            base = yield from self._restored()
        yield from self._fill()
        write_record(slot, replace(begun, base=base, ready=True, dirt=dirt))
        return base

    def _checkout(self, commit: str) -> Flow[None]:
        """Check out a commit in place of everything but ignored files, and forget all branches."""
        git, root = self._slot.git, self._slot.root
        words = ("checkout", "--quiet", "--force", "--detach", commit)
        try:
            yield from git.must(*words)
        except ProcessFailed:
            with storing("clean", root):  # an index that git cannot read
                (root / ".git" / "index").unlink(missing_ok=True)
            yield from git.must(*words)
        yield from git.must("clean", "-d", "--force", "--quiet")
        gone = ("refs/heads", "refs/remotes", "refs/stash", "refs/cuggino/leaving")
        listing = ("for-each-ref", "--format=option no-deref%0adelete %(refname)", *gone)
        listed = (yield from git.must(*listing)).text
        if listed:
            stdin = f"{listed}\n".encode("utf-8", "surrogateescape")
            yield from git.must("update-ref", "--stdin", stdin=stdin)

    def _restored(self) -> Flow[str]:
        """Turn the commit of uncommitted files into such files again; return the work's base."""
        git = self._slot.git
        if (yield from is_uncommitted(git, "HEAD")):
            yield from git.must("reset", "--quiet", "--mixed", "HEAD^1")
        said = yield from git.run("merge-base", "HEAD", self._base)
        return self._base if said.code else said.text

    def _fill(self) -> Flow[None]:
        yield from copy_specs(self._slot, self._specs)
        yield from copy_included(self._slot)

    def _emit_prepared(self, base: str) -> Flow[None]:
        slot = self._slot
        yield from emit(
            WatchSlotPrepared(
                filename=self._item, slot=slot.number, folder=str(slot.folder), base=base
            )
        )
