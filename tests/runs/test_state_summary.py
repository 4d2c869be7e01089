"""What a state says at the end of a run, and laws of the state on recorded journals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from cuggino import events as ev
from cuggino.domain import RunCommit
from cuggino.runs import (
    DIGESTED,
    Delivery,
    Runs,
    RunState,
    RunStats,
    StatsRow,
    run_stats,
    stats_json,
)
from cuggino.storage.journal import (
    Entry,
    Journal,
    JournalFile,
    JournalTail,
    iter_entries,
    read_journal,
    skim,
)
from tests.cli.recorded_deliveries import (
    DONE,
    TURNS,
    deliver,
    go_on,
    hanging,
    latest,
    path_of,
    turn,
)
from tests.events.generated import EVENTS, events_of
from tests.report.journals import FOLDER, NAMES
from tests.runs.test_state import START, after
from tests.vectors import each

ROUND = ev.IterationStart(iteration=1, max_iterations=3)
APPROVED = ev.LoopApproved(iteration=1)
ISSUE = ev.LoopSpecIssue(iteration=1, content="unclear", filename="x.md")


OF_TALLY = ("rounds", "tasks", "agents", "commits")
OF_STATE = (
    *("ending", "cost_usd", "usage", "done", "parked", "landings", "sent_back_count", "kind"),
    *("deliverables", "failed_commits", "failed_push", "gate_changed", "lost_base", "tbd_files"),
    *("spec_issue_file", "calls"),
)


def facts(run: RunState) -> dict[str, Any]:
    """Return what a summary shows."""
    counts = {name: getattr(run.tally, name) for name in OF_TALLY}
    return counts | {name: getattr(run, name) for name in OF_STATE}


def shown(**given: Any) -> dict[str, Any]:
    """Return the facts of an empty state, but for those given."""
    return {**facts(RunState()), **given}


folded = after


def test_whole_run() -> None:
    """A run of two iterations counts iterations, agents and tasks, and lists its commits."""
    summary = folded(
        ROUND,
        ev.PlanningStart(iteration=1),
        ev.ImplementingStart(iteration=1),
        ev.Progress(content="one"),
        ev.CommitPerformed(iteration=1, commit_hash="a1", message="\nAdd a\n\nwith care"),
        ev.ImplementingStart(iteration=1),
        ev.Done(content="two"),
        ev.CommitFailed(iteration=1, message="locked"),
        ev.ReviewingStart(iteration=1),
        ev.IterationStart(iteration=2, max_iterations=3),
        ev.PlanningStart(iteration=2),
        ev.ImplementingStart(iteration=2),
        ev.NoMoreWork(content=""),
        ev.ReviewingStart(iteration=2),
        APPROVED,
    )
    assert facts(summary) == shown(
        ending="approved",
        rounds=2,
        tasks=2,
        agents=7,
        commits=(RunCommit("a1", "Add a"),),
        failed_commits=("locked",),
    )


@each(
    "expected, event",
    [
        ({"ending": "approved"}, APPROVED),
        (
            {"ending": "max_iterations"},
            ev.LoopMaxIterations(iteration=3, max_iterations=3),
        ),
        (
            {"ending": "spec_issue", "spec_issue_file": "x.md", "calls": ("Answer: unclear",)},
            ISSUE,
        ),
        ({"gate_changed": ("check.sh",)}, ev.GateChanged(iteration=1, paths=("check.sh",))),
        ({"lost_base": "a1"}, ev.HistoryRewritten(base="a1", head="b2")),
    ],
)
def test_single_events(expected: dict[str, Any], event: ev.Event) -> None:
    """The last event of a loop is its outcome; what a person should look at is kept."""
    assert shown(**expected) == facts(folded(event))


def test_a_later_push_has_the_commits_of_a_failed_one() -> None:
    """Only the failure of the last push is kept."""
    failed = ev.PushFailed(iteration=1, message="rejected")
    pushed = ev.PushPerformed(iteration=1, commit_hash="a1", remote="origin/main")
    assert "rejected" == folded(failed).failed_push == folded(pushed, failed).failed_push
    assert "" == folded(failed, pushed).failed_push


def test_watch() -> None:
    """In a watch the counts add up over all items, and each item has a new outcome."""
    item = ev.WatchProcessingItem(filename="a.md")
    first = folded(item, ROUND, ISSUE, ev.WatchItemCompleted(filename="a.md"))
    second = after(ev.WatchAuditStarted(), item, ROUND, start=first)
    assert facts(first) == shown(
        ending="spec_issue",
        rounds=1,
        done=1,
        spec_issue_file="x.md",
        kind="watch",
        calls=("Answer: unclear",),
    )
    assert facts(second) == shown(rounds=2, agents=1, done=1, kind="watch")
    assert "interrupted" == after(ev.RunEnded(state="interrupted"), start=first).ending
    assert "spec_issue" == after(ev.RunEnded(state="ended"), start=first).ending


@each("outcome", ["failed", "interrupted"])
def test_ended_from_outside(outcome: ev.RunOutcome) -> None:
    """A failure or an interruption from the runner overrides the outcome of the events."""
    assert outcome == folded(ROUND).ended(outcome).ending


def test_a_resumed_run_counts_once() -> None:
    """A resumed run adds its counts to an empty summary and to no other."""
    resumed = ev.RunResumed(
        run_id="r",
        stages=2,
        rounds=2,
        tasks=3,
        agents=5,
        commits=(("a1", "Add a"),),
        cost_usd=0.5,
        usage=ev.Usage(input_tokens=7),
        duration=9.0,
    )
    alone = folded(resumed)
    assert (2, 3, 5, 0.5) == (
        *(alone.tally.rounds, alone.tally.tasks, alone.tally.agents),
        alone.cost_usd,
    )
    assert (9.0, 14.0) == (alone.earlier, alone.elapsed(START + timedelta(seconds=5)))
    assert (RunCommit("a1", "Add a"),) == alone.commits
    assert ev.Usage(input_tokens=7) == alone.usage
    watched = folded(ev.WatchProcessingItem(filename="a.md"), ev.PlanningStart(iteration=1))
    assert facts(watched) == facts(after(resumed, start=watched))


LISTED = ev.DeliverablesListed(
    deliverables=(
        ev.DeliverableState(id="a", description="a", status="passed"),
        ev.DeliverableState(id="b", description="b", status="pending"),
    )
)


def test_delivery() -> None:
    """In the deliverables loop sessions are iterations and agents, and the last list counts."""
    first = ev.DeliverSessionStarted(session=1, instruction="initializer")
    second = ev.DeliverSessionStarted(session=2, instruction="coding")
    summary = folded(ev.DeliverablesListed(), first, LISTED, second, LISTED)
    expected = shown(rounds=2, agents=2, kind="deliver", deliverables=LISTED)
    assert expected == facts(summary)
    assert "deliver" == folded(first).kind
    assert "deliver" == folded(LISTED).kind
    assert "" == folded(ROUND).kind


@each(
    "reason, outcome",
    [
        ("all_passed", "approved"),
        ("all_verified", "approved"),
        ("all_blocked", "blocked"),
        ("max_iterations", "max_iterations"),
        ("max_retries_exceeded", "stalled"),
        ("stalled", "stalled"),
        ("quota_exceeded", "quota"),
        ("budget_exceeded", "budget"),
        ("failed", "failed"),
        ("interrupted", "interrupted"),
    ],
)
def test_how_a_delivery_ends(reason: ev.DeliverExit, outcome: ev.RunOutcome) -> None:
    """The deliverables loop reports each of its outcomes."""
    ended = folded(ev.DeliverEnded(reason=reason))
    assert (outcome, "deliver") == (ended.ending, ended.kind)


def test_a_watch_with_slots() -> None:
    """Landings and returns are counted; a resumed item changes no totals of the watch."""
    resumed = ev.RunResumed(run_id="r", stages=1, rounds=7, cost_usd=9.0, item="a.md")
    landed = ev.WatchLanded(filename="a.md", commit="c", trunk_was="b")
    back = ev.WatchSentBack(filename="b.md", reason="check", returns=1)
    expected = shown(landings=(RunCommit("c", "a"),), sent_back_count=1)
    assert expected == facts(folded(resumed, landed, back))


def test_what_waits_in_a_watch() -> None:
    """A question waits until its item is at work again; with one slot, until any is."""

    def begun(name: str, slot: int) -> ev.WatchProcessingItem:
        return ev.WatchProcessingItem(filename=name, slot=slot)

    parked = ev.WatchItemParked(filename="c.md", reason="no")
    asked = folded(begun("a.md", 1), ISSUE.of_item("a.md"), parked, begun("b.md", 2))
    assert (["a.md"], 1) == ([question.item for question in asked.questions], asked.parked)
    assert not after(begun("a.md", 1), start=asked).questions
    assert not folded(begun("a.md", 0), ISSUE, begun("b.md", 0)).questions


@pytest.mark.parametrize("cls", EVENTS, ids=lambda cls: cls.__name__)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_every_event_can_be_added(cls: type[ev.Event], data: st.DataObject) -> None:
    """Every event leaves the money and the counts at least as high, but for a resumed run."""
    event = data.draw(events_of(cls))
    before = folded(ROUND, ev.UsageUpdate(usage=ev.Usage(input_tokens=1), cost_usd=1.0))
    then = after(event, start=before)
    assert before.tally.rounds <= then.tally.rounds
    assert (then.cost_usd or 0.0) >= 1.0 or isinstance(event, ev.SessionEnded | ev.UsageUpdate)


ALL = {name: tuple(read_journal(FOLDER / f"{name}.jsonl").entries) for name in NAMES}
WHOLE = {
    name: entries
    for name, entries in ALL.items()
    if len(entries) > 3
    if not any(isinstance(e.event, ev.RunContinued | ev.WatchLoopEvent) for e in entries)
}
"""The journals of runs that one process went through."""


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_folding_in_parts(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Who follows a journal as it grows, byte by byte, has the state of who reads all of it."""
    path = FOLDER / f"{name}.jsonl"
    raw = path.read_bytes()
    sizes = data.draw(st.lists(st.integers(1, len(raw)), max_size=5))
    copy = tmp_path_factory.mktemp("tail") / path.name
    tail, state = JournalTail(copy), RunState()
    for size in (*sorted(sizes), len(raw)):
        copy.write_bytes(raw[:size])
        for entry in tail.read():
            state = state.add(entry.event, at=entry.at, stage=entry.stage)
    assert RunState.of(iter_entries(path)) == state


