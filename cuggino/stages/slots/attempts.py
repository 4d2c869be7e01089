"""The work of attempts that have lost: kept until the slots are cleaned."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from reactivex import Observable

from cuggino.errors import ProcessError
from cuggino.operators import Flow, ask, emit, flow
from cuggino.stages.acts import act
from cuggino.stages.slots.folder import Slot
from cuggino.stages.slots.keeping import UNCOMMITTED, NotKept, keep, known_refs, leftovers
from cuggino.stages.slots.position import move_refs
from cuggino.stages.slots.record import read_record, write_record
from cuggino.stages.slots.refs import attempt_ref, candidate_ref, kept_refs
from cuggino.stages.slots.settings import reset_settings

_MOST = 10
"""The commits of an attempt that are named."""


class Attempted(NamedTuple):
    """What an attempt that has lost leaves."""

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
