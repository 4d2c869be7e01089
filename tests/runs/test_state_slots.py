"""The current activity of a watch with several slots: that of the whole and of each item."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from cuggino import events as ev
from cuggino.runs import RunState
from tests.runs.test_state import after, at, started, tool

BEGUN: list[ev.Event] = [
    started(kind="watch", slots=3, model="opus"),
    ev.WatchProcessingItem(filename="a.md", title="Login", position=1, total=5, slot=1),
    ev.WatchProcessingItem(filename="b.md", title="Search", position=2, total=5, slot=2),
]
CANDIDATE = ev.WatchCandidate(filename="a.md", slot=1, commit="c1", base="b0", attempt=1)
LANDING = ev.WatchLanding(filename="a.md", commit="c1", trunk="b0")


def of(item: str, *events: ev.Event) -> list[ev.Event]:
    return [event.of_item(item) for event in events]


def item(activity: RunState, name: str) -> RunState:
    found = activity.of_item(name)
    assert found is not None
    return found


def test_items_begin_in_their_slots() -> None:
    """Each item has a slot, the agent of the watch and its own stage; the watch works."""
    activity = after(
        *BEGUN,
        ev.WatchSlotPrepared(filename="a.md", slot=1, folder="/s/1", base="b0"),
        *of(
            "a.md", ev.IterationStart(iteration=1, max_iterations=3), ev.PlanningStart(iteration=1)
        ),
    )
    one, two = activity.at_work
    assert (one.item, one.slot, one.title, one.role, one.iteration) == (
        *("a.md", 1, "Login", "planning", 1),
    )
    assert (one.folder, two.folder) == ("/s/1", "")
    assert (two.item, two.slot, two.role, two.agent, two.model) == (
        *("b.md", 2, "preparing", "claude", "opus"),
    )
    assert (activity.kind, activity.state, activity.slots) == ("watch", "working", 3)
    assert (activity.item, activity.role, activity.tools) == ("", "", ())
    assert (activity.position, activity.total, activity.queued) == (2, 5, 3)


def test_slots_that_are_seen_one_by_one() -> None:
    """Where the start of the run is not seen, all slots that begin may be at work."""
    third = ev.WatchProcessingItem(filename="c.md", slot=3)
    activity = after(*BEGUN[1:], third)
    assert (activity.slots, activity.active_slots) == (3, 3)
    plain = ev.WatchProcessingItem(filename="d.md")
    assert (0, 0) == (activity.add(plain, at=at(60)).slots, after(plain).active_slots)


def test_reason_of_a_return_outlives_the_attempt() -> None:
    """An item that was put back after it was sent back, and begins anew, names the reason."""
    back = ev.WatchSentBack(filename="a.md", reason="conflict", returns=1)
    again = ev.WatchProcessingItem(filename="a.md", slot=1, returns=1)
    put_back = ev.WatchItemRetained(filename="a.md")
    activity = after(*BEGUN, CANDIDATE, LANDING, back, again, put_back)
    assert activity.of_item("a.md") is None
    found = item(activity.add(again, at=at(60)), "a.md")
    assert (found.returns, found.return_reason) == (1, "conflict")
    landing = LANDING.model_copy(update={"returns": 1})
    assert "conflict" == item(activity.add(landing, at=at(60)), "a.md").return_reason


def test_a_resumed_watch_knows_what_was_sent_back() -> None:
    """Earlier events are not repeated; the start of work or a landing has the number of returns."""
    begun = ev.WatchProcessingItem(filename="a.md", slot=1, returns=2)
    assert 2 == item(after(BEGUN[0], begun), "a.md").returns
    assert 2 == item(after(BEGUN[0], begun, CANDIDATE, LANDING), "a.md").returns
    landing = LANDING.model_copy(update={"returns": 1})
    assert 1 == item(after(BEGUN[0], landing), "a.md").returns


def test_tools_of_several_items() -> None:
    """A tool call is that of its item, also when two agents use the same id."""
    call = ev.ToolCall(name="Bash", input={"command": "make"}, id="t")
    activity = after(
        *BEGUN,
        *of("a.md", ev.PlanningStart(iteration=1), call),
        *of("b.md", ev.ImplementingStart(iteration=1), call, ev.ToolResult(name="t", output="")),
    )
    assert (item(activity, "a.md").tool, item(activity, "b.md").tool) == (
        tool("Bash", "make", 4, "t"),
        None,
    )


def test_the_cost_of_parallel_sessions() -> None:
    """Running sessions count side by side; the whole counts all, each item its own."""

    def tokens(count: int, cost: float) -> ev.UsageUpdate:
        return ev.UsageUpdate(usage=ev.Usage(input_tokens=count), cost_usd=cost)

    activity = after(
        *BEGUN,
        *of("a.md", tokens(100, 1.0)),
        *of("b.md", tokens(10, 0.1)),
        *of("a.md", tokens(200, 2.0)),
        *of("b.md", tokens(20, 0.2)),
    )
    assert (activity.cost_usd, activity.tokens) == (2.2, 220)
    assert (item(activity, "a.md").cost_usd, item(activity, "b.md").tokens) == (2.0, 20)
    ended = ev.SessionEnded(outcome="completed", cost_usd=2.5, usage=ev.Usage(input_tokens=250))
    activity = after(*of("a.md", ended), CANDIDATE, *of("b.md", tokens(30, 0.3)), start=activity)
    assert (activity.cost_usd, activity.tokens) == (2.8, 280)
    late = ev.SessionEnded(outcome="completed", cost_usd=1.0)
    activity = after(*of("gone.md", late, ev.PlanningStart(iteration=1)), start=activity)
    assert (activity.cost_usd, activity.role) == (3.8, "")


def test_from_candidate_to_landing() -> None:
    """A candidate leaves its slot, waits, is checked and lands; the others work meanwhile."""
    other = ev.WatchCandidate(filename="b.md", slot=2, commit="c2", base="b0", attempt=1)
    check = ev.CheckCommandStarted(iteration=0, command="make check")
    activity = after(*BEGUN, *of("a.md", ev.LoopApproved(iteration=2)), other, CANDIDATE)
    assert [one.item for one in activity.queue] == ["b.md", "a.md"]
    assert (activity.at_work, activity.state, activity.outcome) == ((), "working", "")
    activity = after(LANDING, check, start=activity)
    landing = activity.landing
    assert landing is not None
    assert [one.item for one in activity.queue] == ["a.md", "b.md"]
    assert (landing.item, landing.commit) == ("a.md", "c1")
    assert [(one.name, one.target) for one in landing.tools] == [("Check", "make check")]
    activity = after(
        ev.CheckCommandOutput(iteration=0, exit_code=0),
        ev.WatchLanded(filename="a.md", commit="m1", trunk_was="b0"),
        ev.WatchItemCompleted(filename="a.md"),
        start=activity,
    )
    assert ([one.item for one in activity.items], activity.done) == (["b.md"], 1)


def test_unapproved_work_waits_for_no_landing() -> None:
    """It is never in the queue; its item is parked."""
    refused = CANDIDATE.model_copy(update={"approved": False})
    activity = after(*BEGUN, refused)
    assert () == activity.queue
    activity = after(ev.WatchItemParked(filename="a.md", reason="not approved"), start=activity)
    assert (["b.md"], 1) == ([one.item for one in activity.items], activity.parked)


def test_a_candidate_whose_item_is_removed_waits_no_longer() -> None:
    """Its work is kept; what an item has left in another slot says nothing about it."""
    left = ev.WatchWorkKept(filename="a.md", slot=2, ref="refs/cuggino/kept/a.md/1", reason="files")
    activity = after(*BEGUN, CANDIDATE, left)
    assert ["a.md"] == [one.item for one in activity.queue]
    gone = ev.WatchWorkKept(
        filename="a.md",
        slot=1,
        ref="refs/cuggino/candidates/a.md",
        reason="the item has left the backlog",
    )
    completed = ev.WatchItemCompleted(filename="b.md")
    activity = after(gone, completed, ev.WatchBacklogWaiting(), start=activity)
    assert ((), True) == (activity.items, activity.is_idle)


def test_an_item_is_sent_back() -> None:
    """It waits for a slot and keeps its returns while it is worked on again."""
    back = ev.WatchSentBack(filename="a.md", reason="conflict", paths=("x",), returns=1)
    activity = after(*BEGUN, CANDIDATE, LANDING, back)
    (waiting,) = activity.sent_back
    assert (waiting.item, waiting.slot, waiting.returns, activity.queue) == ("a.md", 0, 1, ())
    again = ev.WatchProcessingItem(filename="a.md", title="Login", position=1, total=5, slot=3)
    activity = after(again, start=activity)
    assert [(one.item, one.slot) for one in activity.at_work] == [("b.md", 2), ("a.md", 3)]
    found = item(activity, "a.md")
    assert (found.returns, found.return_reason, activity.sent_back) == (1, "conflict", ())


def test_the_end_of_items() -> None:
    """A retry, a parked item and a slot that is used again end only their own item."""
    retry = ev.WatchItemRetry(
        filename="a.md", message="x", attempt=1, max_attempts=3, retry_in=60.0, counted=True
    )
    activity = after(*BEGUN, retry)
    assert ([one.item for one in activity.at_work], activity.wait) == (["b.md"], None)
    assert [one.item for one in activity.retrying] == ["a.md"]
    taken = ev.WatchProcessingItem(filename="c.md", slot=2)
    activity = after(taken, start=activity)
    assert [one.item for one in activity.at_work] == ["c.md"]
    activity = after(ev.WatchItemParked(filename="c.md", reason="x"), start=activity)
    assert (activity.at_work, activity.parked, activity.state) == ((), 1, "waiting")
    assert activity.wait is not None
    assert activity.wait.until == at(3 + 60)
    again = ev.WatchProcessingItem(filename="a.md", slot=1)
    activity = after(again, ev.WatchItemCompleted(filename="a.md"), start=activity)
    assert (activity.items, activity.wait, activity.state) == ((), None, "working")
    assert after(ev.WatchBacklogWaiting(), start=activity).state == "idle"


def test_the_watch_waits_when_all_items_do() -> None:
    """It waits until the first wait ends, and works as soon as one item works."""
    limit = ev.QuotaWaiting(remaining=60)
    activity = after(*BEGUN, *of("a.md", limit))
    assert (activity.state, item(activity, "a.md").state) == ("working", "waiting")
    activity = after(*of("b.md", limit), start=activity)
    assert activity.state == "waiting"
    assert activity.wait is not None
    assert activity.wait.until == at(0) + timedelta(seconds=60)
    activity = after(*of("a.md", ev.QuotaLifted(waited=60)), start=activity)
    assert (activity.state, activity.wait) == ("working", None)


def test_a_pause_of_all_slots() -> None:
    """The watch pauses when the last item stands still, and until one goes on."""
    activity = after(*BEGUN, ev.PauseAsked(), *of("a.md", ev.RunPaused()))
    assert activity.state == "pausing"
    activity = after(*of("b.md", ev.RunPaused()), start=activity)
    assert activity.state == "paused"
    activity = after(*of("b.md", ev.PauseEnded(seconds=1)), start=activity)
    assert activity.state == "working"
    whole = after(*BEGUN, ev.PauseAsked(), ev.RunPaused())
    assert whole.state == after(*of("a.md", ev.PlanningStart(iteration=1)), start=whole).state


def test_a_message_for_an_item() -> None:
    """The message waits with its item until one of the item's agents receives it."""
    told = ev.Steered(text="faster", to="session")
    activity = after(*BEGUN, ev.SteerAsked(text="faster", item="b.md"))
    assert (item(activity, "b.md").steering, activity.steering) == (("faster",), ())
    assert item(after(*of("b.md", told), start=activity), "b.md").steering == ()
    activity = after(*BEGUN, ev.SteerAsked(text="faster"))
    assert activity.steering == ("faster",)
    assert after(*of("a.md", told), start=activity).steering == ()