PASSING = ("words", "tools", "wait", "is_idle", "last", "items")


@pytest.mark.parametrize("name", NAMES)
def test_a_partial_read(name: str) -> None:
    """Who reads only the entries that last has the same state, but for what passes."""
    path = FOLDER / f"{name}.jsonl"
    whole = RunState.of(iter_entries(path))
    passing = {field: getattr(whole, field) for field in PASSING}
    for partial in (iter_entries(path, only=DIGESTED), skim(path, DIGESTED, recent=0)):
        assert whole == replace(RunState.of(partial), **passing)


@pytest.mark.parametrize("name", WHOLE)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_kill_and_a_resume(name: str, data: st.DataObject) -> None:
    """A run that was killed at any entry and resumed has done what the undisturbed one has."""
    whole = WHOLE[name]
    killed = data.draw(st.integers(2, len(whole) - 1))
    assert done(whole) == done(resumed(whole, killed))


def resumed(whole: Sequence[Entry], killed: int) -> list[Entry]:
    """Return the journal of the run, killed after so many entries: its stage begins again."""
    stage = whole[killed].stage
    began = killed
    while began and stage is not None and whole[began - 1].stage == stage:
        began -= 1
    events = [
        *((entry.stage, entry.event) for entry in whole[:killed]),
        (None, ev.RunContinued(command="cuggino run --resume")),
        *((entry.stage, entry.event) for entry in whole[began:]),
    ]
    times = [*(entry.at for entry in whole), *(whole[-1].at for _ in range(len(events)))]
    return [
        Entry(seq=seq, at=at, stage=stage, event=event)
        for seq, at, (stage, event) in zip(count(1), times, events, strict=False)
    ]


