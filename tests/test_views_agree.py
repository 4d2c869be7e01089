"""All views of a journal agree: summary, runs, report, page, board, notification and span."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

import pytest
from reactivex import from_iterable

import cuggino
from cuggino import events as ev
from cuggino.notify.messages import result_message
from cuggino.notify.night import Night
from cuggino.report import build_report
from cuggino.report.wording import state_of
from cuggino.runs import Runs, RunState, project_status
from cuggino.storage import Workspace
from cuggino.storage.journal import Entry, Journal, read_journal
from cuggino.web.board import BoardReader, Live, live_line
from cuggino_cli.screen.fragments import paint
from cuggino_cli.screen.overview import status_fragments
from cuggino_cli.screen.runs import STATES
from cuggino_cli.screen.summary import summary_fragments
from cuggino_cli.top.rows import rows
from tests.report.journals import FOLDER, NAMES, START, begin, entries_of
from tests.telemetry.exported import Exported, needs_otel

COMMIT = ev.CommitPerformed(iteration=1, commit_hash="a1b2c3d", message="Do it\n\nwell")
SEEN = ev.CommitSeen(commit_hash="b2c3d4e", subject="Do more")
PAID = ev.SessionEnded(outcome="completed", cost_usd=0.25, usage=ev.Usage(input_tokens=10))
CUT = ev.UsageUpdate(usage=ev.Usage(input_tokens=7), cost_usd=0.125)
TASK = ev.Progress(content="one")


Said: TypeAlias = ev.Event | tuple[str | None, ev.Event]


def of_stage(stage: str, *events: ev.Event) -> list[Said]:
    return [begin(stage), *((stage, event) for event in events)]


CODING: tuple[Said, ...] = (
    ev.IterationStart(iteration=1, max_iterations=3),
    ev.ImplementingStart(iteration=1),
    *of_stage("implementing#1", CUT, TASK, COMMIT),
    ev.RunContinued(),
    ev.IterationStart(iteration=1, max_iterations=3),
    ev.ImplementingStart(iteration=1),
    *of_stage("implementing#1", PAID, TASK, COMMIT),
    ("implementing#1", ev.StageFinished(outcome={"_tag": "Progress", "content": "one"})),
    ev.LoopApproved(iteration=1),
)
PLAN_BUILD: tuple[Said, ...] = (
    ev.PlanBuildPhaseStarted(phase="build", iteration=1),
    *of_stage("build#1", PAID, SEEN),
    ev.PlanBuildPhaseStarted(phase="verify", iteration=2),
    *of_stage("verify#2", PAID, SEEN),
    ev.PlanBuildEnded(reason="complete", iterations=2),
)
DELIVER: tuple[Said, ...] = (
    ev.DeliverSessionStarted(session=1, instruction="coding"),
    *of_stage("session#1", PAID, COMMIT),
    ev.DeliverSessionStarted(session=2, instruction="coding"),
    *of_stage("session#2", CUT),
    ev.DeliverEnded(reason="all_passed"),
)
BUILT = {
    "coding": entries_of(*CODING),
    "plan_build": entries_of(*PLAN_BUILD),
    "deliver": entries_of(*DELIVER),
}
JOURNALS: dict[str, Sequence[Entry]] = {
    **{name: read_journal(FOLDER / f"{name}.jsonl").entries for name in NAMES},
    **BUILT,
}


@dataclass(frozen=True)
class Facts:
    """What a view says about a run; None for what it leaves out."""

    cost_usd: float | None
    commits: int | None = None
    tasks: int | None = None
    rounds: int | None = None

    def agree(self, whole: Facts) -> None:
        """Check that all of it is said by the totals of the journal."""
        for name in ("cost_usd", "commits", "tasks", "rounds"):
            mine, all_of_it = getattr(self, name), getattr(whole, name)
            assert mine is None or pytest.approx(all_of_it) == mine, name


def live(entries: Sequence[Entry]) -> list[tuple[datetime, ev.Event]]:
    """Return what the last process of a run emits: it begins with the totals of earlier ones."""
    at = max((n for n, e in enumerate(entries) if isinstance(e.event, ev.RunContinued)), default=0)
    earlier = [(entries[at].at, RunState.of(entries[:at]).totals)] if at else []
    return [*earlier, *((e.at, e.event) for e in entries[at:] if not ev.is_journal_event(e.event))]


def dollars(text: str) -> float | None:
    """Return the dollars that a text names, 0 for none."""
    found = re.search(r"\$([\d.,]+)", text)
    return float(found[1].replace(",", "")) if found else None


def runs(entries: Sequence[Entry]) -> Facts:
    """`cuggino runs`, and what a resumed run begins with."""
    totals = RunState.of(entries).totals
    return Facts(totals.cost_usd, len(totals.commits), totals.tasks, totals.rounds)


def summary(entries: Sequence[Entry]) -> Facts:
    """The end of the terminal's output."""
    shown = RunState()
    for at, event in live(entries):
        shown = shown.add(event, at=at)
    text = paint(summary_fragments(shown, duration_s=1), color=False)
    rows = dict(re.findall(r"^  (Commits|Tasks|Iterations|Sessions) +(\d+)$", text, re.MULTILINE))
    counted = {name: int(value) for name, value in rows.items()}
    rounds = counted.get("Iterations", counted.get("Sessions"))
    return Facts(shown.cost_usd, counted.get("Commits"), counted.get("Tasks"), rounds)


