"""Laws of each loop of sessions: failures, budgets, usage limits, interruption, in virtual time.

A law that is not of one loop stands here, and is run for deliver and for plan/build, whose first
session plans or builds. Requirements: AUT-020 to AUT-080, LOP-060 to LOP-064.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from reactivex import Observable, never, operators as ops
from reactivex.subject import ReplaySubject, Subject

from cuggino import errors, events as ev
from cuggino.agents.base import SpawnOptions
from cuggino.errors import AgentFailed, AgentFailure, BudgetExceeded, CugginoError, QuotaExceeded
from cuggino.operators import LoopScheduler
from cuggino.testing import DrawnStream, Marbles
from tests.limits import LIMIT
from tests.loops import deliver_loop as deliver, plan_build_loop as plan_build
from tests.loops.session_loop import DONE, SessionLoop, replayed
from tests.loops.supervised_loop import HOUR, limited, second

MARGIN = 60.0
HALF = ev.SessionEnded(outcome="completed", cost_usd=0.5)
SPENT = ev.SessionEnded(outcome="budget", cost_usd=0.5)
MET = ev.SessionEnded(outcome="quota", cost_usd=0.25)
FAILED = ev.SessionEnded(outcome="failed", cost_usd=0.5, num_turns=3)
MAX_TURNS = ev.SessionEnded(outcome="max_turns", cost_usd=0.5)


@dataclass(frozen=True)
class Turn:
    """One session; with the `last` one the work is done."""

    events: Sequence[ev.Event] = (ev.AgentMessage(text="done"), DONE)
    error: Exception | None = None
    stream: Observable[Any] | None = None
    last: bool = False


LAST = Turn(last=True)


def crash(message: str = "it crashed", reason: AgentFailure = "crash") -> Turn:
    return Turn((), AgentFailed(message, reason=reason))


class Drawn(NamedTuple):
    """A run of several sessions."""

    project: SessionLoop
    agents: list[DrawnStream]
    others: list[DrawnStream]
    """Commands, verifications, watches."""
    options: dict[str, Any]
    spans: list[list[tuple[float, float]]]
    """When agents and others run."""

    @property
    def ends(self) -> float:
        return max(end for spans in self.spans for _, end in spans)

    def assert_over(self, at: float, stop: Subject[object] | None = None) -> None:
        """Assert that all has ended by then."""
        for stream in (*self.agents, *self.others):
            assert all(end is not None and end <= at for _, end in stream.subscriptions)
        assert stop is None or [] == stop.observers
        self.project.assert_released()


@dataclass(frozen=True)
class Loop:
    """How a loop is run; what its results are called."""

    project: Callable[..., SessionLoop]
    turn: Callable[[Turn], Any]
    story: Callable[[Path], Drawn]
    again: Callable[[Path], SessionLoop]
    """A run that can finish the work of a story, whatever is left of it."""
    session_ended: type[Any]
    retry: type[Any]
    pause: str
    """The option of the pause between sessions."""
    counts: str
    done: str
    """The reason of success."""
    given: dict[str, Any] = field(default_factory=dict)

    def make(
        self, folder: Path, turns: Sequence[Turn], t: Marbles | None = None, **given: Any
    ) -> Project:
        marbles = {} if t is None else {"marbles": t}
        return Project(self, self.project(folder, [*map(self.turn, turns)], **marbles, **given))


class Project:
    """A loop with its options."""

    def __init__(self, loop: Loop, project: SessionLoop) -> None:
        self.loop, self.project = loop, project

    @property
    def spawned(self) -> list[SpawnOptions]:
        return list(self.project.agent.spawned)

    def run(self, *, session_pause: float = 0.0, **given: Any) -> Any:
        """Run it; `reason` and `sessions` of the story are those of the result."""
        story = self.project.run(**{**self.loop.given, self.loop.pause: session_pause, **given})
        self.project.assert_released()
        if story.of(story.end):
            story.reason = story.ended.reason
            story.sessions = getattr(story.ended, self.loop.counts)
            story.retries = story.of(self.loop.retry)
            story.ends = story.timed(self.loop.session_ended)
        return story


class InOrder(plan_build.Builders):
    """Plays the same turns, whatever the phase."""

    def turn(self, options: SpawnOptions) -> plan_build.Turn:
        left = self.project.build[len(self.spawned) :]
        assert left, "one session too many"
        return left[0]


def _delivery(folder: Path, turns: Any, **given: Any) -> SessionLoop:
    return deliver.DeliverLoop(folder, turns, {"a": "pending"}, **given)


def _delivered(turn: Turn) -> deliver.Turn:
    leaves = {"a": "passed"} if turn.last else None
    return deliver.Turn(turn.events, leaves, turn.error, turn.stream)


def _delivery_story(folder: Path) -> Drawn:
    """Three sessions of five seconds with a pause of three, an outage and a change within."""
    t = deliver.deliver_marbles(
        O=deliver.Writes({"a": "passed"}), x=ev.SessionEnded(outcome="failed")
    )
    t.error = AgentFailed("529", reason="overloaded")
    agents = [t.cold("-a--d|"), t.cold("-x#"), t.cold("--a-d|"), t.cold("-O--d|")]
    watch = t.hot("- 27s !----")
    turns = [deliver.Turn(stream=agent) for agent in agents]
    project = deliver.DeliverLoop(folder, turns, {"a": "pending"}, t, watch)
    spans: Any = [[(0, 5)], [(8, 10)], [(10, 15)], [(18, 23)], [(0, 5), (8, 15), (18, 23)]]
    options = {"session_pause": 3.0, "retry_pause": 0.0}
    return Drawn(project, agents, [watch], options, spans)


def _deliver_again(folder: Path) -> SessionLoop:
    return deliver.DeliverLoop(folder, [deliver.Turn(leaves={"a": "passed"})])


def _built(turn: Turn) -> plan_build.Turn:
    leaves = plan_build.has(True) if turn.last else {}
    return plan_build.Turn(leaves, turn.events, turn.error, turn.stream)


def _build(folder: Path, turns: Any, **given: Any) -> SessionLoop:
    return plan_build.PlanBuildLoop(folder, turns, agents=InOrder, **given)


def _build_story(folder: Path) -> Drawn:
    """A plan of three seconds, a build of four with an outage within; a verified one of four."""
    has, turn = plan_build.has, plan_build.Turn
    t = plan_build.plan_build_marbles(
        P=plan_build.Does(has(J1="open")),
        D=plan_build.Does(has(True, J1="done")),
        x=ev.SessionEnded(outcome="failed"),
    )
    t.error = AgentFailed("529", reason="overloaded")
    plan, failing, first = t.cold("aPd|"), t.cold("-x#"), t.cold("-a-d|")
    last, tests = t.cold("-D-d|"), t.cold("---|")
    judges = [t.cold("-(jd)|"), t.cold("-(jd)|"), t.cold("-j-(d|)")]
    project = plan_build.PlanBuildLoop(
        folder,
        [turn(stream=stream) for stream in (failing, first, last)],
        [turn(stream=judge) for judge in judges],
        [turn(stream=plan)],
        marbles=t,
        shells={"test": tests},
    )
    options = {"start": "plan", "iteration_pause": 2.0, "retry_pause": 0.0}
    options |= {"verify_test": "test", "auto_commit": True}
    spans: Any = [[(0, 3)], [(3, 5)], [(5, 9)], [(13, 17)]]
    spans += [[(17, 20)], [(9, 11)], [(20, 22)], [(22, 25)]]
    return Drawn(project, [plan, failing, first, last], [tests, *judges], options, spans)


def _build_again(folder: Path) -> SessionLoop:
    last = plan_build.Turn(plan_build.has(True, J1="done"))
    return plan_build.PlanBuildLoop(folder, spare=last)


DELIVER = Loop(
    _delivery,
    _delivered,
    _delivery_story,
    _deliver_again,
    ev.DeliverSessionEnded,
    ev.DeliverSessionRetry,
    "session_pause",
    "sessions",
    "all_passed",
)


def _phase(start: str) -> Loop:
    return Loop(
        _build,
        _built,
        _build_story,
        _build_again,
        ev.PlanBuildSessionEnded,
        ev.PlanBuildSessionRetry,
        "iteration_pause",
        "iterations",
        "complete",
        {"start": start, "verify_after_iteration": False},
    )


LOOPS = {"deliver": DELIVER, "plan": _phase("plan"), "build": _phase("build")}


@pytest.fixture(params=list(LOOPS))
def loop(request: pytest.FixtureRequest) -> Loop:
    return LOOPS[request.param]


def drawn(**events: Any) -> Marbles:
    """`a` is a word, `d` a good end, `q` the end by a usage limit, `x` one that failed."""
    known = {"a": ev.AgentMessage(text="working"), "d": DONE, "q": MET, "x": FAILED, "S": "stop"}
    return Marbles(**{**known, **events})


class TestFailures:
    def test_a_crash_is_followed_by_another_session(self, loop: Loop, tmp_path: Path) -> None:
        """A crash is counted and reported, and followed by a new session after the pause."""
        t = drawn()
        t.error = AgentFailed("it crashed", reason="crash")
        crashing = t.cold("-a#")
        project = loop.make(tmp_path, [Turn(stream=crashing), Turn(), LAST], t)
        story = project.run(session_pause=3.0)
        assert ["error", "completed", "completed"] == story.outcomes
        (when, ended), *_ = story.ends
        assert (2, "it crashed") == (when, ended.message)
        retry = loop.retry(attempt=1, max_retries=3, message="it crashed")
        assert [(2, retry)] == story.timed(loop.retry)
        assert [2, 5] == [when for when, _ in story.ends[:2]]
        assert (loop.done, 3, "") == (story.reason, story.sessions, story.ended.error)
        first, second_, _ = project.spawned
        assert first.session_id != second_.session_id
        assert second_.resume_session_id is None
        t.check_subscriptions(crashing, "^-!")

    @pytest.mark.parametrize("most", [0, 1, 3])
    def test_retries_run_out(self, most: int, loop: Loop, tmp_path: Path) -> None:
        """After `max_retries` failures in a row the next one ends the loop (AUT-061)."""
        story = loop.make(tmp_path, [crash(f"no {n}") for n in range(5)]).run(max_retries=most)
        assert ("max_retries_exceeded", most + 1) == (story.reason, story.sessions)
        assert (f"no {most}", False) == (story.ended.error, story.ended.success)
        retries = [(e.attempt, e.max_retries, e.message) for e in story.retries]
        assert [(n + 1, most, f"no {n}") for n in range(most)] == retries
        assert story.error is None

    def test_failed_sessions_count_as_sessions(self, loop: Loop, tmp_path: Path) -> None:
        """A failure in the last session allowed ends with that limit (AUT-058, AUT-065)."""
        story = loop.make(tmp_path, [Turn(), crash()]).run(max_sessions=2)
        assert ("max_iterations", 2) == (story.reason, story.sessions)

    def test_execution_errors_count_as_failures(self, loop: Loop, tmp_path: Path) -> None:
        """Execution errors count as failures, and their cost counts too (AUT-056)."""
        error = AgentFailed("a\nb", reason="unknown")
        failed = Turn((ev.AgentMessage(text="oh"), FAILED), error)
        story = loop.make(tmp_path, [failed, failed]).run(max_retries=1)
        assert ["execution_error"] * 2 == story.outcomes
        assert ("max_retries_exceeded", 1.0) == (story.reason, story.ended.cost_usd)
        assert [(0.5, "a\nb")] * 2 == [(e.cost_usd, e.message) for _, e in story.ends]

    def test_the_turn_limit_does_not_end_the_loop(self, loop: Loop, tmp_path: Path) -> None:
        """The turn limit is not a failure; another session follows (AUT-055)."""
        turn = Turn((MAX_TURNS,), AgentFailed("40 turns", reason="max_turns"))
        story = loop.make(tmp_path, [turn, turn, turn, LAST]).run(max_retries=0)
        assert ["max_turns"] * 3 + ["completed"] == story.outcomes
        assert (loop.done, []) == (story.reason, story.retries)

    @pytest.mark.parametrize(
        "error",
        [crash().error, crash("529", "overloaded").error, errors.GuardNotLive("x"), ValueError()],
        ids=repr,
    )
    def test_an_error_behind_a_good_result(
        self, error: Exception, loop: Loop, tmp_path: Path
    ) -> None:
        """An error after a good result is ignored: the session is completed (AUT-024)."""
        turn = Turn((ev.AgentMessage(text="all done"), DONE), error, last=True)
        story = loop.make(tmp_path, [turn, LAST]).run()
        assert (loop.done, {"completed"}) == (story.reason, {*story.outcomes})
        assert ("all done", []) == (story.ends[0][1].message, story.tags(ev.AgentRetry))

    def test_several_results(self, loop: Loop, tmp_path: Path) -> None:
        """The last one counts (AUT-027)."""
        turn = Turn((ev.SessionEnded(outcome="failed", num_turns=1), DONE))
        story = loop.make(tmp_path, [turn, LAST]).run()
        assert ["completed"] * 2 == story.outcomes

    def test_an_outage_is_retried_within_the_session(self, loop: Loop, tmp_path: Path) -> None:
        """Retries within a session have growing pauses, and earlier results do not count."""
        t = drawn()
        t.error = AgentFailed("529", reason="server")
        streams = [t.cold("-x#"), t.cold("-#"), t.cold("-x#"), t.cold("-d|")]
        turns = [Turn(stream=stream) for stream in streams]
        story = loop.make(tmp_path, [*turns, LAST], t).run(retry_pause=10.0)
        assert ["completed"] * 2 == story.outcomes
        retries = story.of(ev.AgentRetry)
        assert [1, 2, 3] == [event.attempt for event in retries]
        assert pytest.approx([10, 20, 40], rel=0.2) == [event.retry_in for event in retries]
        assert (loop.done, 2, []) == (story.reason, story.sessions, story.retries)
        assert 1.01 == pytest.approx(story.ends[0][1].cost_usd)
        assert 1.02 == pytest.approx(story.ended.cost_usd)

    def test_an_outage_that_lasts(self, loop: Loop, tmp_path: Path) -> None:
        """An outage that outlasts its retries is a failed session, and another follows."""
        story = loop.make(tmp_path, [crash("529", "overloaded")] * 4).run(max_retries=1)
        assert ["error", "error"] == story.outcomes
        assert [1, 1] == [event.attempt for event in story.of(ev.AgentRetry)]
        assert "max_retries_exceeded" == story.reason

    def test_each_attempt_has_its_own_result(self, loop: Loop, tmp_path: Path) -> None:
        """An attempt that crashes without a result is an error, despite results of earlier ones."""
        first = Turn((FAILED,), AgentFailed("529", reason="overloaded"))
        story = loop.make(tmp_path, [first, crash(), Turn(), LAST]).run()
        assert ["error", "completed", "completed"] == story.outcomes

    @pytest.mark.parametrize(
        "error",
        [
            AgentFailed("log in", reason="auth"),
            errors.GuardNotLive("no guard"),
            errors.StorageError("write", "disk full"),
        ],
        ids=lambda error: type(error).__name__,
    )
    def test_a_failure_of_every_session(
        self, error: CugginoError, loop: Loop, tmp_path: Path
    ) -> None:
        """A failure that every session would meet ends the loop, with its error at the end."""
        t = drawn()
        t.error = error
        agent = t.cold("-#")
        story = loop.make(tmp_path, [Turn(stream=agent)], t).run()
        assert ("failed", error.message, 1) == (
            story.reason,
            story.ended.error,
            story.ended.duration,
        )
        assert error is story.error
        assert [] == story.tags(ev.AgentRetry, loop.retry)
        assert ["error"] == story.outcomes
        t.check_subscriptions(agent, "^!")

    @pytest.mark.parametrize(
        "error", [ValueError("oh"), KeyError(), errors.ProcessFailed("my", 3, "")], ids=repr
    )
    def test_an_exception_of_a_custom_agent(
        self, error: Exception, loop: Loop, tmp_path: Path
    ) -> None:
        """An exception of a custom agent is a failed session (AUT-064)."""
        story = loop.make(tmp_path, [Turn((), error), Turn(), LAST]).run()
        assert (loop.done, ["error", "completed", "completed"]) == (story.reason, story.outcomes)
        (retry,) = story.retries
        assert retry.message

    def test_an_agent_that_cannot_spawn(self, loop: Loop, tmp_path: Path) -> None:
        """An exception of `spawn` itself is a failed session."""
        project = loop.make(tmp_path, [])

        def unwilling(_options: SpawnOptions) -> Observable[Any]:
            raise RuntimeError("not today")

        project.project.agent.spawn = unwilling
        story = project.run(max_retries=1)
        assert ["error", "error"] == story.outcomes
        assert "not today" == story.ended.error

    def test_a_subscriber_that_fails(self, loop: Loop, tmp_path: Path) -> None:
        """An exception in a subscriber ends the stream and is not a failed session."""
        drawn_ = loop.story(tmp_path)
        project, given = drawn_.project, drawn_.options
        seen: list[Exception] = []

        def picky(event: object) -> None:
            if isinstance(event, ev.AgentMessage):
                raise LookupError("not that")

        scheduler = project.marbles.scheduler
        project.stream(**given).subscribe(picky, seen.append, scheduler=scheduler)
        scheduler.advance_to(1000)
        assert [LookupError] == [type(error) for error in seen]
        assert 1 == len(project.agent.spawned)
        drawn_.assert_over(at=1000)


class TestBudgets:
    def test_money_that_is_spent(self, loop: Loop, tmp_path: Path) -> None:
        """No session is started when the budget is spent: the result follows, then the error."""
        project = loop.make(tmp_path, [Turn((HALF,))] * 2)
        story = project.run(budget=1.0, session_pause=2.0)
        assert ("budget_exceeded", 2, 1.0) == (story.reason, story.sessions, story.ended.cost_usd)
        assert isinstance(story.error, BudgetExceeded)
        assert story.error.message == story.ended.error
        assert ["completed"] * 2 == story.outcomes
        assert [1.0, 0.5] == [options.max_budget_usd for options in project.spawned]
        assert 1 == len(story.of(ev.BudgetWarning))

    def test_the_time_is_up_behind_a_good_result(self, loop: Loop, tmp_path: Path) -> None:
        """A session with a good result counts even if the time is up (AUT-024)."""
        t = drawn()
        agent = t.cold("-d- 1m |")
        story = loop.make(tmp_path, [Turn(stream=agent, last=True)], t).run(max_duration=20.0)
        assert [(0, 20)] == agent.subscriptions
        assert (["completed"], loop.done, None) == (story.outcomes, story.reason, story.error)

    def test_tokens_that_are_overdrawn(self, loop: Loop, tmp_path: Path) -> None:
        """The running session is stopped, and its end is reported before the result."""
        t = drawn(u=ev.UsageUpdate(usage=ev.Usage(input_tokens=500, output_tokens=100)))
        agent = t.cold("-u-a-d|")
        story = loop.make(tmp_path, [Turn(stream=agent)], t).run(max_tokens=100)
        assert (["budget"], "budget_exceeded", 1) == (story.outcomes, story.reason, story.sessions)
        assert isinstance(story.error, BudgetExceeded)
        t.check_subscriptions(agent, "^!")

    def test_the_time_is_up(self, loop: Loop, tmp_path: Path) -> None:
        """The session is stopped on the second; pauses count too."""
        t = drawn()
        last = t.cold("-a- 1m d|")
        turns = [Turn(), Turn(stream=t.cold("--d|")), Turn(stream=last)]
        story = loop.make(tmp_path, turns, t).run(max_duration=20.0, session_pause=4.0)
        begin = last.subscriptions[0][0]
        assert [(begin, 20)] == last.subscriptions
        assert begin in (7, 11)  # behind a planning session there is no pause
        assert ["completed", "completed", "budget"] == story.outcomes
        assert ("budget_exceeded", 20.0) == (story.reason, story.ended.duration)

    def test_the_time_is_up_in_a_pause(self, loop: Loop, tmp_path: Path) -> None:
        """A budget that ends in a pause starts no further session."""
        project = loop.make(tmp_path, [crash()])
        story = project.run(max_duration=2.0, session_pause=5.0)
        assert ("budget_exceeded", 1) == (story.reason, story.sessions)
        assert 1 == len(project.spawned)

    @pytest.mark.parametrize(
        "error", [BudgetExceeded("spent"), None, AgentFailed("1", reason="crash")], ids=repr
    )
    def test_an_agent_that_spent_the_run_budget(
        self, error: Exception | None, loop: Loop, tmp_path: Path
    ) -> None:
        """An agent that spent the whole budget ends the loop."""
        story = loop.make(tmp_path, [Turn((SPENT,), error)]).run(budget=0.5)
        assert (["budget"], "budget_exceeded", []) == (story.outcomes, story.reason, story.retries)
        assert isinstance(story.error, BudgetExceeded)

    def test_an_agent_with_a_budget_of_its_own(self, loop: Loop, tmp_path: Path) -> None:
        """An agent's own budget ends its session without a failure; another follows (AUT-055)."""
        spent = Turn((SPENT,), BudgetExceeded("spent"))
        story = loop.make(tmp_path, [spent, spent, LAST]).run(max_retries=0)
        assert (["budget", "budget", "completed"], []) == (story.outcomes, story.retries)
        assert loop.done == story.reason