def done(entries: Sequence[Entry]) -> tuple[object, ...]:
    """Return what a run has done: all but times, tries and what its agents cost."""
    state = RunState.of(entries)
    return (
        *(state.kind, state.run_id, state.focus, state.outcome, state.message, state.result),
        *(state.commits, state.tally.tasks, state.tally.rounds, state.stages.finished),
        *(state.goals, state.goals_met, state.questions, state.iteration, state.tasks),
        *(state.failed_commits, state.gate_changed, state.lost_base, state.is_stopping),
        [(one.stage, one.outcome, one.ending) for one in state.stages.last_tries],
        [(one.id, one.status, one.verified) for one in state.delivery.deliverables],
        [(one.session, one.instruction) for one in state.delivery.sessions],
        [(one.id, one.state, one.issues) for one in state.jobs],
    )


def fold(journal: JournalFile) -> Delivery:
    return RunState.of(journal.entries).delivery


def test_sessions(tmp_path: Path) -> None:
    """Each session has its number, instruction, stage and end; the crash is a failure."""
    delivery = fold(deliver(tmp_path, verify=True))
    assert [
        (1, "initializer", "initializer", "completed", "Planned."),
        (2, "coding", "coding", "completed", "One <done>."),
        (3, "coding", "coding", "error", "it crashed\nin a loop"),
        (4, "coding", "coding", "completed", "All done."),
        (5, "verify", "verify", "completed", ""),
    ] == [
        (
            s.session,
            s.instruction,
            (s.stage or "").partition("#")[0],
            s.ended.outcome,
            s.ended.message,
        )
        for s in delivery.sessions
        if s.ended
    ]
    assert [0, 5, 10, 10, 15] == [s.at.timestamp() for s in delivery.sessions]
    assert [False, False, True, False, False] == [s.is_failure for s in delivery.sessions]
    assert 1 == delivery.failures
    assert delivery.ended is not None
    assert ("all_verified", 2) == (delivery.ended.reason, delivery.ended.verified)


