"""What a plan/build run of several processes has come to, and the one that nobody has cut."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cuggino.events import (
    BudgetWarning,
    Event,
    PlanBuildEnded,
    RunResumed,
    StageFinished,
    StageStarted,
    is_journal_event,
)
from cuggino.storage import JournalFile, run_totals
from tests.loops.built_runs import WHOLE, Process, Turns
from tests.loops.built_story import Story
from tests.loops.resumable import Instants, at_each_append


class End(NamedTuple):
    """What a run has come to, without what depends on time and on work that was lost."""

    told: list[str]
    state: str
    work: list[list[str]]
    sessions: list[tuple[str, int]]
    left: list[str]


def end_of(process: Process) -> End:
    """Where the run of the folder has ended."""
    journal = process.journal
    left = sorted(path.name for path in process.workspace.wip.iterdir())
    return End(told(journal), journal.state, process.work, finished(journal), left)


def told(journal: JournalFile) -> list[str]:
    """What the run said, without what stages said that were cut, or ends that were gone behind."""
    begun: dict[str, int] = {
        entry.stage: n
        for n, entry in enumerate(journal.entries)
        if entry.stage and isinstance(entry.event, StageStarted)
    }
    kept = [
        entry.event
        for n, entry in enumerate(journal.entries)
        if not is_journal_event(entry.event) and (not entry.stage or n > begun[entry.stage])
        if not isinstance(entry.event, BudgetWarning)
    ]
    ends = [n for n, event in enumerate(kept) if isinstance(event, PlanBuildEnded)]
    return [repr(_constant(event)) for n, event in enumerate(kept) if n not in ends[:-1]]


def _constant(event: Event) -> Event:
    if isinstance(event, PlanBuildEnded):
        return event.model_copy(update={"cost_usd": 0.0, "duration": 0.0})
    return event


def finished(journal: JournalFile) -> list[tuple[str, int]]:
    """The sessions whose stages have ended, as phase and turn."""
    phases = [
        str(entry.stage).partition("#")[0]
        for entry in journal.entries
        if str(entry.stage).partition("#")[0] in ("plan", "build")
        and isinstance(entry.event, StageFinished)
    ]
    return [(phase, phases[: n + 1].count(phase)) for n, phase in enumerate(phases)]


class Undisturbed:
    """A run from its beginning to its end; with `keep` also the folder at each instant of it."""

    def __init__(
        self,
        place: Path,
        monkeypatch: pytest.MonkeyPatch,
        turns: Turns = WHOLE,
        *,
        keep: bool = True,
        **options: Any,
    ) -> None:
        folder = place / "undisturbed"
        self.turns, self.options = turns, options
        self.process = Process(folder, turns)
        self.instants = Instants(folder, place / "instants")
        with at_each_append(monkeypatch, self.instants.keep if keep else bool):
            self.story = self.process.run(**options)
        self.instants.keep()
        self.process.assert_released()
        self.journal = self.process.journal
        self.end = end_of(self.process)

    def at(self, copy: Path, place: Path) -> Process:
        """A process in the folder as it was in that instant."""
        shutil.copytree(copy, place)
        return Process(place, self.turns)

    def assert_resumed(self, process: Process, **given: Any) -> Story:
        """Go on, or begin if nothing had begun: it comes to the same end, with nothing twice."""
        before = process.journal if process.has_begun else None
        done = finished(before) if before is not None else []
        given = {**self.options, **given}
        seen = process.resume(**given) if before is not None else process.run(**given)
        assert self.end == end_of(process)
        process.assert_released()
        assert seen.error is None
        mine, ended = self.story.ended, seen.ended
        assert (mine.reason, mine.iterations) == (ended.reason, ended.iterations)
        assert [x for x in self.process.agent.begun if x not in done] == process.agent.begun
        if before is not None:
            (resumed,) = seen.of(RunResumed)
            assert run_totals(before) == resumed
        return seen
