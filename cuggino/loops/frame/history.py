"""The repository around a run: stale locks, uncommitted changes, and a rewritten history."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from cuggino.config import CommitSettings
from cuggino.errors import ConfigError, ProcessError
from cuggino.events import DirtyFilesKept, HistoryRewritten
from cuggino.loops.frame.run import Run
from cuggino.operators import Flow, ask, emit, flow
from cuggino.stages import KnowsAncestors, LeavesDirty, Recovers, Repository

_SHOWN = 3


def unlocked(run: Run) -> Flow[None]:
    """Free the repository of a resumed run from the locks of a git that was killed with it."""
    repository = run.services.repository
    if run.resumed is not None and isinstance(repository, Recovers):
        with suppress(ProcessError):  # the commit will report it
            yield from ask(repository.recover(run.resumed.first.at))


def dirty_files(
    repository: Repository, settings: CommitSettings, *, exclude: tuple[Path, ...] = ()
) -> Flow[Mapping[str, str]]:
    """Return the files that stay out of commits until they change, each with its state.

    Emits `DirtyFilesKept` if there are any.

    Raises:
        ConfigError: there are some, and the settings refuse them.
    """
    if not isinstance(repository, LeavesDirty):
        return {}
    known = repository

    def look() -> Flow[None]:
        states: Mapping[str, str] = {}
        if settings.dirty != "commit":
            states = (yield from ask(known.dirty(exclude=exclude))) or {}
        if states and settings.dirty == "refuse":
            raise refused(list(states))
        yield from emit(states)

    states: Mapping[str, str] = (yield from ask(flow(look), name="dirty")) or {}
    if states:
        yield from emit(DirtyFilesKept(paths=tuple(states)))
    return states


def refused(paths: list[str]) -> ConfigError:
    """Return the error of a run that dirty files keep from starting."""
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ConfigError(
        f"there are uncommitted changes: {', '.join(paths[:_SHOWN])}{more}",
        hint="commit or stash them, or pass --dirty keep",
    )


def history_kept(run: Run, base: str | None) -> Flow[None]:
    """Emit `HistoryRewritten` if the commit `base` is not an ancestor of the current one any more.

    A run that a version without snapshots began is not checked.
    """
    repository = run.services.repository
    is_old = run.resumed is not None and "snapshot_days" not in run.resumed.started.options
    if base is None or is_old or not isinstance(repository, KnowsAncestors):
        return
    known = repository

    def look() -> Flow[None]:
        lost = (yield from ask(known.is_ancestor(base))) is False
        head = (yield from ask(run.services.repository.head())) if lost else None
        yield from emit([lost, head])

    lost, head = (yield from ask(flow(look), name="history")) or (False, None)
    if lost:
        yield from emit(HistoryRewritten(base=base, head=head))