def test_a_spec_issue_stops_its_item() -> None:
    """A person is asked while the others work; resolved, the item is worked on again."""
    issue = ev.LoopSpecIssue(iteration=1, content="x", filename="i.md")
    held = ev.WatchItemHeld(filename="c.md", reason="after a.md")
    activity = after(*BEGUN, *of("a.md", issue), held)
    assert activity.calls == ("Answer: x",)
    assert ([one.item for one in activity.items], activity.state) == (["b.md"], "working")
    assert activity.held == (("c.md", "after a.md"),)
    again = ev.WatchProcessingItem(filename="a.md", slot=1)
    activity = after(again, ev.WatchProcessingItem(filename="c.md", slot=3), start=activity)
    assert (activity.calls, activity.held) == ((), ())


def test_what_a_source_holds() -> None:
    """An imported item is held until its source releases or removes it."""
    imported = partial(ev.WatchItemImported, filename="c.md", source="github")
    held = imported(change="held", reason="was edited by eve")
    activity = after(*BEGUN, held, ev.WatchItemHeld(filename="c.md", reason="was edited by eve"))
    assert activity.held == (("c.md", "was edited by eve"),)
    assert after(imported(change="updated"), start=activity).held == activity.held
    assert after(imported(change="released"), start=activity).held == ()
    assert after(imported(change="removed"), start=activity).held == ()


