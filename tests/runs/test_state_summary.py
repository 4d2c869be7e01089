"""What a state says at the end of a run."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from cuggino import events as ev
from cuggino.domain import RunCommit
from cuggino.runs import RunState
from tests.events.generated import EVENTS, events_of
from tests.runs.test_state import after
from tests.vectors import each

ROUND = ev.IterationStart(iteration=1, max_iterations=3)
APPROVED = ev.LoopApproved(iteration=1)
ISSUE = ev.LoopSpecIssue(iteration=1, content="unclear", filename="x.md")


OF_TALLY = ("rounds", "tasks", "agents", "commits")
OF_STATE = (
    *("ending", "cost_usd", "usage", "done", "parked", "landings", "sent_back_count", "kind"),
    *("deliverables", "failed_commits", "gate_changed", "lost_base", "tbd_files"),
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
    assert 9.0 == alone.earlier
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
