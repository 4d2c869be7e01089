"""A deliverables loop whose whole state is in one folder, so that any process can go on with it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from reactivex import (
    Observable,
    abc,
    concat,
    defer,
    from_iterable,
    just,
    never,
    operators as ops,
    throw,
    timer,
)

from cuggino.agents.protocol import SpawnOptions
from cuggino.events import (
    AgentMessage,
    BudgetWarning,
    DeliverablesListed,
    DeliverableStatusChanged,
    DeliverEnded,
    Event,
    RunStarted,
    SessionEnded,
    StageFinished,
    StageStarted,
    is_journal_event,
)
from cuggino.loops import DeliverRunOptions, DeliverService
from cuggino.loops.resuming import resumed_delivery
from cuggino.storage import JournalFile
from cuggino.testing import Seen
from tests.loops.delivered import Sessions, Story, Turn, mark_verified, write_settings
from tests.loops.processes import FolderProcess
from tests.loops.resumable import Instants, at_each_append
from tests.loops.turns import Subscriptions, hash_of

COST = 0.25
"""US dollars of each session that ends with a result."""

Turns = Mapping[str, Sequence[Turn]]
"""By instruction, in order."""


def works(leaves: dict[str, str] | None = None, *, says: str = "done", verifies: str = "") -> Turn:
    """A session that leaves this behind and ends well."""
    ended = SessionEnded(outcome="completed", cost_usd=COST, num_turns=1)
    return Turn((AgentMessage(text=says), ended), leaves, verifies=tuple(verifies))


class TurnSessions(Sessions):
    """Plays the session of its instruction and turn: a second of work, then what it leaves."""

    def __init__(self, by_role: Turns, project: Path, subscriptions: Subscriptions) -> None:
        super().__init__((), project)
        self.by_role = by_role
        self._subscriptions = subscriptions

    @property
    def begun(self) -> list[tuple[str, int]]:
        """Instruction and turn of each session that was begun."""
        return [(str(options.role), options.turn or 0) for options in self.spawned]

    def spawn(self, options: SpawnOptions) -> Observable[Any]:
        def start(_scheduler: abc.SchedulerBase | None) -> Observable[Any]:
            self.spawned.append(options)
            assert options.role is not None
            assert options.turn is not None
            turn = self.by_role[options.role][options.turn - 1]

            def end(_: object) -> Observable[Any]:
                if turn.leaves is not None:
                    self.write(turn.leaves)
                    code = self.project / f"{options.role}-{options.turn}.txt"
                    code.write_text("code")
                mark_verified(options, set(turn.verifies))
                events: Observable[Any] = from_iterable(turn.events)
                return events if turn.error is None else concat(events, throw(turn.error))

            begin: Observable[Any] = just(AgentMessage(text="begun"))
            pause: Observable[Any] = timer(1).pipe(ops.ignore_elements())
            return concat(begin, pause, defer(end))

        return self._subscriptions.of(defer(start))


class Process(FolderProcess[DeliverRunOptions, Story]):
    """One process that works on a run in the folder, with an agent of its own."""

    def __init__(self, folder: Path, turns: Turns) -> None:
        write_settings(folder)
        super().__init__(folder)
        self.agent = TurnSessions(turns, folder, self.subscriptions)
        of = self.subscriptions.of
        self.service = DeliverService(
            agent=self.agent,
            workspace=self.workspace,
            changes=lambda _folder: of(never()),
            fingerprint=lambda *_args, **_kw: of(defer(lambda _: just(hash_of(self.code)))),
        )

    @property
    def code(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("*.txt"))

    @property
    def status(self) -> str:
        file = self.folder / ".autonoe/status.json"
        return file.read_text() if file.exists() else ""

    def options(self, **changed: Any) -> DeliverRunOptions:
        given = {
            "journal": True,
            "verify": True,
            "progress_patience": 3,
            "review_patience": 2,
            "session_pause": 2.0,
            **changed,
        }
        return DeliverRunOptions(cwd=self.folder, **given)

    def resumed(self, current: DeliverRunOptions, started: RunStarted) -> DeliverRunOptions:
        return resumed_delivery(current, started)

    def stream(
        self,
        options: DeliverRunOptions,
        interrupt: Observable[object],
        journal: JournalFile | None,
    ) -> Observable[Any]:
        return self.service.run(options, interrupt=interrupt, resume=journal)

    def story(self, seen: list[Seen]) -> Story:
        return Story(seen)


class End(NamedTuple):
    """What a run has come to, without what depends on time and on work that was lost."""

    told: list[str]
    state: str
    status: str
    code: list[str]
    sessions: list[tuple[str, int]]
    left: list[str]


def end_of(process: Process) -> End:
    """Where the run of the folder has ended."""
    journal = process.journal
    left = sorted(path.name for path in process.workspace.wip.iterdir())
    return End(told(journal), journal.state, process.status, process.code, finished(journal), left)


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
        if not (isinstance(entry.event, _SEEN) and _is_session(entry.stage))
        if not isinstance(entry.event, BudgetWarning)
    ]
    ends = [n for n, event in enumerate(kept) if isinstance(event, DeliverEnded)]
    return [repr(_constant(event)) for n, event in enumerate(kept) if n not in ends[:-1]]


def _constant(event: Event) -> Event:
    if isinstance(event, DeliverEnded):
        return event.model_copy(update={"cost_usd": 0.0, "duration": 0.0})
    return event


def finished(journal: JournalFile) -> list[tuple[str, int]]:
    """The sessions whose stages have ended, as instruction and turn."""
    roles = [
        str(entry.stage).partition("#")[0]
        for entry in journal.entries
        if _is_session(entry.stage) and isinstance(entry.event, StageFinished)
    ]
    return [(role, roles[: n + 1].count(role)) for n, role in enumerate(roles)]


_SEEN = (DeliverablesListed, DeliverableStatusChanged)
"""What a session that begins anew does not see, when the one that was cut had done it."""


def _is_session(stage: str | None) -> bool:
    return str(stage).partition("#")[0] in ("initializer", "coding", "sync", "verify")


class Undisturbed:
    """A run from its beginning to its end, and the folder at each instant of it."""

    def __init__(
        self, place: Path, turns: Turns, monkeypatch: pytest.MonkeyPatch, **options: Any
    ) -> None:
        folder = place / "undisturbed"
        self.turns, self.options = turns, options
        self.process = Process(folder, turns)
        self.instants = Instants(folder, place / "instants")
        with at_each_append(monkeypatch, self.instants.keep):
            self.story = self.process.run(**options)
        self.instants.keep()
        self.process.assert_released()
        self.journal = self.process.journal
        self.end = end_of(self.process)

    def at(self, copy: Path, place: Path) -> Process:
        """A process in the folder as it was in that instant."""
        shutil.copytree(copy, place)
        return Process(place, self.turns)

    def assert_equals(self, process: Process) -> None:
        """Assert that the run in that folder ended as this one, with the same work, done once."""
        assert self.end == end_of(process)
        process.assert_released()


def go_on(process: Process, **given: Any) -> tuple[Story, list[tuple[str, int]]]:
    """Go on, or begin if nothing had begun; gives the story, and the sessions finished before."""
    if not process.has_begun:
        return process.run(**given), []
    done = finished(process.journal)
    return process.resume(**given), done