def test_slots_and_the_followed_branch() -> None:
    """The number of active slots, and why the branch does not follow."""
    fewer = ev.WatchSlotsChanged(active=1, slots=3, reason="overloaded")
    late = ev.WatchFollowDelayed(branch="main", commit="c", reason="changed", paths=("a", "b"))
    activity = after(*BEGUN, fewer, late)
    assert (activity.slots, activity.active_slots) == (3, 1)
    assert activity.follow_delayed == "changed: a, b"
    assert after(ev.WatchFollowed(branch="main", commit="c"), start=activity).follow_delayed == ""


def test_a_resumed_watch() -> None:
    """Work of a killed process is over, its queue stays; an item changes no totals."""
    third = ev.WatchProcessingItem(filename="c.md", slot=3)
    back = ev.WatchSentBack(filename="c.md", reason="check", returns=1)
    activity = after(*BEGUN, third, CANDIDATE, LANDING, back, ev.RunContinued())
    assert [(one.item, one.place) for one in activity.items] == [
        ("a.md", "queue"),
        ("c.md", "sent-back"),
    ]
    activity = after(*BEGUN, ev.RunContinued())
    assert (activity.items, activity.slots) == ((), 3)
    resumed = ev.RunResumed(run_id="r2", stages=2, cost_usd=9.0, duration=100.0)
    activity = after(BEGUN[1], *of("a.md", resumed), start=activity)
    assert (activity.cost_usd, activity.run_id) == (None, "r1")
    assert item(activity, "a.md").role == "resumed"


