"""A coding loop whose whole state is in one folder, so that each of its instants can be kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from reactivex import Observable, defer, just, operators as ops

from cuggino.events import (
    Event,
    StageCost,
    StageFinished,
    StageStarted,
    is_journal_event,
)
from cuggino.loops import LoopRunOptions, LoopService
from cuggino.loops.resuming import resumed_options
from cuggino.storage import Journal, JournalFile, Workspace, list_journals, read_journal
from cuggino.testing import Marbles, Seen
from tests.loops.turns import FolderRepository, Subscriptions, TurnAgent, Turns, hash_of


class Present(NamedTuple):
    """What a process does and has done at an instant."""

    subscriptions: int
    spawned: tuple[tuple[str, int], ...]
    commits: tuple[str, ...]
    files: dict[str, str]


class Process:
    """One process that works on a run in the folder, with an agent of its own."""

    def __init__(self, folder: Path, turns: Turns, *, moment: Callable[[], object] = bool) -> None:
        (folder / ".specs").mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.subscriptions = Subscriptions()
        self.agent = TurnAgent(turns, self.subscriptions)
        self.workspace = Workspace(folder)
        self.repository = FolderRepository(folder, moment, self.subscriptions)
        self.t = Marbles()
        self.failed: Present | None = None
        """How everything was when the error arrived, if one did."""
        of = self.subscriptions.of
        self._service = LoopService(
            agent=self.agent,
            workspace=self.workspace,
            repository=self.repository,
            shell=lambda _command, _cwd: of(just(b"checked\n")),
            fingerprint=lambda *_args, **_kw: of(
                defer(lambda _: just(hash_of([self.repository.files])))
            ),
        )

    def options(self, **changed: Any) -> LoopRunOptions:
        given = {
            "commit": True,
            "journal": True,
            "setup_command": "setup",
            "check_command": "check",
            "progress_patience": 2,
            "review_patience": 2,
            "model": "old",
            **changed,
        }
        return LoopRunOptions(focus="the words", cwd=self.folder, **given)

    def run(self, *, dispose_at: float | None = None, **changed: Any) -> list[Seen]:
        return self._record(self._service.run(self.options(**changed)), dispose_at)

    def resume(
        self, *, at: float = 1000.0, known: JournalFile | None = None, **changed: Any
    ) -> list[Seen]:
        """Go on with the only run, later than it began; `known` is its journal as it was read."""
        self.t.scheduler.advance_to(at)
        journal = known or self.journal
        options = resumed_options(self.options(**changed), journal.started)
        return self._record(self._service.run(options, resume=journal))

    def _record(self, run: Observable[Any], dispose_at: float | None = None) -> list[Seen]:
        watched = run.pipe(ops.do_action(on_error=self._note_the_end))
        return self.t.record(watched, dispose_at=dispose_at)

    def _note_the_end(self, _error: object) -> None:
        self.failed = self.present

    @property
    def present(self) -> Present:
        """What there is to see of the run now."""
        spawned = tuple(self.agent.spawned)
        files = {**self.repository.files, "session": self.session_text()}
        return Present(self.subscriptions.open, spawned, tuple(self.repository.commits), files)

    @property
    def has_begun(self) -> bool:
        """Whether there is a run to go on with."""
        return any(path.stat().st_size for path in list_journals(self.workspace.journal))

    @property
    def journal(self) -> JournalFile:
        (path,) = list_journals(self.workspace.journal)
        return read_journal(path)

    def session_text(self) -> str:
        """The plan and the progress log; empty when there is no session."""
        files = sorted(self.workspace.wip.glob("*.md"), key=lambda path: len(path.name))
        return files[0].read_text() if files else ""

    @property
    def issues(self) -> list[str]:
        """What was stored for a person, of both kinds."""
        folders = (self.workspace.spec_issues, self.workspace.tbd)
        return sorted(path.read_text() for folder in folders for path in folder.iterdir())

    def assert_released(self) -> None:
        """Assert that nothing is subscribed, no agent works, and another run could begin."""
        assert 0 == self.subscriptions.open
        with Workspace(self.folder).lock():
            pass


@contextmanager
def at_each_append(monkeypatch: pytest.MonkeyPatch, moment: Callable[[], object]) -> Iterator[None]:
    """Call `moment` before and after each entry that is written to a journal."""
    append = Journal.append

    def watched(journal: Journal, event: Event, **kwargs: Any) -> Any:
        moment()
        entry = append(journal, event, **kwargs)
        moment()
        return entry

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", watched)
        yield


class Instants:
    """Copies of a folder, each different from the one before."""

    def __init__(self, folder: Path, place: Path) -> None:
        self._folder, self._place = folder, place
        self._last: dict[str, bytes] = {}
        self.copies: list[Path] = []

    def keep(self) -> None:
        """Keep the folder as it is now."""
        now = {
            str(path.relative_to(self._folder)): path.read_bytes()
            for path in sorted(self._folder.rglob("*"))
            if path.is_file() and not path.name.startswith("lock")
        }
        if now != self._last:
            self._last = now
            copy = self._place / f"{len(self.copies):04}"
            shutil.copytree(self._folder, copy, ignore=shutil.ignore_patterns("lock*"))
            self.copies.append(copy)


class Undisturbed:
    """A run from its beginning to its end, and the folder at each instant of it."""

    def __init__(self, place: Path, turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = place / "undisturbed"
        self.turns = turns
        self.process = Process(folder, turns, moment=lambda: self.instants.keep())
        self.instants = Instants(folder, place / "instants")
        self.log = ""
        """The session file as it was last."""

        def moment() -> None:
            self.instants.keep()
            self.log = self.process.session_text() or self.log

        with at_each_append(monkeypatch, moment):
            self.seen = self.process.run()
        self.instants.keep()
        assert "completed" == self.seen[-1][1]
        self.process.assert_released()
        self.journal = self.process.journal
        self.told = told(self.journal)

    def at(self, copy: Path, place: Path) -> Process:
        """A process in the folder as it was in that instant."""
        shutil.copytree(copy, place)
        return Process(place, self.turns)

    def assert_equals(self, process: Process, log: str = "") -> None:
        """Assert that the run in that folder ended as this one, with the same work, done once.

        `log` is the session file as it was last; it need not be given when it was not seen.
        """
        whole, journal = self.process, process.journal
        assert self.told == told(journal)
        assert self.journal.state == journal.state
        assert whole.repository.commits == process.repository.commits
        assert whole.repository.files == process.repository.files
        assert whole.issues == process.issues
        assert finished_turns(self.journal) == finished_turns(journal)
        assert self.log == (log or self.log)
        assert [] == list(process.workspace.wip.iterdir())
        process.assert_released()


def resumed(
    process: Process, monkeypatch: pytest.MonkeyPatch, **changed: Any
) -> tuple[list[Any], str]:
    """Go on, or begin if nothing had begun; gives what was seen, and the last session file."""
    log = ""

    def moment() -> None:
        nonlocal log
        log = process.session_text() or log

    with at_each_append(monkeypatch, moment):
        seen = process.resume(**changed) if process.has_begun else process.run(**changed)
    assert "completed" == seen[-1][1], seen[-1]
    return values(seen), log


def told(journal: JournalFile) -> list[str]:
    """What the run said, without what the stages said that were cut, and without what varies."""
    begun: dict[str, int] = {
        entry.stage: n
        for n, entry in enumerate(journal.entries)
        if entry.stage and isinstance(entry.event, StageStarted)
    }
    return [
        _constant(entry.event)
        for n, entry in enumerate(journal.entries)
        if not is_journal_event(entry.event) and (not entry.stage or n > begun[entry.stage])
    ]


def _constant(event: Event) -> str:
    """Without what depends on the folder, on the time, and on the work that was lost."""
    match event:
        case StageCost():
            event = event.model_copy(update={"total_cost": None, "total_usage": None})
        case _:
            names = {"file_path", "filename", "filenames"} & type(event).model_fields.keys()
            event = event.model_copy(update=dict.fromkeys(names))
    return repr(event)


def values(seen: list[Seen]) -> list[Any]:
    return [value for _, kind, value in seen if kind == "next"]


def finished_turns(journal: JournalFile) -> list[tuple[str, int]]:
    """The sessions whose stages have ended, as role and turn."""
    roles = [
        entry.stage.partition("#")[0]
        for entry in journal.entries
        if entry.stage and isinstance(entry.event, StageFinished)
    ]
    known = ("planning", "implementing", "reviewing")
    return [(role, roles[: n + 1].count(role)) for n, role in enumerate(roles) if role in known]
