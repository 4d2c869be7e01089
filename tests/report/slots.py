"""A workspace with the journals of a watch with three slots, and of the attempts at its items.

Two items land at once, one after a conflict, one after a red gate, one has nothing to do, one asks,
one is held, and one is parked. `write_slots` may end at any moment, as a killed process would.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from cuggino import events as ev
from cuggino.storage import Workspace
from cuggino.storage.journal import Journal
from tests.report.journals import after
from tests.report.nights import PLAN, name_at

LOGIN, CART, SEARCH = "001-login.md", "002-cart.md", "003-search.md"
INVOICES, PDF, AGAIN, EXPORT = "004-invoices.md", "005-pdf.md", "006-again.md", "007-export.md"
TITLES = {
    LOGIN: "Login page",
    CART: "Fix the cart total",
    SEARCH: "Search with filters",
    INVOICES: "Invoices",
    PDF: "Invoices in PDF",
    AGAIN: "Login page, again",
    EXPORT: "Export orders",
}
END = 910.0
"""The end of the watch, in seconds after its start."""
RED = "tests/test_search.py F\n1 failed, 41 passed\n"
KEPT = "refs/cuggino/kept/002-cart.md-2"
COST = 0.25
"""US dollars of each of the two sessions of an attempt."""

Ending = Literal["approved", "spec_issue", "stalled", "failed"]


def commit(name: str, attempt: int = 1) -> str:
    """Return the hash of a candidate."""
    return f"{int(name[:3])}{attempt}" * 20


def trunk(number: int) -> str:
    """Return the hash of the trunk after `number` landings."""
    return f"a{number}" * 20


def slot_folder(project: Path, slot: int) -> Path:
    """Return the folder of a slot."""
    return project.parent / f"{project.name}.cuggino-slots" / f"slot-{slot}"


@dataclass
class Line:
    """An entry that is to be written."""

    at: float
    event: ev.Event
    stage: str | None = None


@dataclass
class SlotWatch:
    """The entries of a watch, of which several items are at work at once, and of its attempts."""

    project: Path
    lines: list[Line] = field(default_factory=list)
    attempts: list[tuple[ev.RunStarted, list[Line]]] = field(default_factory=list)

    def say(
        self, at: float, event: ev.Event, item: str | None = None, *, stage: str | None = None
    ) -> None:
        """Add an event of the watch, perhaps of an item."""
        named = item or getattr(event, "filename", None)
        self.lines.append(Line(at, event.of_item(named) if named else event, stage))

    def attempt(
        self,
        name: str,
        slot: int,
        begin: float,
        end: float,
        *,
        number: int = 1,
        ending: Ending = "approved",
    ) -> None:
        """Add an attempt at an item in a slot, with the journal of its run."""
        position, total = [*TITLES].index(name) + 1, len(TITLES)
        begun = ev.WatchProcessingItem(
            filename=name, title=TITLES[name], position=position, total=total, slot=slot
        )
        self.say(begin, begun)
        folder = slot_folder(self.project, slot)
        prepared = ev.WatchSlotPrepared(
            filename=name, slot=slot, folder=str(folder), base=trunk(number)
        )
        self.say(begin + 1, prepared)
        started = ev.RunStarted(
            run_id=name_at(after(begin + 2), 10 * int(name[:3]) + number),
            kind="run",
            command="cuggino watch --slots 3",
            item=f"{name} 0123abcd",
            focus=f"The file `.cuggino/backlog/{name}`, with this content:\n\n# {TITLES[name]}\n",
            agent="claude",
            options={"slot": slot},
        )
        lines = [*_work(folder, begin + 3, end, commit(name, number), ending)]
        self.attempts.append((started, lines))
        wanted = (
            ev.SessionEnded,
            ev.UsageUpdate,
            ev.LoopApproved,
            ev.LoopSpecIssue,
            ev.LoopStalled,
        )
        for line in lines:
            if isinstance(line.event, wanted):
                self.say(line.at, line.event, name, stage="slots")

    def candidate(self, name: str, slot: int, at: float, *, number: int = 1) -> None:
        """Add the candidate of an attempt."""
        made = ev.WatchCandidate(
            filename=name,
            slot=slot,
            commit=commit(name, number),
            base=trunk(number),
            attempt=number,
        )
        self.say(at, made)

    def landing(
        self, name: str, begin: float, end: float, on: int, *, number: int = 1, checks: bool = True
    ) -> None:
        """Add the beginning of a landing; `on` counts those before it."""
        begun = ev.WatchLanding(filename=name, commit=commit(name, number), trunk=trunk(on))
        self.say(begin, begun)
        if checks:
            check = ev.CheckCommandStarted(iteration=1, command="make test")
            self.say(begin + 1, check, name, stage="slots")
            red = name == SEARCH and number == 1
            output = ev.CheckCommandOutput(
                iteration=1, output=RED if red else "ok\n", exit_code=red
            )
            self.say(end - 1, output, name, stage="slots")

    def landed(self, name: str, at: float, on: int, *, nothing: bool = False) -> None:
        """Add a landing and what follows it."""
        now = on if nothing else on + 1
        landed = ev.WatchLanded(
            filename=name, commit=trunk(now), trunk_was=trunk(on), nothing=nothing
        )
        self.say(at, landed)
        self.say(at + 2, ev.WatchItemCompleted(filename=name))

    def write(self, *, until: float = END + 1) -> str:
        """Write the journals up to a moment; return the id of the watch."""
        workspace = Workspace(self.project)
        options: dict[str, JsonValue] = {"slots": 3}
        started = ev.RunStarted(
            run_id=name_at(after(0), 0),
            kind="watch",
            command="cuggino watch --slots 3",
            agent="claude",
            options=options,
        )
        _write(workspace, started, 0, self.lines, until)
        for begun, lines in self.attempts:
            _write(workspace, begun, lines[0].at, lines, until)
        return started.run_id


def _write(
    workspace: Workspace, started: ev.RunStarted, begin: float, lines: Iterable[Line], until: float
) -> None:
    if begin > until:
        return
    journal = Journal.create(workspace.journal, started, at=after(begin), sync=False)
    for line in sorted(lines, key=lambda one: one.at):
        if line.at <= until:
            journal.append(line.event, at=after(line.at), stage=line.stage)
    journal.close()


def _work(folder: Path, begin: float, end: float, made: str, ending: Ending) -> Iterable[Line]:
    """Yield the entries of a run."""

    def at(share: float) -> float:
        return round(begin + share * (end - begin), 3)

    def spent(stage: str, share: float) -> Iterable[Line]:
        usage = ev.Usage(input_tokens=900, output_tokens=300, cache_read_tokens=40_000)
        early = ev.Usage(input_tokens=400, output_tokens=100, cache_read_tokens=20_000)
        yield Line(at(share - 0.1), ev.UsageUpdate(usage=early, cost_usd=COST / 2), stage)
        ended = ev.SessionEnded(outcome="completed", cost_usd=COST, usage=usage)
        yield Line(at(share), ended, stage)

    def done(stage: str, share: float, outcome: ev.Event) -> Iterable[Line]:
        yield Line(at(share), outcome, stage)
        value = json.loads(ev.dump_event(outcome))
        yield Line(at(share), ev.StageFinished(outcome=value), stage)

    yield Line(at(0), ev.IterationStart(iteration=1, max_iterations=3))
    yield Line(at(0), ev.PlanningStart(iteration=1))
    yield Line(at(0), ev.StageStarted(name="planning"), "planning#1")
    yield Line(at(0.05), ev.AgentMessage(text="I read the specification."), "planning#1")
    yield from spent("planning#1", 0.3)
    if ending == "spec_issue":
        issue = ev.LoopSpecIssue(iteration=1, content="# PDF or HTML?", filename="issue.md")
        yield Line(at(0.9), issue)
        yield Line(at(1), ev.RunEnded(state="spec_issue"))
        return
    yield from done("planning#1", 0.3, ev.PlanComplete(content="two tasks"))
    yield Line(at(0.31), ev.PlanWritten(iteration=1, text=PLAN))
    yield Line(at(0.32), ev.ImplementingStart(iteration=1))
    yield Line(at(0.32), ev.StageStarted(name="implementing"), "implementing#2")
    yield Line(at(0.4), ev.AgentMessage(text="The form **comes first**."), "implementing#2")
    edit: dict[str, JsonValue] = {"file_path": str(folder / "app" / "form.py")}
    yield Line(at(0.45), ev.ToolCall(name="Write", input=edit, id="1"), "implementing#2")
    yield Line(at(0.5), ev.ToolResult(name="1", output="ok"), "implementing#2")
    yield from spent("implementing#2", 0.8)
    yield from done("implementing#2", 0.8, ev.Progress(content="Sign-in form with validation"))
    if ending == "stalled":
        stalled = ev.LoopStalled(iteration=1, reason="no_progress", message="nothing changes")
        yield Line(at(0.9), stalled)
        yield Line(at(1), ev.RunEnded(state="stalled"))
        return
    yield Line(at(0.85), ev.StageStarted(name="commit"), "commit#3")
    performed = ev.CommitPerformed(iteration=1, commit_hash=made[:10], message="Add the form")
    yield from done("commit#3", 0.86, performed)
    yield Line(at(0.87), ev.ReviewingStart(iteration=1))
    if ending == "approved":
        yield Line(at(0.95), ev.LoopApproved(iteration=1))
    yield Line(at(1), ev.RunEnded(state=ending))


def slot_watch(project: Path) -> SlotWatch:
    """Return a watch with three slots and seven items, which ends after `END` seconds."""
    watch = SlotWatch(project)
    watch.say(1, ev.WatchItemHeld(filename=PDF, reason=f"after {INVOICES}, which has not landed"))
    watch.attempt(LOGIN, 1, 2, 300)
    watch.attempt(CART, 2, 2, 400)
    watch.attempt(SEARCH, 3, 2, 500)
    watch.candidate(LOGIN, 1, 301)
    watch.landing(LOGIN, 302, 330, 0)
    watch.landed(LOGIN, 330, 0)
    watch.say(331, ev.WatchFollowed(branch="main", commit=trunk(1)))
    watch.attempt(INVOICES, 1, 333, 450, ending="spec_issue")
    watch.say(
        451, ev.WatchItemHeld(filename=PDF, reason=f"after {INVOICES}, which asks a question")
    )
    watch.candidate(CART, 2, 401)
    watch.landing(CART, 402, 405, 1, checks=False)
    conflict = ev.WatchSentBack(
        filename=CART,
        reason="conflict",
        output="CONFLICT (content): Merge conflict in app/cart.py\n",
        paths=("app/cart.py",),
        returns=1,
    )
    watch.say(405, conflict)
    watch.attempt(CART, 2, 406, 600, number=2)
    watch.say(420, ev.WatchSlotsChanged(active=2, slots=3, reason="overloaded"))
    watch.say(455, ev.WatchSlotsChanged(active=3, slots=3, reason="an item went well"))
    watch.attempt(AGAIN, 1, 460, 590)
    watch.candidate(SEARCH, 3, 501)
    watch.landing(SEARCH, 502, 560, 1)
    red = ev.WatchSentBack(filename=SEARCH, reason="check", output=RED, returns=1)
    watch.say(560, red)
    watch.attempt(SEARCH, 3, 561, 800, number=2)
    watch.candidate(AGAIN, 1, 591)
    watch.candidate(CART, 2, 601, number=2)
    watch.landing(CART, 602, 640, 1, number=2)
    watch.landed(CART, 640, 1)
    dirty = "files of yours are in the way"
    delayed = ev.WatchFollowDelayed(
        branch="main", commit=trunk(2), reason=dirty, paths=("README.md",)
    )
    watch.say(641, delayed)
    watch.say(
        643, ev.WatchWorkKept(ref=KEPT, slot=2, filename=CART, reason="files were left behind")
    )
    watch.landing(AGAIN, 644, 646, 2, checks=False)
    watch.landed(AGAIN, 646, 2, nothing=True)
    watch.attempt(EXPORT, 2, 650, 740, ending="failed")
    failed = ev.WatchItemRetry(
        filename=EXPORT, message="the agent crashed", attempt=1, max_attempts=2, retry_in=30
    )
    watch.say(741, failed)
    watch.say(700, ev.WatchFollowed(branch="main", commit=trunk(2)))
    watch.attempt(EXPORT, 2, 772, 890, number=2, ending="stalled")
    watch.candidate(SEARCH, 3, 801, number=2)
    watch.landing(SEARCH, 802, 850, 2, number=2)
    watch.landed(SEARCH, 850, 2)
    watch.say(851, ev.WatchFollowed(branch="main", commit=trunk(3)))
    watch.say(891, ev.WatchItemParked(filename=EXPORT, reason="no progress: nothing changes"))
    watch.say(END, ev.RunEnded(state="ended"))
    return watch


def write_backlog(project: Path, *names: str) -> None:
    """Write these items, or all, to the backlog."""
    workspace = Workspace(project)
    workspace.open()
    workspace.backlog.mkdir(parents=True, exist_ok=True)
    for name in names or TITLES:
        (workspace.backlog / name).write_text(f"# {TITLES[name]}\n", encoding="utf-8")


def write_slots(project: Path, *, until: float = END) -> str:
    """Write the journals of the watch and of its attempts; return the id of the watch."""
    return slot_watch(project).write(until=until)
