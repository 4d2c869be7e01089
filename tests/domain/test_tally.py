"""The counts of a run: the same live, from a journal, and for a resumed run."""

from __future__ import annotations

from functools import reduce

from cuggino import events as ev
from cuggino.domain import RunCommit, Tally

START = ev.StageStarted(name="implementing")
ROUND = ev.IterationStart(iteration=1, max_iterations=3)
AGENT = ev.ImplementingStart(iteration=1)
DONE = ev.Progress(content="one")
COMMIT = ev.CommitPerformed(iteration=1, commit_hash="a1", message="Add a\n\nwith care")
SPENT = ev.UsageUpdate(usage=ev.Usage(input_tokens=5), cost_usd=0.5)
ENDED = ev.SessionEnded(outcome="completed", cost_usd=0.75)


def folded(*events: ev.Event, stage: str | None = None) -> Tally:
    return reduce(lambda tally, event: tally.add(event, stage), events, Tally())


def facts(tally: Tally) -> tuple[int, int, int, tuple[RunCommit, ...], float | None]:
    return tally.rounds, tally.tasks, tally.agents, tally.commits, tally.spent.cost_usd


def test_a_repeated_stage() -> None:
    """It counts its iteration, task and commit once, and all agents with their cost."""
    tried = (START, ROUND, AGENT, SPENT, DONE, COMMIT)
    finished = ev.StageFinished(outcome=None)
    tally = folded(*tried, ev.RunContinued(), *tried, ENDED, finished, stage="implementing#1")
    assert 0 == folded(*tried, stage="implementing#1").tasks
    assert (1, 1, 2, (RunCommit("a1", "Add a"),), 1.25) == facts(tally)


def test_a_commit_that_an_agent_made() -> None:
    """A commit seen in the history counts like one that the loop made, and once."""
    seen = ev.CommitSeen(commit_hash="b2", subject="Do it")
    assert (RunCommit("b2", "Do it"),) == folded(seen, seen).commits


def test_a_phase_of_the_plan_build_loop() -> None:
    """A phase is an iteration and an agent."""
    phase = ev.PlanBuildPhaseStarted(phase="build", iteration=2)
    assert (1, 0, 1, (), None) == facts(folded(phase))


def test_items_in_slots() -> None:
    """Iterations of the same number are those of their item, and of its attempt."""

    def begun(item: str) -> ev.IterationStart:
        return ev.IterationStart(iteration=1, max_iterations=3, item=item)

    again = ev.WatchItemRetained(filename="a.md")
    assert 2 == folded(begun("a.md"), begun("b.md"), begun("a.md")).rounds
    assert 3 == folded(begun("a.md"), begun("b.md"), again, begun("a.md")).rounds


def test_resumed() -> None:
    """The totals of earlier processes are the base of what follows."""
    totals = ev.RunResumed(
        run_id="r", stages=1, rounds=2, tasks=3, agents=4, commits=(("a1", "Add a"),), cost_usd=1.0
    )
    tally = folded(totals, ROUND, AGENT, DONE, COMMIT, ENDED)
    assert (2, 4, 5, (RunCommit("a1", "Add a"),), 1.75) == facts(tally)
    assert 3 == tally.add(ev.IterationStart(iteration=3, max_iterations=3)).rounds
