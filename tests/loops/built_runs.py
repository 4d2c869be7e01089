"""A plan/build loop whose whole state is in one folder, so that any process can go on with it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reactivex import (
    Observable,
    abc,
    concat,
    defer,
    from_iterable,
    just,
    operators as ops,
    throw,
    timer,
)

from cuggino.agents.protocol import InteractiveOptions, SpawnOptions
from cuggino.errors import AgentFailed
from cuggino.events import (
    AgentMessage,
    RunStarted,
    SessionEnded,
)
from cuggino.loops import PlanBuildOptions, PlanBuildService
from cuggino.loops.resuming import resumed_building
from cuggino.stages import Commit
from cuggino.storage import JournalFile
from cuggino.testing import Seen
from tests.loops.built import JOBS, PROMPTS, SPECIFICATION, Turn, has, is_of_job, verdict, write
from tests.loops.built_story import Story
from tests.loops.processes import FolderProcess
from tests.loops.turns import hash_of

COST = 0.25
"""US dollars of each session that ends with a result."""

Turns = Mapping[str, Sequence[Turn]]
"""Of planning and building, in order. Verdicts are by the files: `J1.ok` says that J1 is done."""


def works(*commits: str, ok: str = "", done: bool = False, **statuses: str) -> Turn:
    """A session that leaves these jobs behind, and the files of those that are really done."""
    files = {**has(done, **statuses), **{f"J{name}.ok": "ok" for name in ok}}
    events = (AgentMessage(text="done"), SessionEnded(outcome="completed", cost_usd=COST))
    return Turn(files, events, commits=commits)


CRASH = Turn({}, (), AgentFailed("it crashed", reason="crash"))

WHOLE: Turns = {
    "plan": [works("docs: plan", J1="open", J2="open")],
    "build": [
        works("feat: one", ok="1", J1="done", J2="open"),
        CRASH,
        works("feat: two", J1="done", J2="done"),  # refuted
        works("fix: two", ok="2", done=True, J1="done", J2="done"),
    ],
}


class FolderAgent:
    """Plays the session of its phase and turn: a second of work, then what it leaves."""

    name = "folder"
    can_resume = False

    def __init__(self, process: Process, turns: Turns) -> None:
        self._process = process
        self._turns = turns
        self.spawned: list[SpawnOptions] = []

    @property
    def begun(self) -> list[tuple[str, int]]:
        """Phase and turn of each session that was begun, but for verifications."""
        return [(str(x.role), x.turn or 0) for x in self.spawned if x.role != "judge"]

    def check(self) -> str:
        return "1"

    def interactive(self, options: InteractiveOptions) -> int:
        return 0

    def spawn(self, options: SpawnOptions) -> Observable[Any]:
        def start(_scheduler: abc.SchedulerBase | None) -> Observable[Any]:
            self.spawned.append(options)
            begin: Observable[Any] = just(AgentMessage(text="begun"))
            pause: Observable[Any] = timer(1).pipe(ops.ignore_elements())
            return concat(begin, pause, defer(lambda _: self._end(options)))

        return self._process.subscriptions.of(defer(start))

    def _end(self, options: SpawnOptions) -> Observable[Any]:
        folder = self._process.folder
        if options.role == "judge":
            job = re.search(r"J\d", options.prompt)
            holds = not is_of_job(options) or (folder / f"{job and job[0]}.ok").exists()
            said = verdict(holds, *([] if holds else ["it is not baked"])).events[0]
            return from_iterable([said, SessionEnded(outcome="completed", cost_usd=COST)])
        assert options.turn is not None
        turn = self._turns[str(options.role)][options.turn - 1]
        write(folder, turn.leaves)
        self._process.add_commits(*turn.commits)
        events: Observable[Any] = from_iterable(turn.events)
        return events if turn.error is None else concat(events, throw(turn.error))


class Process(FolderProcess[PlanBuildOptions, Story]):
    """One process that works on a run in the folder, with an agent of its own."""

    def __init__(self, folder: Path, turns: Turns = WHOLE) -> None:
        if not (folder / SPECIFICATION).exists():
            write(folder, {**PROMPTS, SPECIFICATION: "REQ-1 REQ-2"})
        super().__init__(folder)
        self.agent = FolderAgent(self, turns)
        of = self.subscriptions.of
        pause: Observable[Any] = timer(1).pipe(ops.ignore_elements())
        self.service = PlanBuildService(
            agent=self.agent,
            workspace=self.workspace,
            repository=self,
            shell=lambda _command, _cwd: of(concat(pause, just(b"tested\n"))),
            fingerprint=lambda *_args, **_kw: of(defer(lambda _: just(hash_of(self.work)))),
            commits=lambda _cwd, base: of(defer(lambda _: just(self._since(base)))),
        )

    @property
    def log(self) -> list[str]:
        """The subjects of all commits."""
        file = self.folder / "log.json"
        found: list[str] = json.loads(file.read_text()) if file.exists() else []
        return found

    def add_commits(self, *subjects: str) -> None:
        """Make those that were not made before: who begins anew finds them done."""
        log = self.log
        log += [subject for subject in subjects if subject not in log]
        (self.folder / "log.json").write_text(json.dumps(log))

    def _since(self, base: str | None) -> list[list[str]]:
        return [[f"h{n}", text] for n, text in enumerate(self.log) if n >= int(base or 0)]

    def head(self) -> Observable[str | None]:
        return self.subscriptions.of(defer(lambda _: just(str(len(self.log)))))

    def commit(self, message: str) -> Observable[Commit]:
        def do(_scheduler: object) -> Observable[Commit]:
            if message in self.log:
                return from_iterable([])
            self.add_commits(message)
            return just(Commit(hash=f"h{len(self.log) - 1}", message=message))

        return self.subscriptions.of(timer(1).pipe(ops.flat_map(defer(do))))

    def push(self, remote: str, branch: str) -> Observable[Any]:
        raise AssertionError("nothing is pushed")

    @property
    def work(self) -> list[list[str]]:
        """What the run has left in the folder."""
        jobs = self.folder / JOBS
        names = sorted(path.name for path in self.folder.glob("*.*"))
        return [names, [jobs.read_text() if jobs.exists() else ""], self.log]

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

    def resumed(self, current: PlanBuildOptions, started: RunStarted) -> PlanBuildOptions:
        return resumed_building(current, started)

    def stream(
        self,
        options: PlanBuildOptions,
        interrupt: Observable[object],
        journal: JournalFile | None,
    ) -> Observable[Any]:
        return self.service.run(options, interrupt=interrupt, resume=journal)

    def story(self, seen: list[Seen]) -> Story:
        return Story(seen)
