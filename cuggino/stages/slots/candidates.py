"""Candidates: the commits that items offer for landing, in the user's repository."""

from __future__ import annotations

import os

from reactivex import Observable

from cuggino.errors import ProcessError
from cuggino.events import WatchCandidate, WatchWorkKept
from cuggino.operators import Flow, ask, emit, flow
from cuggino.stages.acts import act
from cuggino.stages.slots.copying import copy_lfs
from cuggino.stages.slots.folder import Slot
from cuggino.stages.slots.keeping import Leftover, keep, known_refs
from cuggino.stages.slots.position import contains
from cuggino.stages.slots.record import SlotRecord, read_record
from cuggino.stages.slots.refs import candidate_ref
from cuggino.stages.slots.settings import reset_settings
from cuggino.stages.slots.submodules import unknown_commits


def publish_candidate(
    slot: Slot, *, item: str, base: str, attempt: int, approved: bool = True
) -> Observable[WatchWorkKept | WatchCandidate]:
    """Store the current commit of the slot as the candidate of the item; emits `WatchCandidate`.

    ::

        [WatchWorkKept] WatchCandidate

    One that is not `approved` never lands. Only commits count; uncommitted files stay in the slot.
    The objects are fetched into the user's repository, those of LFS too, and the ref of an earlier
    candidate moves. An earlier one that this one does not contain is kept first. Can be killed at
    any time and called again.

    Errors: `ProcessError` from git, for a submodule with a commit that only the slot has, or for a
    repository that the work has made in the slot, whose files would be lost with it.
    """
    return flow(lambda: _publish(slot, item, base, attempt, approved))


def _publish(slot: Slot, item: str, base: str, attempt: int, approved: bool) -> Flow[None]:
    record = yield from slot_record(slot)
    yield from reset_settings(slot, record)
    commit = (yield from slot.git.must("rev-parse", "HEAD^{commit}")).text
    if foreign := (yield from unknown_commits(slot, base, commit)):
        raise ProcessError(
            "git",
            f"the work changes commits of the submodule {', '.join(foreign)}, which cannot land",
            hint="commit to the submodule itself first, then let the item use that commit",
        )
    if nested := (yield from _new_repositories(slot, record)):
        raise ProcessError(
            "git",
            "the work holds files that cannot land, as they are in a repository of their own: "
            f"{', '.join(nested)}",
            hint="remove the .git in it, or commit it elsewhere and add it as a submodule",
        )
    yield from copy_lfs(slot)
    known = yield from known_refs(slot.project_git)
    ref = candidate_ref(item)
    earlier = known.pop(ref, None)
    if earlier is not None and not (yield from contains(commit, earlier, slot.git)):
        left = [Leftover(earlier, "a candidate that another one replaces")]
        yield from emit(*(yield from keep(slot, record, known, left)))
    if earlier != commit:
        yield from slot.project_git.fetch(slot.root, f"+HEAD:{ref}")
    yield from emit(
        WatchCandidate(
            filename=item,
            slot=slot.number,
            commit=commit,
            base=base,
            attempt=attempt,
            approved=approved,
        )
    )


def slot_record(slot: Slot) -> Flow[SlotRecord]:
    """Return the record of a slot that has been prepared.

    Raises:
        ProcessError: it has not.
    """
    record = yield from ask(act(lambda: read_record(slot)))
    if record is None or not record.ready:
        raise ProcessError("git", f"{slot.root} is not prepared")
    return record


def _new_repositories(slot: Slot, record: SlotRecord) -> Flow[list[str]]:
    """Return the repositories in the slot that neither the project nor its setup put there."""
    others = yield from slot.git.must("ls-files", "--others", "--exclude-standard", "-z")
    found = [path for path in others.fields if path.endswith("/")]
    return [
        path.rstrip("/")
        for path in found
        if f"?? {path}" not in record.dirt
        and not (slot.project / os.path.relpath(slot.root / path, slot.folder) / ".git").exists()
    ]
