"""One process that works on a run in a folder, of whichever loop is gone on with by another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Generic, TypeVar

from reactivex import Observable, never, timer

from cuggino.events import RunStarted
from cuggino.storage import JournalFile, Workspace, list_journals, read_journal
from cuggino.testing import Marbles, Seen
from tests.loops.delivered import pending
from tests.loops.turns import Subscriptions

Options = TypeVar("Options")
Told = TypeVar("Told")


class FolderProcess(ABC, Generic[Options, Told]):
    """What a process of any of the loops has; another one with the same folder is the next."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.subscriptions = Subscriptions()
        self.workspace = Workspace(folder)
        self.t = Marbles()

    @abstractmethod
    def options(self, **changed: Any) -> Options:
        """Those of a run, with these changed."""

    @abstractmethod
    def resumed(self, current: Options, started: RunStarted) -> Options:
        """Those of a run that goes on."""

    @abstractmethod
    def stream(
        self, options: Options, interrupt: Observable[object], journal: JournalFile | None
    ) -> Observable[Any]:
        """The loop."""

    @abstractmethod
    def story(self, seen: list[Seen]) -> Told:
        """What a subscriber saw, to be asked."""

    def run(
        self, *, dispose_at: float | None = None, interrupt_at: float | None = None, **changed: Any
    ) -> Told:
        return self._record(self.options(**changed), None, dispose_at, interrupt_at)

    def resume(
        self,
        *,
        at: float = 1000.0,
        known: JournalFile | None = None,
        dispose_at: float | None = None,
        interrupt_at: float | None = None,
        **changed: Any,
    ) -> Told:
        """Go on with the only run, later than it began; `known` is its journal as it was read."""
        self.t.scheduler.advance_to(at)
        journal = known or self.journal
        options = self.resumed(self.options(**changed), journal.started)
        return self._record(options, journal, dispose_at, interrupt_at)

    def _record(
        self,
        options: Options,
        journal: JournalFile | None,
        dispose_at: float | None,
        interrupt_at: float | None,
    ) -> Told:
        interrupt: Observable[object] = never() if interrupt_at is None else timer(interrupt_at)
        run = self.stream(options, interrupt, journal)
        return self.story(self.t.record(run, dispose_at=dispose_at))

    @property
    def has_begun(self) -> bool:
        """Whether there is a run to go on with."""
        return any(path.stat().st_size for path in list_journals(self.workspace.journal))

    @property
    def journal(self) -> JournalFile:
        (path,) = list_journals(self.workspace.journal)
        return read_journal(path)

    def assert_released(self) -> None:
        """Assert that nothing is subscribed, no timer is left, and another run could begin."""
        assert 0 == self.subscriptions.open
        assert 0 == pending(self.t)
        with Workspace(self.folder).lock():
            pass