class TestUsageLimits:
    def test_the_default_is_to_end(self, loop: Loop, tmp_path: Path) -> None:
        """By default a usage limit ends the run, then comes the error with the reset (AUT-077)."""
        t = drawn()
        t.error = limited(HOUR)
        agent = t.cold("-aq#")
        story = loop.make(tmp_path, [Turn(stream=agent)], t).run()
        assert [(3, "quota")] == [(when, event.outcome) for when, event in story.ends]
        assert ("quota_exceeded", 1) == (story.reason, story.sessions)
        assert (0.25, "limit met") == (story.ended.cost_usd, story.ended.error)
        assert isinstance(story.error, QuotaExceeded)
        assert second(HOUR) == story.error.resets_at
        assert [] == story.tags(ev.QuotaWaiting, loop.retry)
        t.check_subscriptions(agent, "^--!")

    @pytest.mark.parametrize("error", [None, AgentFailed("1", reason="crash")], ids=repr)
    def test_a_result_that_reports_the_limit(
        self, error: AgentFailed | None, loop: Loop, tmp_path: Path
    ) -> None:
        """A result that reports the limit counts, with or without an error after it (AUT-024)."""
        turn = Turn((ev.AgentMessage(text="You've hit your limit"), MET), error)
        story = loop.make(tmp_path, [turn]).run()
        assert (["quota"], "quota_exceeded") == (story.outcomes, story.reason)
        assert isinstance(story.error, QuotaExceeded)
        assert "You've hit your limit" == story.error.message

    @pytest.mark.parametrize("can_resume", [True, False])
    def test_a_wait_until_the_limit_is_lifted(
        self, can_resume: bool, loop: Loop, tmp_path: Path
    ) -> None:
        """A wait stays within one session, resumed if the agent supports it (AUT-078)."""
        t = drawn()
        t.error = limited(HOUR)
        first, after = t.cold("-aq#"), t.cold("--d|")
        turns = [Turn(stream=first), Turn(stream=after), LAST]
        project = loop.make(tmp_path, turns, t, can_resume=can_resume)
        story = project.run(wait_for_quota=True)
        lifted = HOUR + MARGIN
        assert ["completed"] * 2 == story.outcomes
        assert [[(0, 3)], [(lifted, lifted + 3)]] == [first.subscriptions, after.subscriptions]
        assert ([lifted], 3) == (story.times(ev.QuotaLifted), story.times(ev.QuotaWaiting)[0])
        assert (loop.done, 2, []) == (story.reason, story.sessions, story.retries)
        assert lifted + 3 == story.ended.duration
        assert pytest.approx(0.27) == story.ended.cost_usd
        begun, again, _ = project.spawned
        if can_resume:
            assert begun.session_id == again.resume_session_id
            assert "cut off" in again.prompt
        else:
            assert (begun.prompt, None) == (again.prompt, again.resume_session_id)

    def test_a_wait_that_ends_in_a_crash(self, loop: Loop, tmp_path: Path) -> None:
        """A session that crashes after a wait is a failed one."""
        turns = [Turn((MET,), limited(HOUR)), crash(), Turn(), LAST]
        story = loop.make(tmp_path, turns).run(wait_for_quota=True)
        assert ["error", "completed", "completed"] == story.outcomes
        assert (loop.done, 3) == (story.reason, story.sessions)

    def test_the_gate_is_shared(self, loop: Loop, tmp_path: Path) -> None:
        """A usage limit met by another loop is waited for before a session starts."""
        t = drawn()
        agent = t.cold("-d|")
        project = loop.make(tmp_path, [Turn(stream=agent), LAST], t)
        gate = project.project.service.services.gate
        gate.close(second(HOUR), now=second(0), resets_at=second(HOUR), message="theirs")
        story = project.run(wait_for_quota=True)
        assert [(HOUR + MARGIN, HOUR + MARGIN + 2)] == agent.subscriptions
        assert (loop.done, 0) == (story.reason, gate.remaining(second(t.now)))

    def test_a_closed_gate_without_waiting(self, loop: Loop, tmp_path: Path) -> None:
        """With a closed gate and without waiting the session ends before its agent starts."""
        project = loop.make(tmp_path, [])
        gate = project.project.service.services.gate
        gate.close(second(HOUR), now=second(0), resets_at=second(HOUR), message="theirs")
        story = project.run()
        assert (["quota"], "quota_exceeded") == (story.outcomes, story.reason)
        assert ([], 0) == (project.spawned, story.ended.duration)


