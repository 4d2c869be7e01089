"""`durable`: a flow of one's own whose outcomes are kept in a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from reactivex import Observable

from cuggino.events import RunContinued, RunStarted
from cuggino.files import storing
from cuggino.loops.frame.journal import RunRecorder
from cuggino.operators import Flow, ask, flow, forward, on_loop
from cuggino.operators.mistakes import require_story
from cuggino.stages import clock
from cuggino.storage import Journal, read_journal

_FIRST = b'{"v":1,"seq":1,"at":"'
"""The beginning of each journal."""


def durable(make: Callable[[], Flow[Any]], journal: str | os.PathLike[str]) -> Observable[Any]:
    """Run a flow that a later process can resume: what it does is recorded in the journal file.

    ::

        killed in b:        -x-y-           recorded: x, the outcome of its stage a, y
        run again:          -y-z|           a returns its outcome, b runs again

    Each subscription continues where the one before it was killed or disposed, and emits nothing
    once the flow has ended. The rules of `flow` with a recorder apply: the generator is a pure
    function of the outcomes of its stages. `waiting` fits in: it waits on until the same deadline.
    The file ends with `.jsonl`; one process may use it at a time.

    Errors: `StorageError` if it cannot be read or written, `RunNotResumable` if the stages are not
    those of the file.
    """
    require_story(make)
    path = Path(journal)

    def story() -> Flow[None]:
        now = yield from ask(clock())
        assert now is not None
        recorded = read_journal(path) if _has_begun(path) else None
        with closing(_opened(path, now)) as opened:
            yield from forward(flow(make, recorder=RunRecorder(opened, recorded)))

    return on_loop(flow(story))


def _has_begun(journal: Path) -> bool:
    """Return whether there is an entry; remove what a process killed in its first write has left.

    Any other file without an entry stays, and is an error of `read_journal`.
    """
    if not journal.exists():
        return False
    with storing("read journal", journal):
        with journal.open("rb") as file:
            first = file.readline()
        if first.endswith(b"\n") or not (first.startswith(_FIRST) or _FIRST.startswith(first)):
            return True
        journal.unlink()
        return False


def _opened(journal: Path, now: datetime) -> Journal:
    if not journal.exists():
        started = RunStarted(run_id=journal.stem, kind="run", command="a Python program")
        return Journal.create(journal.parent, started, at=now)
    opened = Journal.open(journal)
    opened.append(RunContinued(), at=now)
    return opened
