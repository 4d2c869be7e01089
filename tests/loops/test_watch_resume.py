"""A watch is cut at every instant of its disk; the next one comes to the same end."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reactivex import defer, just, never

from cuggino.agents.protocol import SpawnOptions
from cuggino.events import RunResumed, StageFinished, WatchItemCompleted, WatchProcessingItem
from cuggino.loops import LoopService, WatchRunOptions, WatchService
from cuggino.storage import Backlog, Entry, JournalFile, Workspace, list_journals, read_journal
from cuggino.testing import Marbles
from tests.loops.resumable import Instants, at_each_append, told, values
from tests.loops.turns import (
    APPROVED,
    FolderRepository,
    Subscriptions,
    TurnAgent,
    Turns,
    hash_of,
    plan,
    work,
)

WORDS = ("kiwi", "plum")
DONE = 30.0
"""Virtual seconds within which a watch has worked off its backlog."""


def turns_for(word: str) -> Turns:
    return {
        "planning": [plan(f"{word} one", f"{word} two")],
        "implementing": [work("PROGRESS", f"{word}-one"), work("DONE", f"{word}-two")],
        "reviewing": [APPROVED],
    }


class ItemAgent(TurnAgent):
    """Plays the turns of the word that its run is about."""

    def turns_of(self, options: SpawnOptions) -> Turns:
        planned = Path(options.env["CUGGINO_SESSION_FILE"]).read_text()
        (word,) = [word for word in WORDS if word in f"{options.system_prompt}{planned}"]
        return turns_for(word)


class WatchProcess:
    """One process that watches the backlog in the folder."""

    def __init__(self, folder: Path, *, moment: Callable[[], object] = bool) -> None:
        (folder / ".specs").mkdir(exist_ok=True)
        self.folder = folder
        self.workspace = Workspace(folder)
        self.subscriptions = Subscriptions()
        self.agent = ItemAgent({}, self.subscriptions)
        self.repository = FolderRepository(folder, moment, self.subscriptions)
        loop = LoopService(
            agent=self.agent,
            workspace=self.workspace,
            repository=self.repository,
            shell=lambda _command, _cwd: just(b"checked\n"),
            fingerprint=lambda *_args, **_kw: defer(lambda _: just(hash_of(self.repository.files))),
        )
        self._service = WatchService(
            agent=self.agent, workspace=self.workspace, loop=loop, changes=lambda _: never()
        )

    def watch(self, *, at: float) -> list[Any]:
        """What it tells until its backlog is worked off; then it is disposed."""
        t = Marbles()
        t.scheduler.advance_to(at)
        options = WatchRunOptions(cwd=self.folder, commit=True, journal=True, audit=False)
        seen = t.record(self._service.run(options), until=at + DONE)
        assert {"next"} == {kind for _, kind, _ in seen}, seen[-1]
        assert 0 == self.subscriptions.open
        return values(seen)

    @property
    def journals(self) -> list[JournalFile]:
        """Those of the watches and the runs that have begun, oldest first."""
        paths = list_journals(self.workspace.journal)[::-1]
        return [read_journal(path) for path in paths if b"\n" in path.read_bytes()]

    @property
    def runs(self) -> list[JournalFile]:
        return [journal for journal in self.journals if journal.started.kind == "run"]

    @property
    def watch_entries(self) -> list[Entry]:
        """What the watches themselves have written down."""
        watches = [journal for journal in self.journals if journal.started.kind == "watch"]
        return [entry for journal in watches for entry in journal.entries]

    @property
    def archived(self) -> list[tuple[str, str]]:
        """Name without the leading UUID, and text."""
        paths = sorted(self.workspace.archive.iterdir())
        return [(path.name[37:], path.read_text()) for path in paths]


def at_each_archiving(monkeypatch: pytest.MonkeyPatch, moment: Callable[[], object]) -> None:
    """Call `moment` when an item has been put away, and nobody knows it yet."""
    archive = Backlog.archive

    def watched(backlog: Backlog, *args: Any) -> Any:
        moment()
        done = archive(backlog, *args)
        moment()
        return done

    monkeypatch.setattr(Backlog, "archive", watched)


def sessions_done(runs: list[JournalFile]) -> int:
    """How many sessions need not be run again."""
    roles = ("planning#", "implementing#", "reviewing#")
    return sum(
        (entry.stage or "").startswith(roles) and isinstance(entry.event, StageFinished)
        for run in runs
        for entry in run.entries
    )


class Undisturbed:
    """A watch that works off its backlog, and the folder at each instant of it."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = place / "undisturbed"
        backlog = Workspace(folder).backlog
        backlog.mkdir(parents=True)
        for word in WORDS:
            (backlog / f"{word}.md").write_text(f"Write the word {word}.\n")
        instants = Instants(folder, place / "instants")
        instants.keep()
        self.process = watched(folder, instants, monkeypatch, at=0)
        self.instants = instants.copies
        self.told = [told(run) for run in self.process.runs]
        self.sessions = len(self.process.agent.spawned)

    def assert_equals(self, process: WatchProcess) -> None:
        """Assert that the other one has come to the same, with the same work, done once."""
        whole, place = self.process, process.folder.name
        assert whole.archived == process.archived, place
        assert whole.repository.commits == process.repository.commits, place
        assert whole.repository.files == process.repository.files, place
        assert self.told == [told(run) for run in process.runs], place
        assert [] == list(process.workspace.backlog.iterdir())
        assert [] == list(process.workspace.wip.iterdir())
        with Workspace(process.folder).lock():
            pass


