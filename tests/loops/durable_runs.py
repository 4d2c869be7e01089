"""Runs of each loop whose whole state is in one folder, so that another process can resume them.

`Process` is one process that works in the folder, with its own agent: `CodingProcess`,
`DeliverProcess`, `PlanBuildProcess`, `WatchProcess`.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

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

from cuggino import events as ev
from cuggino.agents.base import LlmAgent, SpawnOptions
from cuggino.files import write_atomic
from cuggino.loops import (
    DeliverRunOptions,
    DeliverService,
    LoopRunOptions,
    LoopService,
    PlanBuildOptions,
    PlanBuildService,
    Services,
    WatchRunOptions,
    WatchService,
)
from cuggino.loops.frame.resuming import resumed_options
from cuggino.stages import Commit
from cuggino.storage import JournalFile, Workspace, list_journals, read_journal
from cuggino.testing import Marbles, Story
from tests.loops.deliver_loop import mark_verified, write_settings
from tests.loops.plan_build_loop import PROMPTS, SPECIFICATION, is_of_job, verdict, write
from tests.loops.session_loop import pending

COST = 0.25
"""US dollars of each session that ends with a result."""

LATER = 1000.0
"""The virtual second at which a run is resumed."""

Kind = Literal["run", "deliver", "loop", "watch"]
"""A loop, as its journal names it."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Turn:
    """One session: a second of work, its files, its events and its error."""

    said: Sequence[ev.Event] = (ev.AgentMessage(text="done"),)
    files: Mapping[str, str | None] = field(default_factory=dict)
    """By name in the project; `$CUGGINO_...` is the path in that variable."""
    commits: Sequence[str] = ()
    verifies: str = ""
    """The ids of the deliverables that it marks as verified."""
    error: Exception | None = None
    """Instead of a result."""
    until: float = float("inf")
    """The virtual second from which on there is no error."""


Turns = Mapping[str, Sequence[Turn]]
"""The sessions of each role, in order."""

Session = tuple[str, str, int]
"""Backlog item (or ""), role and turn."""


def hash_of(value: object) -> str:
    """Return a hash that is the same in every process."""
    return hashlib.sha1(json.dumps(value).encode()).hexdigest()


class Subscriptions:
    """Counts open subscriptions."""

    def __init__(self) -> None:
        self.open = 0

    def of(self, stream: Observable[T]) -> Observable[T]:
        """Return the same stream, counted."""

        def start(_scheduler: object) -> Observable[T]:
            self.open += 1
            return stream.pipe(ops.finally_action(self._ended))

        return defer(start)

    def _ended(self) -> None:
        self.open -= 1


class TurnAgent(LlmAgent):
    """An agent that plays the session of its role and turn, in any process."""

    name = "turns"

    def __init__(self, process: Process) -> None:
        self._process = process
        self.spawned: list[SpawnOptions] = []
        self.begun: list[Session] = []
        """Each session that was started, without verdicts and without retries."""

    def check(self) -> str:
        return "1"

    def spawn(self, options: SpawnOptions) -> Observable[Any]:
        return self._process.subscriptions.of(defer(lambda lane: self._play(options, lane)))

    def _play(self, options: SpawnOptions, lane: abc.SchedulerBase | None) -> Observable[Any]:
        assert lane is not None
        process, role = self._process, str(options.role)
        self.spawned.append(options)
        pause: Observable[Any] = timer(1).pipe(ops.ignore_elements())
        start = concat(just(ev.AgentMessage(text="begun")), pause)
        if role == "judge":
            return concat(start, defer(lambda _: self._judge(options)))
        assert options.turn is not None
        item = process.item_of(options)
        session = (item, role, options.turn)
        if session not in self.begun[-1:]:
            self.begun.append(session)
        turn = process.turns_of(item)[role][options.turn - 1]
        fails = turn.error is not None and lane.to_seconds(lane.now) < turn.until

        def end(_: object) -> Observable[Any]:
            if fails and turn.until < float("inf"):  # it fails before it has done anything
                return throw(turn.error)  # type: ignore[arg-type]
            if not process.writes_first:
                self._write(turn, options)
            said: Observable[Any] = from_iterable(turn.said)
            if fails:
                return concat(said, throw(turn.error))  # type: ignore[arg-type]
            ended = ev.SessionEnded(outcome="completed", cost_usd=COST, num_turns=1, duration=1.0)
            return concat(said, just(ended))

        if process.writes_first and not fails:
            self._write(turn, options)
        return concat(start, defer(end))

    def _write(self, turn: Turn, options: SpawnOptions) -> None:
        for name, text in turn.files.items():
            path = Path(options.env[name[1:]] if name[0] == "$" else options.cwd / name)
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink(missing_ok=True)
            else:
                # What is in the list of deliverables is written by the tools of the run.
                (write_atomic if path.name == "status.json" else Path.write_text)(path, text)
        mark_verified(options, set(turn.verifies))
        self._process.repository.add(*turn.commits)

    def _judge(self, options: SpawnOptions) -> Observable[Any]:
        """Answer by the files: `J1.ok` means that job J1 is done."""
        job = re.search(r"J\d", options.prompt)
        holds = not is_of_job(options) or (options.cwd / f"{job and job[0]}.ok").exists()
        said = verdict(holds, *([] if holds else ["it is not baked"])).events[0]
        return from_iterable([said, ev.SessionEnded(outcome="completed", cost_usd=COST)])