def test_the_journal_of_an_item() -> None:
    """The stage of an item's own run is joined; with one slot, as before."""
    run = after(ev.PlanningStart(iteration=1), ev.ToolCall(name="Bash", input={}, id="t"))
    activity = after(*BEGUN).with_item(run, "b.md")
    assert (item(activity, "b.md").role, item(activity, "a.md").role) == ("planning", "preparing")
    assert item(activity, "b.md").slot == 2
    assert after(*BEGUN).with_item(run, "gone.md") == after(*BEGUN)


def test_items_on_workers() -> None:
    """An item names its worker until its candidate is here; a lost one is remembered."""
    placed = [*BEGUN, ev.WatchPlaced(filename="a.md", slot=1, worker="w1")]
    assert ["w1", ""] == [one.worker for one in after(*placed).at_work]
    prepared = ev.WatchSlotPrepared(filename="a.md", slot=1, folder="/s/1", base="b", worker="w1")
    call = ev.ToolCall(name="Bash", input={}, id="t")
    working = [*placed, prepared, *of("a.md", ev.PlanningStart(iteration=1), call)]
    gone = ev.WatchPlaceGone(filename="a.md", slot=1, worker="w1", reason="killed")
    one = item(after(*working, gone), "a.md")
    assert ("preparing", "", "", (), ("w1",)) == (
        one.role,
        one.worker,
        one.folder,
        one.tools,
        one.lost,
    )
    again = [*working, gone, ev.WatchPlaced(filename="a.md", slot=1, worker="w2")]
    assert "w2" == item(after(*again), "a.md").worker
    assert "" == item(after(*again, CANDIDATE), "a.md").worker