STORIES = {name: LOOPS[name] for name in ("deliver", "plan")}
"""Each loop once, with the story of several sessions."""


@pytest.mark.parametrize("name", STORIES)
class TestAtEveryInstant:
    """Agents, commands, watches, timers, the interruption and the lock are released at once."""

    @pytest.mark.parametrize("at", [n * 3.0 for n in range(9)])
    def test_interrupted(self, name: str, at: float, tmp_path: Path) -> None:
        """The result is the last event, and an interrupted session has its end before it."""
        loop = STORIES[name]
        played = loop.story(tmp_path)
        at = min(at, played.ends - 0.5)
        stop = replayed(played.project.marbles, at)
        story = played.project.run(interrupt=stop, **played.options)
        assert ("interrupted", at) == (story.ended.reason, story.ended.duration)
        assert (at, True) == (story.ended_at, story.completed)
        for begun in [b for agent in played.agents for b, end in agent.subscriptions if end == at]:
            told = [event for when, event in story.timed(ev.SessionEnded) if when >= begun]
            expected = "completed" if told[-1:] == [DONE] else "interrupted"
            (when, ended) = story.timed(loop.session_ended)[-1]
            assert (at, expected) == (when, ended.outcome)
        played.assert_over(at, stop)
        assert loop.done == loop.again(tmp_path).run().ended.reason

    @pytest.mark.parametrize("at", [n * 3.0 + 1.5 for n in range(8)])
    def test_disposed(self, name: str, at: float, tmp_path: Path) -> None:
        """There is no further event."""
        loop = STORIES[name]
        played = loop.story(tmp_path)
        at = min(at, played.ends - 0.5)
        stop: ReplaySubject[object] = ReplaySubject()
        story = played.project.run(interrupt=stop, dispose_at=at, **played.options)
        assert [] == story.of(story.end)
        assert story.ended_at is None
        assert all(when <= at for when, _ in story.timeline)
        played.assert_over(at, stop)
        assert loop.done == loop.again(tmp_path).run().ended.reason

    def test_without_it(self, name: str, tmp_path: Path) -> None:
        """Each stream has its time; the interruption is subscribed from the start to the end."""
        loop = STORIES[name]
        played = loop.story(tmp_path)
        stop = played.project.marbles.hot("- 1m S")
        story = played.project.run(interrupt=stop, **played.options)
        assert (loop.done, 3) == (story.ended.reason, getattr(story.ended, loop.counts))
        assert [played.ends] == story.times(story.end)
        assert [(0, played.ends)] == stop.subscriptions
        streams = [*played.agents, *played.others]
        assert played.spans == [stream.subscriptions for stream in streams]

    def test_the_second_of_two_loops(self, name: str, tmp_path: Path) -> None:
        """A second loop in the same folder fails and starts nothing."""
        project, _, _, given, _ = STORIES[name].story(tmp_path)
        other, *_ = STORIES[name].story(tmp_path)
        scheduler = project.marbles.scheduler
        seen: list[Any] = []

        def begin(*_: object) -> None:
            other.stream(**given).subscribe(seen.append, seen.append, scheduler=scheduler)

        scheduler.schedule_absolute(2.0, begin)
        assert STORIES[name].done == project.run(**given).ended.reason
        assert [errors.WorkspaceLocked] == [type(error) for error in seen]
        assert [] == other.agent.spawned