class FolderRepository:
    """Commits the project's text files into a file beside them, which takes a second."""

    def __init__(self, folder: Path, changed: Callable[[], object], open_: Subscriptions) -> None:
        self._folder, self._changed, self._open = folder, changed, open_
        self._store = folder / "repository.json"
        self.freed: list[datetime] = []
        """Since when locks were looked for that a killed git has left."""

    def recover(self, since: datetime) -> Observable[list[str]]:
        self.freed.append(since)
        return just([])

    @property
    def commits(self) -> list[str]:
        """The messages of the commits."""
        return [commit["message"] for commit in self._read()]

    @property
    def files(self) -> dict[str, str]:
        """The files to commit."""
        found = [*self._folder.glob("*.txt"), *self._folder.glob("docs/**/*.json")]
        return {path.name: path.read_text() for path in sorted(found)}

    def add(self, *messages: str) -> None:
        """Commit as a session does: one that is repeated finds its commits made."""
        for message in messages:
            if message not in self.commits:
                self._commit(message)

    def since(self, base: str | None) -> list[list[str]]:
        """Return hash and message of each commit after `base`."""
        return [[str(n), text] for n, text in enumerate(self.commits, 1) if n > int(base or 0)]

    def head(self) -> Observable[str | None]:
        return self._open.of(defer(lambda _: just(str(len(self.commits)))))

    def commit(self, message: str, *, exclude: tuple[Path, ...] = ()) -> Observable[Commit]:
        def do(_scheduler: object) -> Observable[Commit]:
            commits = self._read()
            if commits and commits[-1]["files"] == self.files:
                return from_iterable([])
            self._commit(message)
            self._changed()  # committed, but not yet recorded
            return just(Commit(hash=str(len(commits) + 1), message=message))

        return self._open.of(timer(1).pipe(ops.flat_map(defer(do))))

    def push(self, remote: str, branch: str) -> Observable[Any]:
        raise AssertionError("nothing is pushed")

    def _commit(self, message: str) -> None:
        commits = [*self._read(), {"message": message, "files": self.files}]
        self._store.write_text(json.dumps(commits))

    def _read(self) -> list[dict[str, Any]]:
        return json.loads(self._store.read_text()) if self._store.exists() else []


class End(NamedTuple):
    """The result of a run, without what depends on time and on work that was lost."""

    events: list[list[str]]
    """By run, the events that were emitted."""
    states: list[str]
    work: dict[str, str]
    """The files of the project, and those stored for a person."""
    sessions: list[Session]
    """Those that finished."""
    session_files: list[str]