def watched(
    folder: Path, instants: Instants, monkeypatch: pytest.MonkeyPatch, *, at: float
) -> WatchProcess:
    """A process that has worked off the backlog, while the instants of its folder were kept."""
    process = WatchProcess(folder, moment=instants.keep)
    with monkeypatch.context() as patch, at_each_append(patch, instants.keep):
        at_each_archiving(patch, instants.keep)
        process.watch(at=at)
    return process


def copied(copy: Path, place: Path) -> WatchProcess:
    shutil.copytree(copy, place)
    return WatchProcess(place)


def test_cut_at_every_instant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was on the disk when it was killed: work, words and archive are as undisturbed."""
    story = Undisturbed(tmp_path, monkeypatch)
    whole = story.process
    assert [f"Add {word}-{n}" for word in WORDS for n in ("one", "two")] == whole.repository.commits
    assert [f"approved-{word}.md" for word in WORDS] == [name for name, _ in whole.archived]
    assert (8, 2) == (story.sessions, len(story.told))
    gone_on = 0
    for copy in story.instants:
        process = copied(copy, tmp_path / f"again-{copy.name}")
        left = story.sessions - sessions_done(process.runs)
        kinds = Counter(type(event) for event in process.watch(at=1000))
        story.assert_equals(process)
        assert left == len(process.agent.spawned), copy.name
        assert kinds[WatchItemCompleted] == kinds[WatchProcessingItem] <= len(WORDS)
        gone_on += kinds[RunResumed]
        # What an earlier process spent stands in the watch's journal already.
        assert [] == [e for e in process.watch_entries if isinstance(e.event, RunResumed)]
    assert len(story.instants) > 150 > gone_on > 10


def test_cut_twice_between_a_run_and_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An item whose run has ended is put away without another, however often that is cut."""
    story = Undisturbed(tmp_path, monkeypatch)
    tried = 0
    for copy in story.instants:
        process = copied(copy, tmp_path / f"first-{copy.name}")
        items = len(WORDS) - len(list(process.workspace.backlog.iterdir()))
        if sum(run.state == "approved" for run in process.runs) == items:
            continue
        second = Instants(process.folder, tmp_path / f"second-{copy.name}")
        watched(process.folder, second, monkeypatch, at=1000)
        for number, again in enumerate(second.copies[:12]):
            last = copied(again, tmp_path / f"last-{copy.name}-{number}")
            last.watch(at=2000)
            story.assert_equals(last)
            tried += 1
    assert tried > 10