def test_deliverables(tmp_path: Path) -> None:
    """Each deliverable has its status, and the time and session of its last change."""
    delivery = fold(deliver(tmp_path, verify=True))
    assert [
        ("DL-1", "passed", True, [(10, 2, "passed")]),
        ("DL-2", "passed", True, [(15, 4, "passed")]),
        ("DL-3", "blocked", False, [(15, 4, "blocked")]),
    ] == [
        (x.id, x.status, x.verified, [(c.at.timestamp(), c.session, c.status) for c in x.changes])
        for x in delivery.deliverables
    ]


def test_earlier_work_is_no_change(tmp_path: Path) -> None:
    """A run that finds everything done has no session and no change."""
    delivery = fold(deliver(tmp_path, turn(), start={"DL-1": "passed"}))
    (item,) = delivery.deliverables
    assert ("passed", ()) == (item.status, item.changes)
    assert () == delivery.sessions


def test_a_removed_deliverable_comes_last(tmp_path: Path) -> None:
    """A deliverable that a session removes from the list keeps its status."""
    dropped = turn(leaves={"DL-1": "passed (deprecated)", "DL-2": "passed"})
    start = {"DL-1": "pending", "DL-2": "pending"}
    delivery = fold(deliver(tmp_path, dropped, start=start))
    assert [("DL-2", True, "passed"), ("DL-1", False, "pending")] == [
        (x.id, x.is_wanted, x.status) for x in delivery.deliverables
    ]
    assert delivery.listed is not None
    assert ["DL-2"] == [x.id for x in delivery.listed.deliverables]


def test_a_session_of_two_processes_is_one(tmp_path: Path) -> None:
    """A resumed session has two attempts, and the end of the second one."""
    interrupted = deliver(tmp_path, TURNS[0], hanging(), seconds=7)
    delivery = fold(interrupted)
    assert ["completed", "interrupted"] == [s.ended.outcome for s in delivery.sessions if s.ended]
    assert delivery.ended is not None
    assert "interrupted" == delivery.ended.reason
    resumed = go_on(tmp_path, turn(leaves=DONE, words="All done."))
    delivery = fold(resumed)
    assert [(1, 1, "completed"), (2, 2, "completed")] == [
        (s.session, s.attempts, s.ended.outcome) for s in delivery.sessions if s.ended
    ]
    assert delivery.ended is not None
    assert "all_passed" == delivery.ended.reason
    totals = RunState.of(resumed.entries).totals
    assert (2, 0.5) == (totals.rounds, totals.cost_usd)
    assert 2 == delivery.ended.sessions