def test_workers_of_a_cluster() -> None:
    """The latest ones count; another process sees its own."""
    one, two = (ev.ClusterWorker(name=name, places=4, busy=1) for name in ("w1", "w2"))
    link = "http://head:8787/status"
    seen = [
        ev.WatchWorkers(workers=(one, two), joined=("w1", "w2"), dashboard=link),
        ev.WatchWorkers(workers=(two,), left=("w1",), dashboard=link),
    ]
    assert after(*BEGUN).workers is None
    activity = after(*BEGUN, *seen)
    assert ((two,), link, 3) == (activity.workers, activity.dashboard, activity.slots)
    assert after(*BEGUN, *seen, ev.RunContinued()).workers is None


def test_a_cluster_with_one_place() -> None:
    """Its only slot is one, too."""
    watch = after(started(kind="watch", slots=1), ev.WatchWorkers())
    assert ((), 1, 1) == (watch.workers, watch.slots, watch.active_slots)


PROPOSED = ev.WatchProposed(
    filename="a.md", number=7, url="https://forge/7", branch="cuggino/a", commit="h", candidate="c1"
)


def test_an_item_waits_for_its_pull_request() -> None:
    """It works no more: with nothing else at work, the watch is idle."""
    done = [ev.WatchItemCompleted(filename="b.md"), ev.WatchBacklogWaiting(proposals=1)]
    seen = after(*BEGUN, CANDIDATE, LANDING, PROPOSED, *done)
    (waiting,) = seen.proposed
    assert ("a.md", "#7", "https://forge/7", 0) == (
        waiting.item,
        waiting.pull_words,
        waiting.pull_url,
        waiting.slot,
    )
    assert "idle" == seen.state
    red = ev.WatchProposal(filename="a.md", number=7, state="taken-over", message="by ada")
    (waiting,) = after(*BEGUN, CANDIDATE, LANDING, PROPOSED, red).proposed
    assert ("#7 taken over", "by ada") == (waiting.pull_words, waiting.pull_note)


def test_the_end_of_a_pull_request() -> None:
    """Sent back it waits for a slot; merged it is gone."""
    back = ev.WatchSentBack(filename="a.md", reason="ci", returns=1)
    seen = after(*BEGUN, CANDIDATE, LANDING, PROPOSED, back)
    assert ((), ["a.md"]) == (seen.proposed, [one.item for one in seen.sent_back])
    merged = ev.WatchLanded(filename="a.md", commit="m", trunk_was="t", branch="cuggino/a")
    assert after(*BEGUN, CANDIDATE, LANDING, PROPOSED, merged).of_item("a.md") is None


def test_a_resumed_watch_knows_what_is_proposed() -> None:
    seen = after(*BEGUN, CANDIDATE, LANDING, PROPOSED, ev.RunContinued())
    assert ["a.md"] == [one.item for one in seen.proposed]