class TestInterruption:
    def test_before_the_start(self, loop: Loop, tmp_path: Path) -> None:
        """A run interrupted before its start starts no agent."""
        project = loop.make(tmp_path, [])
        stop: ReplaySubject[object] = ReplaySubject()
        stop.on_next("stop")
        story = project.run(interrupt=stop)
        assert ("interrupted", 0, []) == (story.reason, story.sessions, project.spawned)

    @pytest.mark.parametrize(
        ("error", "given"),
        [
            (limited(HOUR), {"wait_for_quota": True}),
            (AgentFailed("529", reason="overloaded"), {"retry_pause": 1000.0}),
        ],
        ids=["quota", "retry"],
    )
    def test_in_a_wait(self, error: Exception, given: Any, loop: Loop, tmp_path: Path) -> None:
        """Waits for usage and retry pauses end at once (AUT-079)."""
        t = drawn()
        t.error = error
        project = loop.make(tmp_path, [Turn(stream=t.cold("-a#"))], t)
        story = project.run(interrupt=replayed(t, 100.0), **given)
        assert (["interrupted"], "interrupted") == (story.outcomes, story.reason)
        assert (100.0, 1) == (story.ended.duration, len(project.spawned))

    def test_during_a_fingerprint(self, loop: Loop, tmp_path: Path) -> None:
        """Fingerprinting a large project is canceled."""
        t = drawn()
        project = loop.make(tmp_path, [Turn()], t)
        look = t.cold("- 1h -")
        project.project.replace(fingerprint=lambda *_, **__: look)
        story = project.run(interrupt=replayed(t, 5.0), progress_patience=1)
        assert ("interrupted", 5.0) == (story.reason, story.ended.duration)
        t.check_subscriptions(look, "^----!")

    def test_that_fails_or_only_completes(self, loop: Loop, tmp_path: Path) -> None:
        """An interruption that fails stops the loop; one that completes stops nothing."""
        for n, (stop, reason) in enumerate([("--#", "interrupted"), ("|", loop.done)]):
            t = drawn()
            turns = [Turn(stream=t.cold("----d|")), LAST]
            story = loop.make(tmp_path / str(n), turns, t).run(interrupt=t.hot(stop))
            assert (reason, 2.0 if n == 0 else 5.0) == (story.reason, story.ended.duration)

    def test_from_another_thread(self, loop: Loop, tmp_path: Path) -> None:
        """Events and the agent's release stay on the loop's thread if another one interrupts."""
        threads: set[str] = set()

        def note() -> None:
            threads.add(threading.current_thread().name)

        working: Observable[Any] = never()
        agent = working.pipe(
            ops.start_with(ev.AgentMessage(text="working")), ops.finally_action(note)
        )
        project = loop.make(tmp_path, [Turn(stream=agent)]).project
        stop: ReplaySubject[object] = ReplaySubject()
        seen: list[Any] = []
        begun, over = threading.Event(), threading.Event()

        def hear(event: object) -> None:
            note()
            seen.append(event)
            if isinstance(event, ev.AgentMessage):
                begun.set()

        scheduler = LoopScheduler()
        project.stream(interrupt=stop, **loop.given).subscribe(
            hear, lambda _: over.set(), over.set, scheduler=scheduler
        )
        assert begun.wait(LIMIT)
        stop.on_next("stop")
        assert over.wait(LIMIT)
        scheduler.dispose()
        assert 1 == len(threads - {threading.current_thread().name}) == len(threads)
        assert "interrupted" == seen[-1].reason


def test_sessions_that_change_nothing(loop: Loop, tmp_path: Path) -> None:
    """After `progress_patience` such sessions in a row the loop stalls, with the reason."""
    project = loop.make(tmp_path, [Turn()] * 4, fingerprints=["same"] * 9)
    story = project.run(progress_patience=3)
    what = "iterations" if loop.counts == "iterations" else "sessions"
    assert f"3 {what} in a row changed nothing" == story.ended.error
    assert ev.NoProgress(kind="unchanged", agents=3, action="stop") == story.events[-2]
    assert ("stalled", False, None) == (story.reason, story.ended.success, story.error)
    assert story.sessions == len(project.spawned)


def test_a_defect_of_the_loop_is_its_end(loop: Loop, tmp_path: Path) -> None:
    """An unexpected exception ends the run with a result and that error."""
    project = loop.make(tmp_path, [Turn()])
    defect = RuntimeError("defect")

    def broken(*_args: object, **_options: object) -> Observable[str]:
        raise defect

    project.project.replace(fingerprint=broken)
    story = project.run(progress_patience=1)
    assert ("failed", "defect") == (story.reason, story.ended.error)
    assert defect is story.error