def test_a_session_that_waits_is_one() -> None:
    """A session that was resumed after a wait has the cost and the time of both parts."""
    begun = ev.DeliverSessionStarted(session=1, instruction="coding")
    part = ev.DeliverSessionEnded(session=1, outcome="completed", cost_usd=0.5, duration=20.0)
    least = part.model_copy(update={"cost_usd": None, "duration": 5.0})
    delivery, at = Delivery(), datetime.now(UTC)
    for event in (begun, ev.StageStarted(name="coding"), part) * 2:
        delivery = delivery.add(event, at, "coding#1")
    for event in (begun, ev.StageStarted(name="coding"), least):
        delivery = delivery.add(event, at, "coding#2")
    (session,) = delivery.sessions
    assert session.ended is not None
    assert (3, 1.0, 45.0) == (session.attempts, session.ended.cost_usd, session.ended.duration)


def test_a_resumed_run_has_not_ended(tmp_path: Path) -> None:
    """The end in an earlier process is discarded once another one resumes."""
    run = deliver(tmp_path, TURNS[0], hanging(), seconds=7)
    journal = Journal.open(path_of(tmp_path))
    journal.append(ev.RunContinued(), at=run.entries[-1].at)
    journal.close()
    assert fold(latest(tmp_path)).ended is None


def test_a_journal_that_ends_anywhere(tmp_path: Path) -> None:
    """A journal cut at any entry gives exactly the information up to there."""
    state = RunState()
    begun: list[int] = []
    told: list[ev.Event] = []
    listed: ev.Event | None = None
    is_over = False
    for entry in deliver(tmp_path).entries:
        event = entry.event
        state = state.add(event, at=entry.at, stage=entry.stage)
        begun += [event.session] if isinstance(event, ev.DeliverSessionStarted) else []
        told += [event] if isinstance(event, ev.DeliverSessionEnded) else []
        listed = event if isinstance(event, ev.DeliverablesListed) else listed
        is_over = is_over or isinstance(event, ev.DeliverEnded)
        delivery = state.delivery
        assert begun == [s.session for s in delivery.sessions]
        assert told == [s.ended for s in delivery.sessions if s.ended]
        assert (listed, is_over) == (delivery.listed, delivery.ended is not None)
    assert (4, 4, True) == (len(begun), len(told), is_over)


def test_the_named_entries_are_enough(tmp_path: Path) -> None:
    """A journal filtered to these tags gives the same result, and so do the totals."""
    whole = deliver(tmp_path, *TURNS[:1], hanging(), seconds=7)
    whole = go_on(tmp_path, *TURNS[3:], verify=True)
    path = path_of(tmp_path)
    assert fold(whole) == RunState.of(iter_entries(path, only=DIGESTED)).delivery
    assert (
        RunState.of(whole.entries).totals
        == RunState.of(read_journal(path, only=DIGESTED).entries).totals
    )


AT = datetime(2026, 11, 22, 9, tzinfo=UTC)


def record(
    project: Path,
    number: int,
    state: str | None,
    *,
    planning: float | None = None,
    implementing: float | None = None,
    iterations: int = 1,
    seconds: float = 100,
    **started: Any,
) -> None:
    """Record a run with the cost of its sessions; without a state it was killed."""
    first = ev.RunStarted.model_validate(
        {
            "run_id": f"0193-{number}",
            "kind": "run",
            "command": "c",
            "agent": "claude",
            "prompts": "aaaaaaaa",
            **started,
        }
    )
    journal = Journal.create(project / ".cuggino/journal", first, at=AT, sync=False)
    for iteration in range(1, iterations + 1):
        journal.append(ev.IterationStart(iteration=iteration, max_iterations=9), at=AT)
    for start, cost in ((ev.PlanningStart, planning), (ev.ImplementingStart, implementing)):
        journal.append(start(iteration=1), at=AT)
        ended = ev.SessionEnded(outcome="completed", cost_usd=cost, duration=10)
        journal.append(ended, at=AT)
    end = AT + timedelta(seconds=seconds)
    last = ev.RunEnded.model_validate({"state": state}) if state else ev.PingEvent(timestamp=0)
    journal.append(last, at=end)
    journal.close()