class Process(ABC):
    """A process that works in the folder with its own agent."""

    kind: ClassVar[Kind]
    roles: ClassVar[tuple[str, ...]]
    writes_first: ClassVar[bool] = False
    """Whether sessions write before their second of work, so that a killed one leaves files."""

    def __init__(self, folder: Path, turns: Turns, *, changed: Callable[[], object] = bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.turns = folder, turns
        self.workspace = Workspace(folder)
        self.subscriptions = Subscriptions()
        self.repository = FolderRepository(folder, changed, self.subscriptions)
        self.agent = TurnAgent(self)
        self.t = Marbles()
        self.session_log = ""
        """The coding loop's session file as it was last."""
        self.at_error: tuple[int, list[Session], dict[str, str]] | None = None
        """Open subscriptions, sessions and work when the run failed, if it did."""
        self._make()

    @abstractmethod
    def _make(self) -> None:
        """Make the service, and the files of the project that it needs."""

    @abstractmethod
    def options(self, **changed: Any) -> Any:
        """Return the options of a run, with changes."""

    @abstractmethod
    def _stream(
        self, options: Any, interrupt: Observable[object], journal: JournalFile | None
    ) -> Observable[Any]:
        """Return the loop."""

    def prepare(self) -> None:  # noqa: B027 - most loops need nothing
        """Put what a new run is to work on into the folder."""

    def item_of(self, options: SpawnOptions) -> str:
        """Return the backlog item of a session."""
        return ""

    def turns_of(self, item: str) -> Turns:
        return self.turns

    def run(
        self, *, dispose_at: float | None = None, interrupt_at: float | None = None, **changed: Any
    ) -> Story[Any]:
        """Play a new run."""
        return self._record(self.options(**changed), None, dispose_at, interrupt_at)

    def resume(
        self,
        *,
        at: float = LATER,
        known: JournalFile | None = None,
        dispose_at: float | None = None,
        interrupt_at: float | None = None,
        **changed: Any,
    ) -> Story[Any]:
        """Resume the only run at a later second; `known` is its journal as it was read."""
        self.t.scheduler.advance_to(at)
        journal = known or self.journal
        options: Any = resumed_options(self.options(**changed), journal.started)
        return self._record(options, journal, dispose_at, interrupt_at)

    def finish(self, *, at: float = LATER, **changed: Any) -> Story[Any]:
        """Resume the run, or start it if nothing had begun; it must complete."""
        story = self.resume(at=at, **changed) if self.has_begun else self.run(**changed)
        assert story.completed, story
        return story

    def _record(
        self,
        options: Any,
        journal: JournalFile | None,
        dispose_at: float | None,
        interrupt_at: float | None,
    ) -> Story[Any]:
        interrupt: Observable[object] = never() if interrupt_at is None else timer(interrupt_at)
        stream = self._stream(options, interrupt, journal).pipe(
            ops.do_action(self._look, on_error=self._note_error)
        )
        return Story(self.t.record(stream, dispose_at=dispose_at))

    def _look(self, _event: object) -> None:
        files = sorted(self.workspace.wip.glob("*.md"), key=lambda path: len(path.name))
        self.session_log = files[0].read_text() if files else self.session_log

    def _note_error(self, _error: object) -> None:
        self.at_error = self.present

    @property
    def present(self) -> tuple[int, list[Session], dict[str, str]]:
        """Open subscriptions, sessions and work."""
        return self.subscriptions.open, list(self.agent.begun), self.work

    # -- the folder

    @property
    def journals(self) -> list[JournalFile]:
        """All journals with an entry, oldest first."""
        paths = list_journals(self.workspace.journal)[::-1]
        whole = [path for path in paths if b"\n" in path.read_bytes()]
        return [_read(path, path.stat().st_size) for path in whole]

    @property
    def has_begun(self) -> bool:
        return bool(self.journals)

    @property
    def journal(self) -> JournalFile:
        (journal,) = self.journals
        return journal

    @property
    def runs(self) -> list[JournalFile]:
        """The journals of runs."""
        return self.journals

    @property
    def states(self) -> list[str]:
        """The final states of the runs."""
        return [run.state for run in self.runs]

    @property
    def is_resumable(self) -> bool:
        """Work is left for another process."""
        return not self.has_begun or self.journal.resumable

    def finished(self) -> list[Session]:
        """Return the sessions with a recorded outcome."""
        return [session for run in self.runs for session in finished_sessions(run, self.roles)]

    def end(self, *, waits: bool = False) -> End:
        """Return the result of the run; what depends on how long it waited is left out."""
        return End(
            [events_of(run, self.roles, waits=waits) for run in self.runs],
            self.states,
            self.work,
            self.finished(),
            sorted(path.name for path in self.workspace.wip.glob("*")),
        )

    @property
    def work(self) -> dict[str, str]:
        """The files of the project by path; those stored for a person without their names."""
        files = {
            path.relative_to(self.folder).as_posix(): path.read_text()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.relative_to(self.folder).parts[0] != ".cuggino"
        }
        for stored in (self.workspace.spec_issues, self.workspace.tbd, self.workspace.archive):
            texts = sorted(path.read_text() for path in stored.glob("*"))
            files |= {f"{stored.name} {n}": text for n, text in enumerate(texts)}
        return files

    def assert_released(self) -> None:
        """Assert that no subscription, no timer and no lock is left."""
        assert 0 == self.subscriptions.open
        assert 0 == pending(self.t)
        with Workspace(self.folder).lock():
            pass


@lru_cache(maxsize=16)
def _read(path: Path, _size: int) -> JournalFile:
    """Read a journal, unless that was done since it has grown."""
    return read_journal(path)


def finished_sessions(run: JournalFile, roles: Iterable[str]) -> list[Session]:
    """Return the sessions of a run with a recorded outcome."""
    names = [
        name
        for entry in run.entries
        if isinstance(entry.event, ev.StageFinished)
        and (name := str(entry.stage).partition("#")[0]) in roles
    ]
    item = (run.started.item or "").partition(".")[0]
    return [(item, name, names[: n + 1].count(name)) for n, name in enumerate(names)]


_ENDS = (ev.DeliverEnded, ev.PlanBuildEnded)
_SEEN = (ev.DeliverablesListed, ev.DeliverableStatusChanged)
"""Changes that a repeated session does not see, if its predecessor made them."""


def events_of(run: JournalFile, roles: Iterable[str], *, waits: bool = False) -> list[str]:
    """Return the events of a run, without those of killed stages and without superseded ends."""
    start = {e.stage: e.seq for e in run.entries if isinstance(e.event, ev.StageStarted)}
    kept = [
        entry.event
        for entry in run.entries
        if not ev.is_journal_event(entry.event)
        and (not entry.stage or (not waits and entry.seq > start[entry.stage]))
        and not (isinstance(entry.event, _SEEN) and str(entry.stage).partition("#")[0] in roles)
        and not isinstance(entry.event, ev.BudgetWarning)
    ]
    ends = [n for n, event in enumerate(kept) if isinstance(event, _ENDS)]
    return [repr(_constant(event, waits)) for n, event in enumerate(kept) if n not in ends[:-1]]


def _constant(event: ev.Event, waits: bool) -> ev.Event:
    """Return the event without what depends on the folder, on time and on lost work."""
    match event:
        case ev.DeliverEnded() | ev.PlanBuildEnded():
            return event.model_copy(update={"cost_usd": 0.0, "duration": 0.0})
        case ev.StageCost():
            return event.model_copy(update={"total_cost": None, "total_usage": None})
        case ev.PlanBuildIterationEnded() if waits:
            return event.model_copy(update={"duration": 0.0})
        case _:
            names = {"file_path", "filename", "filenames"} & type(event).model_fields.keys()
            return event.model_copy(update=dict.fromkeys(names))


class CodingProcess(Process):
    """A process of the coding loop."""

    kind: ClassVar[Kind] = "run"
    roles = ("planning", "implementing", "reviewing")
    writes_first = True

    def _make(self) -> None:
        (self.folder / ".specs").mkdir(exist_ok=True)
        of = self.subscriptions.of
        self._service = LoopService(
            Services(
                agent=self.agent,
                workspace=self.workspace,
                repository=self.repository,
                shell=lambda _command, _cwd: of(just(b"checked\n")),
                fingerprint=lambda *_args, **_kw: of(
                    defer(lambda _: just(hash_of([self.repository.files])))
                ),
            )
        )

    def options(self, **changed: Any) -> LoopRunOptions:
        given = {
            "focus": "the words",
            "commit": True,
            "journal": True,
            "setup_command": "setup",
            "check_command": "check",
            "gate": "block" if changed.get("check_command", "check") else "context",
            "progress_patience": 2,
            "review_patience": 2,
            **changed,
        }
        return LoopRunOptions(cwd=self.folder, **given)

    def _stream(
        self, options: LoopRunOptions, interrupt: Observable[object], journal: JournalFile | None
    ) -> Observable[Any]:
        return self._service.run(options, resume=journal).pipe(ops.take_until(interrupt))


class DeliverProcess(Process):
    """A process of the deliverables loop."""

    kind = "deliver"
    roles = ("initializer", "coding", "sync", "verify")

    def _make(self) -> None:
        write_settings(self.folder)
        of = self.subscriptions.of
        self._service = DeliverService(
            Services(
                agent=self.agent,
                workspace=self.workspace,
                changes=lambda _folder: of(never()),
                fingerprint=lambda *_args, **_kw: of(
                    defer(lambda _: just(hash_of(sorted(self.repository.files))))
                ),
            )
        )

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

    def _stream(
        self, options: DeliverRunOptions, interrupt: Observable[object], journal: JournalFile | None
    ) -> Observable[Any]:
        return self._service.run(options, interrupt=interrupt, resume=journal)


class PlanBuildProcess(Process):
    """A process of the plan/build loop."""

    kind = "loop"
    roles = ("plan", "build")

    def _make(self) -> None:
        if not (self.folder / SPECIFICATION).exists():
            write(self.folder, {**PROMPTS, SPECIFICATION: "REQ-1 REQ-2"})
        of = self.subscriptions.of
        pause: Observable[Any] = timer(1).pipe(ops.ignore_elements())
        self._service = PlanBuildService(
            Services(
                agent=self.agent,
                workspace=self.workspace,
                repository=self.repository,
                shell=lambda _command, _cwd: of(concat(pause, just(b"tested\n"))),
                fingerprint=lambda *_args, **_kw: of(
                    defer(lambda _: just(hash_of([self.repository.files])))
                ),
                commits=lambda _cwd, base: of(defer(lambda _: just(self.repository.since(base)))),
            )
        )

    def options(self, **changed: Any) -> PlanBuildOptions:
        given = {
            "journal": True,
            "iteration_pause": 1.0,
            "verify_test": "test",
            "auto_commit": True,
            "progress_patience": 3,
            **changed,
        }
        return PlanBuildOptions(cwd=self.folder, **given)

    def _stream(
        self, options: PlanBuildOptions, interrupt: Observable[object], journal: JournalFile | None
    ) -> Observable[Any]:
        return self._service.run(options, interrupt=interrupt, resume=journal)


class WatchProcess(CodingProcess):
    """A process that watches a backlog of words; it is disposed when that is empty."""

    kind: ClassVar[Kind] = "watch"
    words: ClassVar[tuple[str, ...]] = ("kiwi", "plum")
    lasts: ClassVar[float] = 30.0
    """Virtual seconds within which the backlog is empty."""

    def _make(self) -> None:
        super()._make()
        self._watch = WatchService(
            Services(agent=self.agent, workspace=self.workspace, changes=lambda _folder: never()),
            loop=self._service,
        )

    def prepare(self) -> None:
        self.workspace.backlog.mkdir(parents=True)
        for word in self.words:
            (self.workspace.backlog / f"{word}.md").write_text(f"Write the word {word}.\n")

    def item_of(self, options: SpawnOptions) -> str:
        planned = Path(options.env["CUGGINO_SESSION_FILE"]).read_text()
        (word,) = [word for word in self.words if word in f"{options.system_prompt}{planned}"]
        return word

    def turns_of(self, item: str) -> Turns:
        return {
            role: [
                Turn(
                    [_renamed(event, item) for event in turn.said],
                    {
                        name.replace("item", item): (text or "").replace("item", item)
                        for name, text in turn.files.items()
                    },
                )
                for turn in turns
            ]
            for role, turns in self.turns.items()
        }

    def run(
        self, *, dispose_at: float | None = None, interrupt_at: float | None = None, **changed: Any
    ) -> Story[Any]:
        begin = self.t.scheduler.elapsed
        options = WatchRunOptions(
            cwd=self.folder, commit=True, journal=True, audit=False, **changed
        )
        stream = self._watch.run(options).pipe(ops.do_action(self._look))
        return Story(self.t.record(stream, until=begin + self.lasts, dispose_at=dispose_at))

    def finish(self, *, at: float = LATER, **changed: Any) -> Story[Any]:
        self.t.scheduler.advance_to(at)
        story = self.run(**changed)
        assert story.error is None, story
        assert [] == list(self.workspace.backlog.iterdir())
        return story

    @property
    def runs(self) -> list[JournalFile]:
        return [journal for journal in self.journals if journal.started.kind == "run"]

    @property
    def is_resumable(self) -> bool:
        return True


def _renamed(event: ev.Event, item: str) -> ev.Event:
    assert isinstance(event, ev.AgentMessage)
    return event.model_copy(update={"text": event.text.replace("item", item)})
