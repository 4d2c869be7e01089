"""The summary of a run, folded from its events."""

from __future__ import annotations

from dataclasses import fields
from functools import reduce
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from cuggino import events as ev
from cuggino.domain import RunCommit, RunSummary
from tests.events.generated import EVENTS, events_of
from tests.vectors import each

ROUND = ev.IterationStart(iteration=1, max_iterations=3)
APPROVED = ev.LoopApproved(iteration=1)
ISSUE = ev.LoopSpecIssue(iteration=1, content="unclear", filename="x.md")


def facts(summary: RunSummary) -> dict[str, Any]:
    """Return what a summary shows."""
    counts = ("rounds", "tasks", "agents", "commits", "cost_usd", "usage")
    own = {field.name for field in fields(RunSummary)} - {"tally"}
    return {name: getattr(summary, name) for name in (*own, *counts)}


def shown(**given: Any) -> dict[str, Any]:
    """Return the facts of an empty summary, but for those given."""
    return {**facts(RunSummary()), **given}


def folded(*events: ev.Event) -> RunSummary:
    return reduce(RunSummary.add, events, RunSummary())


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
        outcome="approved",
        rounds=2,
        tasks=2,
        agents=7,
        commits=(RunCommit("a1", "Add a"),),
        failed_commits=("locked",),
    )


@each(
    "expected, event",
    [
        (RunSummary(outcome="approved"), APPROVED),
        (
            RunSummary(outcome="max_iterations"),
            ev.LoopMaxIterations(iteration=3, max_iterations=3),
        ),
        (
            RunSummary(outcome="spec_issue", spec_issue_file="x.md", asking=frozenset({"x.md"})),
            ISSUE,
        ),
        (RunSummary(gate_changed=("check.sh",)), ev.GateChanged(iteration=1, paths=("check.sh",))),
        (RunSummary(lost_base="a1"), ev.HistoryRewritten(base="a1", head="b2")),
    ],
)
def test_single_events(expected: RunSummary, event: ev.Event) -> None:
    """The last event of a loop is its outcome; what a person should look at is kept."""
    assert expected == folded(event)


def test_known_costs_are_summed() -> None:
    """Costs add up; sessions without one add nothing, and without any the cost is None."""
    costs = [0.25, None, 0.5, 0.0]
    sessions = [ev.SessionEnded(outcome="completed", cost_usd=cost) for cost in costs]
    assert folded(*sessions).cost_usd == 0.75
    assert folded(sessions[1]).cost_usd is None
    assert folded(sessions[3]).cost_usd == 0.0


def test_watch() -> None:
    """In a watch the counts add up over all items, and each item has a new outcome."""
    item = ev.WatchProcessingItem(filename="a.md")
    first = folded(item, ROUND, ISSUE, ev.WatchItemCompleted(filename="a.md"))
    second = reduce(RunSummary.add, [ev.WatchAuditStarted(), item, ROUND], first)
    assert facts(first) == shown(
        outcome="spec_issue",
        rounds=1,
        items=1,
        spec_issue_file="x.md",
        in_watch=True,
        asking=frozenset({"x.md"}),
    )
    assert facts(second) == shown(rounds=2, agents=1, items=1, in_watch=True)


def test_other_events_change_nothing() -> None:
    """An event that does not count returns the same summary."""
    summary = folded(ROUND)
    assert summary.add(ev.AgentMessage(text="hi")) is summary


@each("outcome", ["failed", "interrupted"])
def test_ended_from_outside(outcome: ev.RunOutcome) -> None:
    """A failure or an interruption from the runner overrides the outcome of the events."""
    assert folded(ROUND).ended(outcome).rounds == 1


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
    alone = RunSummary().add(resumed)
    assert (2, 3, 5, 0.5) == (alone.rounds, alone.tasks, alone.agents, alone.cost_usd)
    assert 9.0 == alone.earlier_s
    assert (RunCommit("a1", "Add a"),) == alone.commits
    assert ev.Usage(input_tokens=7) == alone.usage
    watched = (
        RunSummary().add(ev.WatchProcessingItem(filename="a.md")).add(ev.PlanningStart(iteration=1))
    )
    assert watched == watched.add(resumed)
    assert watched.in_watch


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
    expected = shown(rounds=2, agents=2, in_delivery=True, deliverables=LISTED)
    assert expected == facts(summary)
    assert folded(first).in_delivery
    assert folded(LISTED).in_delivery
    assert not folded(ROUND).in_delivery


@each(
    "reason, outcome",
    [
        ("all_passed", "approved"),
        ("all_verified", "approved"),
        ("all_blocked", "blocked"),
        ("max_iterations", "max_iterations"),
        ("max_retries_exceeded", "stalled"),
        ("stalled", "stalled"),
        ("quota_exceeded", "failed"),
        ("budget_exceeded", "failed"),
        ("failed", "failed"),
        ("interrupted", "interrupted"),
    ],
)
def test_how_a_delivery_ends(reason: ev.DeliverExit, outcome: ev.RunOutcome) -> None:
    """The deliverables loop reports each of its outcomes."""
    ended = folded(ev.DeliverEnded(reason=reason))
    assert RunSummary(outcome=outcome, in_delivery=True) == ended


def test_a_watch_with_slots() -> None:
    """Landings and returns are counted; a resumed item changes no totals of the watch."""
    resumed = ev.RunResumed(run_id="r", stages=1, rounds=7, cost_usd=9.0, item="a.md")
    landed = ev.WatchLanded(filename="a.md", commit="c", trunk_was="b")
    back = ev.WatchSentBack(filename="b.md", reason="check", returns=1)
    expected = shown(landings=(RunCommit("c", "a"),), returns=1)
    assert expected == facts(folded(resumed, landed, back))


def test_what_waits_in_a_watch() -> None:
    """A question waits until its item is at work again; with one slot, until any is."""

    def begun(name: str, slot: int) -> ev.WatchProcessingItem:
        return ev.WatchProcessingItem(filename=name, slot=slot)

    parked = ev.WatchItemParked(filename="c.md", reason="no")
    asked = folded(begun("a.md", 1), ISSUE.of_item("a.md"), parked, begun("b.md", 2))
    assert (frozenset({"a.md"}), 1) == (asked.asking, asked.parked)
    assert not asked.add(begun("a.md", 1)).asking
    assert not folded(begun("a.md", 0), ISSUE, begun("b.md", 0)).asking


@pytest.mark.parametrize("cls", EVENTS, ids=lambda cls: cls.__name__)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_every_event_can_be_added(cls: type[ev.Event], data: st.DataObject) -> None:
    """Every event leaves the money and the counts at least as high, but for a resumed run."""
    event = data.draw(events_of(cls))
    before = folded(ROUND, ev.UsageUpdate(usage=ev.Usage(input_tokens=1), cost_usd=1.0))
    after = before.add(event)
    assert before.rounds <= after.rounds
    assert (after.cost_usd or 0.0) >= 1.0 or isinstance(event, ev.SessionEnded | ev.UsageUpdate)