def stats_of(project: Path) -> RunStats:
    return run_stats(Runs(project).all())


def row(name: str, runs: int, finished: int, approved: int, *figures: float | None) -> StatsRow:
    """Return a row with median iterations, median cost, total cost and median duration."""
    iterations, cost, total, duration = figures
    return StatsRow(
        name=name,
        runs=runs,
        finished=finished,
        approved=approved,
        iterations=iterations,
        cost_usd=cost,
        total_cost_usd=total,
        duration=duration,
    )


def test_by_each_group(tmp_path: Path) -> None:
    """Medians are those of finished runs, totals of all; roles count their own sessions."""
    codex: dict[str, Any] = {
        "agents": {"planning": ("claude", "opus"), "implementing": ("codex", None)}
    }
    record(tmp_path, 1, "approved", planning=1, implementing=2, iterations=1, seconds=100)
    record(tmp_path, 2, "failed", planning=3, iterations=3, seconds=300, **codex)
    record(tmp_path, 3, "interrupted", planning=5, implementing=5, seconds=5)
    record(tmp_path, 4, None, implementing=7, seconds=7, prompts="")
    record(tmp_path, 5, "approved", item="a.md 1", planning=10, implementing=1, prompts="bbbbbbbb")
    record(tmp_path, 6, "ended", kind="watch", planning=11)
    record(tmp_path, 7, "ended", kind="loop", options={"plan_only": True})
    record(tmp_path, 8, "ended", kind="deliver")
    (tmp_path / ".cuggino/journal/0194.jsonl").write_text("x\ny\n")
    stats = stats_of(tmp_path)
    assert (7, 1) == (stats.runs, stats.unreadable)
    assert {
        "loop": (
            row("run", 4, 2, 1, 2, 3, 23, 200),
            row("deliver", 1, 1, 0, 1, None, None, 100),
            row("loop", 1, 1, 1, 1, None, None, 100),
            row("watch item", 1, 1, 1, 1, 11, 11, 100),
        ),
        "role": (
            row("implementing", 7, 5, 3, 1, 1.5, 15, 10),
            row("planning", 7, 5, 3, 1, 3, 19, 10),
        ),
        "agent": (
            row("claude", 7, 5, 3, 1, 3, 34, 20),
            row("codex", 1, 1, 0, 3, None, None, 10),
        ),
        "model": (
            row("default", 7, 5, 3, 1, 7, 31, 20),
            row("opus", 1, 1, 0, 3, 3, 3, 10),
        ),
        "prompts": (
            row("aaaaaaaa", 5, 4, 2, 1, 3, 16, 100),
            row("bbbbbbbb", 1, 1, 1, 1, 11, 11, 100),
            row("unknown", 1, 0, 0, None, None, 7, None),
        ),
    } == stats.rows


def test_success(tmp_path: Path) -> None:
    """The share of approved runs is that of runs that were not cut short; unknown without one."""
    assert None is row("a", 3, 0, 0, None, None, None, None).success
    assert 0.25 == row("a", 9, 4, 1, 1, 1, 1, 1).success


def test_as_json(tmp_path: Path) -> None:
    """Each group is a list of rows with all figures."""
    record(tmp_path, 1, "approved", planning=1, implementing=2)
    told = stats_json(stats_of(tmp_path))
    assert (1, 0) == (told["runs"], told["unreadable"])
    assert [
        {
            "name": "run",
            "runs": 1,
            "finished": 1,
            "approved": 1,
            "success": 1.0,
            "iterations": 1.0,
            "cost_usd": 3.0,
            "total_cost_usd": 3.0,
            "cost_estimated": False,
            "duration": 100.0,
        }
    ] == told["loop"]
    assert ["loop", "role", "agent", "model", "prompts"] == list(told)[2:]


def test_no_runs(tmp_path: Path) -> None:
    """A project without runs has no rows."""
    stats = stats_of(tmp_path)
    assert (0, 0) == (stats.runs, stats.unreadable)
    assert {()} == set(stats.rows.values())