def report(entries: Sequence[Entry]) -> Facts:
    """The report, and the page of the run."""
    made = build_report(entries)
    return Facts(made.totals.cost_usd, len(made.commits), made.totals.tasks, made.totals.rounds)


def status(entries: Sequence[Entry]) -> Facts:
    """`cuggino status` and the terminal's status area."""
    activity = RunState()
    for entry in entries:
        activity = activity.add(entry.event, at=entry.at, stage=entry.stage)
    return Facts(activity.cost_usd)


def board(entries: Sequence[Entry]) -> Facts:
    """The live page's board."""
    line = live_line(Live(Path("/nowhere"), RunState.of(entries), entries[0], entries[-1]))
    return Facts(line.cost_usd, line.commits)


def notification(entries: Sequence[Entry]) -> Facts:
    """The notification at the end."""
    night, at = Night(), entries[-1].at
    for moment, event in live(entries):
        night = night.add(event, moment)
    text = "\n".join(night.facts(at))
    commits = re.search(r"(\d+) commits?\b", text)
    cents = dollars(text)
    whole = RunState.of(entries).totals.cost_usd
    is_rounded = cents is not None and whole is not None and abs(cents - whole) < 0.006
    return Facts(whole if is_rounded else cents, int(commits[1]) if commits else 0)


VIEWS = (runs, summary, report, status, board, notification)


@pytest.mark.parametrize("name", JOURNALS)
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.__name__)
def test_views(view: Callable[[Sequence[Entry]], Facts], name: str) -> None:
    """Whatever shows a run, shows the same cost, commits and tasks."""
    view(JOURNALS[name]).agree(runs(JOURNALS[name]))


@needs_otel
@pytest.mark.parametrize("name", BUILT)
def test_spans(name: str) -> None:
    """The span of a run has the cost of its process."""
    entries = BUILT[name]
    if any(isinstance(entry.event, ev.RunContinued) for entry in entries):
        entries = entries[: [type(e.event) for e in entries].index(ev.RunContinued)]
    memory = Exported()
    events = from_iterable([event for _, event in live(entries)])
    cuggino.run(events.pipe(memory.operator()))
    (root,) = (span for span in memory.spans if not span.parent)
    assert (
        pytest.approx(RunState.of(entries).totals.cost_usd) == root.attributes["cuggino.cost_usd"]
    )


def test_the_built_journals() -> None:
    """What they say is counted by hand."""
    expected = {
        "coding": Facts(0.375, 1, 1, 1),
        "plan_build": Facts(0.5, 1, 0, 2),
        "deliver": Facts(0.375, 1, 0, 2),
    }
    assert expected == {name: runs(entries) for name, entries in BUILT.items()}


STALLED = "Stopped without progress"
NO_NET = {"reason": "max_retries_exceeded", "error": "no net"}
ENDS: Sequence[tuple[str, str, ev.Event, ev.EndState, str]] = (
    ("passed", "Passed", ev.DeliverEnded(reason="all_passed"), "approved", ""),
    ("verified", "Verified", ev.DeliverEnded(reason="all_verified"), "approved", ""),
    (
        "all blocked",
        "Everything left is blocked",
        ev.DeliverEnded(reason="all_blocked"),
        "ended",
        "",
    ),
    ("stalled", STALLED, ev.DeliverEnded.model_validate(NO_NET), "stalled", "no net"),
    ("approved", "Approved", ev.PlanBuildEnded(reason="complete"), "approved", ""),
    ("stalled", STALLED, ev.PlanBuildEnded.model_validate(NO_NET), "stalled", "no net"),
    (
        *("stalled", STALLED),
        ev.LoopStalled(iteration=1, reason="no_progress", message="idle"),
        *("stalled", "idle"),
    ),
)
"""The state in words, the title of the notification, the last events of a run, and the cause."""


@pytest.mark.parametrize(("word", "title", "result", "state", "cause"), ENDS)
def test_the_end(
    tmp_path: Path, word: str, title: str, result: ev.Event, state: ev.EndState, cause: str
) -> None:
    """Every view names the end of a run alike, and its cause."""
    workspace = Workspace(tmp_path)
    workspace.open()
    started = {ev.DeliverEnded: "deliver", ev.PlanBuildEnded: "loop"}
    kind = started.get(type(result), "run")
    begun = ev.RunStarted.model_validate(
        {
            "run_id": "0193b2c1-0000-7000-8000-000000000000",
            "kind": kind,
            "command": f"cuggino {kind}",
            "agent": "claude",
        }
    )
    journal = Journal.create(workspace.journal, begun, at=START, sync=False)
    for event in (result, ev.RunEnded(state=state)):
        journal.append(event, at=START)
    journal.close()

    run, now = Runs(tmp_path).find(), project_status(tmp_path, at=START)
    assert now.last is not None
    assert (word, cause) == (STATES[run.shown_state][1], run.message)
    assert (word, cause) == (STATES[now.last.shown_state][1], now.last.message)
    shown = paint(status_fragments(now, columns=200), color=False)
    assert f": {word}, " in shown
    assert cause in shown
    last = BoardReader(workspace).read(now=START).last
    assert last is not None
    assert (word, cause) == (state_of(last.state)[0], last.message)
    report = build_report(read_journal(run.path).entries)
    assert word == state_of(report.state, report.reason, report.checked)[0]
    assert word in "".join(paint(row, color=False) for row in rows((now,), START, 200))
    assert isinstance(result, ev.RunResult)
    notified = result_message(result, Night().add(result, START), START, subject="")
    assert cause in notified.body
    assert title == notified.title
