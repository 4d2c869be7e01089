"""The work of attempts that have lost: kept until the slots are cleaned."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from reactivex import Observable

from cuggino.errors import ProcessError
from cuggino.git import Git
from cuggino.operators import Flow, ask, emit, flow
from cuggino.stages.acts import act
from cuggino.stages.slots.folder import Slot
from cuggino.stages.slots.keeping import (
    UNCOMMITTED,
    NotKept,
    is_uncommitted,
    keep,
    known_refs,
    leftovers,
    numbered,
)
from cuggino.stages.slots.position import contains, move_refs
from cuggino.stages.slots.record import read_record, write_record
from cuggino.stages.slots.refs import attempt_ref, candidate_ref, kept_ref, kept_refs
from cuggino.stages.slots.settings import reset_settings

_MOST = 10
"""The commits of an attempt that are named."""


class Attempted(NamedTuple):
    """The remains of an attempt that has lost."""

    ref: str = ""
    """The ref of its work; "" if it left none."""
    tried: tuple[str, ...] = ()
    """The subjects of its commits, the oldest first."""


def keep_attempt(
    slot: Slot, name: str, *, base: str, specs: str = ".specs"
) -> Observable[Attempted]:
    """Keep the work of an attempt, uncommitted files included, under `refs/cuggino/attempts/`.

    Its candidate and what was kept of it move there, too: none of it lands. Emits the ref of the
    latest. The files of the slot stay; its processes have ended. Can be called again.

    Errors: `ProcessError` from git in the user's repository.
    """
    return flow(lambda: _keep(slot, name, base, specs))


def keep_pushed(git: Git, name: str, pushed: str | None, *, base: str) -> Observable[Attempted]:
    """Keep the work of an attempt on another machine, as `keep_attempt`.

    `pushed` is a ref with the work as that machine has pushed it last (`WorkRef`), which goes; None
    if it has pushed nothing.

    Errors: `ProcessError` from git.
    """
    return flow(lambda: _keep_pushed(git, name, pushed, base))


def _keep_pushed(git: Git, name: str, pushed: str | None, base: str) -> Flow[None]:
    if pushed is not None:
        work = (yield from git.must("rev-parse", pushed)).text
        if (yield from is_uncommitted(git, work)):  # each push is such a commit of its own
            trees = yield from git.must("rev-parse", f"{work}^{{tree}}", f"{work}^1^{{tree}}")
            if len(set(trees.text.split())) == 1:
                work = (yield from git.must("rev-parse", f"{work}^1")).text
        changes = [f"delete {pushed}"]
        known = yield from known_refs(git)
        if work not in known.values() and not (yield from contains(base, work, git)):
            number = max(numbered(known, name), default=0) + 1
            changes.append(f"create {kept_ref(name, number)} {work}")
        stdin = "".join(f"{change}\n" for change in changes).encode()
        yield from git.must("update-ref", "--stdin", stdin=stdin)
    yield from _moved(git, name, base)


def _keep(slot: Slot, name: str, base: str, specs: str) -> Flow[None]:
    git = slot.project_git
    record = yield from ask(act(lambda: read_record(slot)))
    if record is not None and record.ready and record.item == name:
        try:
            yield from reset_settings(slot, record)
            known = yield from known_refs(git)
            _, found = yield from leftovers(slot, record, known, specs)
            yield from keep(slot, record, known, found)
            write_record(slot, replace(record, ready=False))  # it holds no work any more
        except (ProcessError, NotKept):
            pass  # the slot keeps it, until it is prepared for something else
    yield from _moved(git, name, base)


def _moved(git: Git, name: str, base: str) -> Flow[None]:
    """Move the candidate of an attempt and its kept work; emit what was tried."""
    known = yield from known_refs(git)
    mine = (candidate_ref(name), f"{kept_refs(name)}/")
    free = sum(ref.startswith(attempt_ref(name, 0)[:-1]) for ref in known) + 1
    left = [ref for ref in known if ref == mine[0] or ref.startswith(mine[1])]
    moved = []
    for number, ref in enumerate(left, start=free):
        moved += [f"create {attempt_ref(name, number)} {known[ref]}", f"delete {ref} {known[ref]}"]
    if moved:
        yield from move_refs(*moved, git=git, why="cuggino: an attempt has lost")
    last = attempt_ref(name, free + len(left) - 1) if left else ""
    tried: tuple[str, ...] = ()
    if last:
        said = yield from git.run(
            *("log", "--reverse", f"--max-count={_MOST}", "--format=%s"),
            *("--invert-grep", f"--grep={UNCOMMITTED}", f"{base}..{last}", "--"),
        )
        tried = tuple(said.text.splitlines()) if said.code == 0 else ()
    yield from emit(Attempted(last, tried))
