"""Crashes of the runs of any loop: stories to cut, the instants at which to cut, the comparison."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.errors import AgentFailed
from cuggino.runs import RunState
from cuggino.storage import Backlog, Journal, JournalFile
from cuggino.testing import Story
from tests.loops.coding_loop import says
from tests.loops.deliver_loop import status_json
from tests.loops.durable_runs import (
    COST,
    LATER,
    CodingProcess,
    DeliverProcess,
    Kind,
    PlanBuildProcess,
    Process,
    Turn,
    Turns,
    WatchProcess,
)
from tests.loops.plan_build_loop import has
from tests.loops.supervised_loop import limited

# -- sessions


def plan(*tasks: str) -> Turn:
    text = "# Plan\n\n" + "".join(f"- [ ] {task}\n" for task in tasks)
    return Turn([says("PLAN_COMPLETE", "planned")], {"$CUGGINO_PLAN_FILE": text})


def work(tag: str, name: str) -> Turn:
    said = [says("NOTE", f"about {name}"), says(tag, f"Add {name}")]
    return Turn(said, {f"{name}.txt": f"{name}\n"})


def review(text: str) -> Turn:
    return Turn([says("REQUEST_CHANGES", "redo")], {"$CUGGINO_REVIEW_FILE": text})


APPROVED = Turn([says("APPROVED", "fine")])
ISSUE = Turn([says("NOTE", "hm"), says("SPEC_ISSUE", "which one?")])
CRASH = Turn((), error=AgentFailed("it crashed", reason="crash"))


def delivers(code: str = "", verifies: str = "", **statuses: str) -> Turn:
    """Return a session of the deliverables loop that leaves these statuses and this file."""
    files = {".autonoe/status.json": status_json(statuses)} if statuses else {}
    return Turn(files={**files, **({f"{code}.txt": "code"} if code else {})}, verifies=verifies)


def builds(*commits: str, ok: str = "", done: bool = False, **statuses: str) -> Turn:
    """Return a session of the plan/build loop that leaves these jobs; those of `ok` are done."""
    files = {**has(done, **statuses), **{f"J{name}.ok": "ok" for name in ok}}
    return Turn(files=files, commits=commits)


def instead(turns: Turns, role: str, number: int, turn: Turn) -> Turns:
    """Return the sessions with another one in that place."""
    changed = list(turns[role])
    changed[number - 1] = turn
    return {**turns, role: changed}


def limited_until(turn: Turn, until: float) -> Turn:
    """Return the session with a usage limit that is lifted at that second."""
    return Turn(turn.said, turn.files, turn.commits, turn.verifies, limited(until), until)


# -- stories


@dataclass(frozen=True)
class Scenario:
    """A run to cut, and how it ends."""

    make: type[Process]
    turns: Turns
    state: str
    sessions: int
    options: Mapping[str, Any] = field(default_factory=dict)
    kills: int = 6
    """How many kills are sampled."""
    waits: bool = False
    """It waits for an agent, so that the events of its stages depend on when it was cut."""

    @property
    def kind(self) -> Kind:
        return self.make.kind

    def process(self, folder: Path, *, changed: Callable[[], object] = bool) -> Process:
        return self.make(folder, self.turns, changed=changed)


TWO_ITERATIONS: Turns = {
    "planning": [plan("one", "two"), plan("three")],
    "implementing": [work("PROGRESS", "one"), work("DONE", "two"), work("DONE", "three")],
    "reviewing": [review("# Review\n\nThree is missing.\n"), APPROVED],
}
SPEC_ISSUE: Turns = {
    "planning": [plan("one", "two")],
    "implementing": [work("PROGRESS", "one"), ISSUE],
}
SAME_FINDINGS: Turns = {
    "planning": [plan("one"), plan("two")],
    "implementing": [work("DONE", "one"), work("DONE", "two")],
    "reviewing": [review("- `one.txt`: it is wrong\n"), review("- `one.txt`: it is wrong\n")],
}
ITEM: Turns = {
    "planning": [plan("item one", "item two")],
    "implementing": [work("PROGRESS", "item-one"), work("DONE", "item-two")],
    "reviewing": [APPROVED],
}

NONE = {"a": "pending", "b": "pending"}
ONE = {"a": "passed", "b": "pending"}
BOTH = {"a": "passed", "b": "passed"}
HALF = Turn(
    (ev.AgentMessage(text="hm"),),
    {".autonoe/status.json": status_json({"a": "pending", "b": "blocked"}), "half.txt": "code"},
    error=CRASH.error,
)
REFUTES = delivers("refuted", "ab", **ONE)
DELIVERED: Turns = {
    "initializer": [delivers(**NONE)],
    "coding": [HALF, delivers("one", **ONE), delivers("two", **BOTH), delivers("three", **BOTH)],
    "verify": [REFUTES, delivers("four", "a", **BOTH), delivers("five", "b", **BOTH)],
}
UNDELIVERED: Turns = {
    "initializer": [delivers(**NONE)],
    "coding": [delivers(), delivers("one", **ONE), delivers(), delivers(), delivers()],
}
SYNC: Turns = {
    "sync": [CRASH, delivers("one", **ONE)],
    "verify": [delivers(verifies="a"), delivers(verifies="b")],
}

BUILT: Turns = {
    "plan": [builds("docs: plan", J1="open", J2="open")],
    "build": [
        builds("feat: one", ok="1", J1="done", J2="open"),
        CRASH,
        builds("feat: two", J1="done", J2="done"),  # refuted
        builds("fix: two", ok="2", done=True, J1="done", J2="done"),
    ],
}
REFUTED_BUILD: Turns = {
    "plan": [builds(J1="open")],
    "build": [builds(f"feat: {n}", J1="done") for n in range(3)],
}

CODING = Scenario(CodingProcess, TWO_ITERATIONS, "approved", 7, kills=12)
DELIVER = Scenario(DeliverProcess, DELIVERED, "approved", 8, kills=12)
PLAN_BUILD = Scenario(PlanBuildProcess, BUILT, "approved", 5, kills=12)
WATCH = Scenario(WatchProcess, ITEM, "interrupted", 8, kills=12)
LOOPS = {"coding": CODING, "deliver": DELIVER, "plan_build": PLAN_BUILD}
"""The story of each loop that a person resumes."""

WAITING = {"wait_for_quota": True}
SCENARIOS = {
    **LOOPS,
    "watch": WATCH,
    "coding spec issue": Scenario(CodingProcess, SPEC_ISSUE, "spec_issue", 3),
    "coding same findings": Scenario(CodingProcess, SAME_FINDINGS, "stalled", 6),
    "coding quota wait": Scenario(
        CodingProcess,
        instead(TWO_ITERATIONS, "implementing", 2, limited_until(work("DONE", "two"), 50)),
        "approved",
        7,
        WAITING,
        waits=True,
    ),
    "deliver stalled": Scenario(DeliverProcess, UNDELIVERED, "stalled", 6),
    "deliver sync": Scenario(DeliverProcess, SYNC, "approved", 4, {"workflow": "sync"}),
    "deliver limit": Scenario(DeliverProcess, DELIVERED, "max_iterations", 3, {"max_sessions": 3}),
    "plan_build refuted": Scenario(PlanBuildProcess, REFUTED_BUILD, "ended", 4),
    "plan_build planned": Scenario(PlanBuildProcess, BUILT, "ended", 1, {"plan_only": True}),
}


# -- instants

Instant = dict[str, bytes]
"""The files of a folder, by path."""


class Instants:
    """The files of a folder at some of the changes in it: every `stride` one, and nasty ones.

    Nasty is a commit that is not recorded yet (`commit`), a stage that has ended without a recorded
    outcome (`outcome`), an item that is about to be archived (`approved`) or archived but not
    recorded (`archived`), and the start of a wait (`wait`).
    """

    def __init__(self, folder: Path, stride: int) -> None:
        self._folder, self._stride = folder, stride
        self._changes = 0
        self._seen: Counter[str] = Counter()
        self._journal = ""
        self.kept: list[Instant] = []
        self.nasty: dict[str, list[Instant]] = defaultdict(list)
        """The same by kind; "" is that of all others."""
        self.torn: list[Instant] = []
        """Those within a journal's line."""

    def committed(self) -> None:
        """Keep the folder between a commit and its record."""
        self._take("commit")

    def finish(self) -> None:
        """Keep the folder at the end."""
        self._keep("")

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Observe journal entries and the archiving of backlog items."""
        append, archive = Journal.append, Backlog.archive

        def appended(journal: Journal, event: ev.Event, **kwargs: Any) -> Any:
            self._take("outcome" if isinstance(event, ev.StageFinished) else "")
            entry = append(journal, event, **kwargs)
            self._journal = journal.path.relative_to(self._folder).as_posix()
            self._take("wait" if isinstance(event, ev.QuotaWaiting) else "")
            return entry

        def archived(backlog: Backlog, *args: Any) -> Any:
            self._take("approved")
            done = archive(backlog, *args)
            self._take("archived")
            return done

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Journal, "append", appended)
            patch.setattr(Backlog, "archive", archived)
            yield

    def _take(self, nasty: str) -> None:
        self._changes += 1
        self._seen[nasty] += 1
        if nasty and self._seen[nasty] in ((2, 5) if nasty == "outcome" else (1, 2)):
            self._keep(nasty)
        elif self._changes % self._stride == 0:
            self._keep("")

    def _keep(self, nasty: str) -> None:
        now = {
            path.relative_to(self._folder).as_posix(): path.read_bytes()
            for path in self._folder.rglob("*")
            if path.is_file() and not path.name.startswith("lock")
        }
        self.kept.append(now)
        self.nasty[nasty].append(now)
        whole = now.get(self._journal, b"")
        start = whole.rstrip(b"\n").rfind(b"\n") + 1
        if start:
            self.torn.append({**now, self._journal: whole[: (start + len(whole)) // 2]})


def spread(count: int, items: list[Instant]) -> list[Instant]:
    """Return `count` of the items, evenly spread from the first to the last."""
    if len(items) <= count:
        return items
    return [items[round(n * (len(items) - 1) / max(1, count - 1))] for n in range(count)]


class Uninterrupted:
    """A run from beginning to end, and the instants of its folder."""

    def __init__(self, scenario: Scenario, place: Path) -> None:
        self.scenario = scenario
        folder = place / "uninterrupted"
        folder.mkdir(parents=True)
        instants = Instants(folder, stride=5)
        self.process = process = scenario.process(folder, changed=instants.committed)
        process.prepare()
        with instants.watched():
            self.story: Story[Any] = process.run(**scenario.options)
        instants.finish()
        process.assert_released()
        assert self.story.completed or isinstance(process, WatchProcess), self.story
        self.nasty, self.torn = instants.nasty, instants.torn
        self.end = process.end(waits=scenario.waits)
        assert scenario.state == process.journals[0].state
        assert scenario.sessions == len(self.end.sessions)
        assert self.end.sessions == process.agent.begun
        assert [] == self.end.session_files

    def kills(self, share: int = 1) -> list[Instant]:
        """Return instants at which to kill the run: nasty ones, spread ones, and half lines.

        With a `share` above 1, only that part of the spread ones is returned.
        """
        nasty = [instants[0] for kind, instants in self.nasty.items() if kind]
        return [
            *nasty,
            *spread((self.scenario.kills - len(nasty)) // share, self.nasty[""]),
            *spread(max(1, self.scenario.kills // 4 // share), self.torn),
        ]

    @property
    def journal(self) -> JournalFile:
        return self.process.journal

    @property
    def seconds(self) -> float:
        """The duration of the run."""
        entries = self.process.runs[-1].entries
        return (entries[-1].at - self.process.runs[0].entries[0].at).total_seconds()

    def copy(self, folder: Path) -> Process:
        """Return a process in a copy of its folder at the end."""
        return self.at(self.nasty[""][-1], folder)

    def assert_resumes(self, process: Process, *, at: float = LATER, **given: Any) -> Story[Any]:
        """Finish the run: it comes to the same end, and no finished session is repeated."""
        before, done = process.runs, process.finished()
        log, lost = self.process.session_log, sum(map(lost_sessions, before))
        story = process.finish(at=at, **{**self.scenario.options, **given})
        assert self.end == process.end(waits=self.scenario.waits)
        assert [s for s in self.end.sessions if s not in done] == process.agent.begun
        assert log == (process.session_log or log)
        assert cost_of(self.process.runs) + COST * lost == cost_of(process.runs)
        process.assert_released()
        if before and not isinstance(process, WatchProcess):
            assert [RunState.of(before[0].entries).totals] == story.of(ev.RunResumed)
            assert isinstance(story.last, type(self.story.last))
            costs = story.of(ev.StageCost)
            assert not costs or cost_of(process.runs) == costs[-1].total_cost
        return story

    def at(self, instant: Instant, folder: Path) -> Process:
        """Return a process in a folder as it was in that instant."""
        for name, content in instant.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return self.scenario.process(folder)


def cost_of(runs: list[JournalFile]) -> float:
    """Return what all sessions of the runs cost."""
    return sum(RunState.of(run.entries).totals.cost_usd or 0.0 for run in runs)


def lost_sessions(run: JournalFile) -> int:
    """Return the number of sessions that reported a cost in a stage that did not finish."""
    ended: Counter[str | None] = Counter()
    lost = 0
    for entry in run.entries:
        match entry.event:
            case ev.StageStarted():
                lost += ended.pop(entry.stage, 0)
            case ev.SessionEnded() if entry.event.cost_usd:
                ended[entry.stage] += 1
            case ev.StageFinished():
                ended.pop(entry.stage, 0)
            case _:
                pass
    return lost + ended.total()
