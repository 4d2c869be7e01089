"""Usage limits of a watch, the library's defaults, and estimated budgets, in virtual time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, empty, merge, operators as ops

from cuggino import events as ev
from cuggino.agents import Candidate, Capabilities, RoutedAgent
from cuggino.agents.base import Role
from cuggino.domain import Budget, Pricing
from cuggino.errors import BudgetExceeded, LoopError
from cuggino.events import (
    LoopMaxIterations,
    NoProgress,
    QuotaLifted,
    SupervisionEvent,
    WatchAuditFailed,
    WatchItemCompleted,
    WatchItemRetry,
)
from cuggino.loops import LoopRunOptions, Services, WatchRunOptions, WatchService
from cuggino.operators.supervision import QuotaGate
from cuggino.runtime import Runtime
from cuggino.stages import Supervision
from cuggino.testing import AgentRun, InMemoryAgent, Marbles, Seen, no_leaks
from tests.agents.routed import options
from tests.loops.coding_loop import CodingLoop, drawn
from tests.loops.supervised_loop import (
    BEFORE,
    HOUR,
    SupervisedMarbles,
    course,
    error_of,
    events_of,
    failed,
    limited,
    loop_of,
    sessions,
)
from tests.loops.watching import Watching


@pytest.fixture
def t() -> SupervisedMarbles:
    return SupervisedMarbles()


LIFTED = HOUR + 60
"""When it is gone on with after the limit: a minute after the reset, as clocks differ."""


class Shared(Watching):
    """A watch whose items are worked on by the real coding loop, with drawn agents."""

    def __init__(
        self, folder: Path, *, planning: list[str], audits: list[str], resets: Iterable[float] = ()
    ) -> None:
        super().__init__(folder)
        self.t = t = SupervisedMarbles()
        gate = QuotaGate()
        lifted = iter(resets)
        self.drawn = CodingLoop(
            folder,
            planning=[t.agent(d, limited(next(lifted, HOUR))) for d in planning],
            implementing=[t.agent("(d|)") for _ in planning],
            reviewing=[t.agent("(y|)") for _ in planning],
            gate=gate,
        )
        self.workspace = self.drawn.workspace  # the lock is held by one object
        self.agent = InMemoryAgent({"audit": [AgentRun(t.agent(d, limited(HOUR))) for d in audits]})
        self.service = WatchService(
            Services(agent=self.agent, workspace=self.workspace, changes=self.changes, gate=gate),
            loop=self.drawn.service,
        )
        self.folder = folder

    def with_options(self, **options: object) -> None:
        given = WatchRunOptions.model_validate({"cwd": self.folder, "audit": True, **options})
        self.stream = self.service.run(given)


def test_the_loop_waits_for_the_limit_of_the_audit(tmp_path: Path) -> None:
    """No agent is started for an item before the audit's usage limit is lifted."""
    watch = Shared(tmp_path, planning=["(c|)"], audits=["a#", "a|"])
    watch.with_options(wait_for_quota=True)
    watch.write(100, "001.md")
    seen = watch.play(2 * HOUR)
    assert [(1, "limit met")] == [
        (when, e.message) for when, e in events_of(seen, WatchAuditFailed)
    ]
    assert [LIFTED] == [when for when, _ in events_of(seen, QuotaLifted)]
    story = [said for said in course(seen) if said[1] != "QuotaWaiting"]
    began = [when for when, tag in story if tag == "PlanningStart"]
    assert [LIFTED] == [when for when, tag in story if tag == "PlanComplete"]
    assert began[0] < LIFTED
    assert 1 == len(sessions(watch.drawn, "planning"))
    assert (LIFTED, "WatchItemCompleted") in story


def test_an_item_is_postponed_without_waiting(tmp_path: Path) -> None:
    """Without waiting an item is postponed until the reset, without an attempt."""
    watch = Shared(tmp_path, planning=["(c|)"], audits=["a#", "-"])
    watch.with_options()
    watch.write(100, "001.md")
    seen = watch.play(2 * HOUR)
    ((when, retry),) = events_of(seen, WatchItemRetry)
    assert (LIFTED, False) == (when + retry.retry_in, retry.counted)
    assert "a usage limit is in force: limit met" in retry.message
    planned = [at for at, tag in course(seen) if tag == "PlanComplete"]
    assert [LIFTED] == planned
    assert 1 == len(sessions(watch.drawn, "planning"))


@pytest.mark.parametrize("wait", [True, False])
def test_a_limit_holds_for_all_items(tmp_path: Path, wait: bool) -> None:
    """A usage limit of one item delays the agents of all items."""
    watch = Shared(tmp_path, planning=["a#", "(c|)", "(c|)"], audits=["-"])
    watch.with_options(wait_for_quota=wait)
    watch.write(0, "001.md")
    watch.write(0, "002.md")
    before = watch.play(HOUR - 1, dispose_at=HOUR - 1)
    assert ["planning"] == [options.role for options in watch.drawn.agent.spawned]
    assert "WatchItemCompleted" not in {tag for _, tag in course(before)}
    assert [] == watch.agent.spawned


@pytest.mark.parametrize("wait", [True, False])
def test_a_reserve_is_shared(tmp_path: Path, wait: bool) -> None:
    """A window that the audit has used up to the reserve delays the items until its reset."""
    watch = Shared(tmp_path, planning=["(c|)"], audits=["q|", "-"])
    watch.with_options(wait_for_quota=wait, quota_reserve=0.2)
    watch.write(100, "001.md")
    seen = watch.play(2 * HOUR)
    assert [LIFTED] == [when for when, tag in course(seen) if tag == "PlanComplete"]
    assert 1 == len(sessions(watch.drawn, "planning"))


def test_both_items_are_done_when_it_is_lifted(tmp_path: Path) -> None:
    """A minute after the reset the watch processes one item, then the next."""
    watch = Shared(tmp_path, planning=["a#", "(c|)", "(c|)"], audits=["-"])
    watch.with_options()
    watch.write(0, "001.md")
    watch.write(0, "002.md")
    seen = watch.play(2 * HOUR)
    done = [when for when, _ in events_of(seen, WatchItemCompleted)]
    assert [LIFTED, LIFTED] == done
    assert [1] == [when for when, _ in events_of(seen, WatchItemRetry)]
    (audit,) = watch.agent.spawned
    assert "audit" == audit.role


def test_the_same_reset_again_is_not_tomorrow(tmp_path: Path) -> None:
    """`resets 3pm` reported just after 3 pm postpones an item for a while, not for a day."""
    planning = ["a#", "a#", "(c|)"]
    watch = Shared(tmp_path, planning=planning, audits=["-"], resets=[HOUR, 25 * HOUR])
    watch.with_options()
    watch.write(0, "001.md")
    seen = watch.play(3 * HOUR)
    again = LIFTED + 1 + 900
    assert [LIFTED, again] == [when + e.retry_in for when, e in events_of(seen, WatchItemRetry)]
    assert [again] == [when for when, _ in events_of(seen, WatchItemCompleted)]


@pytest.mark.parametrize("idle", ["removed", "spec issue"])
def test_no_audit_during_a_limit(tmp_path: Path, idle: str) -> None:
    """An audit is not started during a usage limit."""
    watch = Shared(tmp_path, planning=["a#"], audits=["-"])
    watch.with_options()
    watch.write(0, "001.md")
    if idle == "removed":
        item = watch.workspace.backlog / "001.md"
        watch.at(100, item.unlink, item.parent)
    else:
        issues = watch.workspace.spec_issues
        watch.at(100, lambda: watch.workspace.write_spec_issue("unclear"), issues)
    seen = watch.play(HOUR - 1)
    ((when, failure),) = events_of(seen, WatchAuditFailed)
    assert (130, "a usage limit is in force: limit met") == (when, failure.message)
    assert [] == watch.agent.spawned


@pytest.mark.parametrize("part", ["loop", "watcher"])
def test_one_limit_for_a_runtime(tmp_path: Path, part: str) -> None:
    """A runtime's loop and watch have one gate."""
    runtime = Runtime.live(cwd=tmp_path, agent=InMemoryAgent({}))
    services = {"loop": runtime.watcher.loop.services, "watcher": runtime.watcher.services}
    assert runtime.loop.services.gate is services[part].gate


# -- the library's defaults: no supervision without options, in virtual time


OFF: dict[str, object] = {
    "budget": None,
    "max_tokens": None,
    "max_duration": None,
    "wait_for_quota": False,
    "max_retries": 0,
    "idle_timeout": None,
    "tool_timeout": None,
    "stage_timeout": None,
    "progress_patience": None,
    "review_patience": None,
    "journal": False,
}
FINDING = "- `src/page.py`: the title is missing"


def plain_loop(folder: Path, t: SupervisedMarbles, *implementing: Observable[Any]) -> CodingLoop:
    """A loop that plans at once, implements as it is given, and is approved at once."""
    return drawn(folder, t, "(c|)", list(implementing), "(y|)", can_resume=True)


@pytest.mark.parametrize(
    "options", [LoopRunOptions(focus="it", cwd=Path()), WatchRunOptions(cwd=Path())]
)
def test_everything_is_off(options: LoopRunOptions | WatchRunOptions) -> None:
    """A run and a watch of the library have no supervision by default."""
    assert OFF == {name: getattr(options, name) for name in OFF}


@pytest.mark.parametrize(
    ("error", "code"), [(failed(), 1), (failed("rate_limit"), 1), (limited(HOUR), 12)]
)
def test_a_failure_ends_the_loop(
    tmp_path: Path, error: Exception, code: int, t: SupervisedMarbles
) -> None:
    """By default a failed agent is not restarted, and nothing is waited for."""
    loop = plain_loop(tmp_path, t, t.agent("a#", error), t.agent("d|"))
    seen = t.record(loop.run())
    assert (1, f"LoopError {code}") == course(seen)[-1]
    assert [] == events_of(seen, SupervisionEvent)
    assert 1 == len(sessions(loop, "implementing"))
    ended = error_of(seen)
    assert isinstance(ended, LoopError)
    assert error is ended.cause


def test_no_limits_by_default(tmp_path: Path, t: SupervisedMarbles) -> None:
    """By default silence, tools and costs are unlimited."""
    loop = plain_loop(tmp_path, t, t.agent("a 5h u t 5h o u (ds|)"))
    seen = t.record(loop.run())
    assert ["StageCost"] == [event.tag for _, event in events_of(seen, SupervisionEvent)]
    assert "LoopApproved" == course(seen)[-1][1]
    assert course(seen)[-1][0] > 10 * HOUR
    assert 0 == t.pending


def test_no_progress_is_allowed(tmp_path: Path, t: SupervisedMarbles) -> None:
    """By default iterations without progress continue up to the last one."""
    loop = CodingLoop(
        tmp_path,
        planning=[t.agent("(c|)") for _ in range(6)],
        implementing=[t.agent("(d|)") for _ in range(6)],
        reviewing=[AgentRun(t.agent("(r|)"), review=FINDING) for _ in range(6)],
    )
    seen = t.record(loop.run(max_iterations=6))
    assert [] == events_of(seen, NoProgress)
    assert [6] == [event.iteration for _, event in events_of(seen, LoopMaxIterations)]
    assert [] == list(loop.workspace.tbd.iterdir())


# -- a budget in dollars for agents that report none, in virtual time


MODEL = "gpt-5.3-codex"
"""A million input tokens cost $1.75."""


def used(millions: float, model: str | None = MODEL, cost: float | None = None) -> ev.UsageUpdate:
    tokens = ev.Usage(input_tokens=round(millions * 1e6))
    return ev.UsageUpdate(usage=tokens, model=model, cost_usd=cost)


class Silent(InMemoryAgent):
    """An agent that reports tokens and no dollars, or not even tokens."""

    unit = "tokens"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(resume=True, cost="tokens" if self.unit == "tokens" else "none")


class Nothing(Silent):
    unit = "nothing"


def supervised(
    t: Marbles, agent: Any, *, budget: float | None = 2.0, price_as: str | None = None, **given: Any
) -> list[Seen]:
    """Record a session under this budget."""
    supervision = Supervision(budget=Budget(cost_usd=budget), pricing=Pricing(price_as))
    stream = supervision.session(agent, options(**given), read=lambda events: events)
    return t.record(stream)


def told(seen: list[Seen]) -> list[tuple[float, str]]:
    """Return the tags and times of all events, and the error by its exit code."""
    return [
        (when, value.tag if kind == "next" else f"{type(value).__name__} {value.code}")
        for when, kind, value in seen
        if kind != "completed"
    ]


def silent(stream: Observable[Any], cls: type[Silent] = Silent) -> Silent:
    role: Role = "coding"
    return cls({role: [stream]}, name="codex")


class TestLoop:
    def test_the_running_agent_is_cut(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """The update whose estimate exceeds the budget ends the agent; its cost is marked."""
        t.events |= {"u": used(1), "v": used(1.2)}
        agent = t.agent("a-u-v-a-a")
        loop = loop_of(tmp_path, t, agent)
        with no_leaks():
            seen = t.record(loop.run(budget=2, max_retries=3, wait_for_quota=True))
        ends = [(2, "BudgetWarning"), (4, "StageCost"), (4, "LoopError 13")]
        assert [*BEFORE, *ends] == course(seen)
        assert [(0, 4)] == agent.subscriptions
        ((_, warning),) = events_of(seen, ev.BudgetWarning)
        assert (1.75, True) == (warning.spent, warning.estimated)
        ((_, cost),) = events_of(seen, ev.StageCost)
        assert pytest.approx(2.1) == cost.cost_usd
        assert (True, True) == (cost.cost_estimated, cost.total_estimated)
        assert "The budget of the run is used up: ~$2.10 of $2.00 spent" in error_of(seen).message
        loop.assert_released()

    def test_reported_dollars_replace_the_estimate(
        self, tmp_path: Path, t: SupervisedMarbles
    ) -> None:
        """The dollars at the end of a session count, and what is left goes to the next one."""
        t.events |= {"u": used(1), "s": ev.SessionEnded(outcome="completed", cost_usd=0.5)}
        loop = loop_of(tmp_path, t, t.agent("u-(ds|)"))
        seen = t.record(loop.run(budget=10))
        ((_, cost), *_) = events_of(seen, ev.StageCost)
        assert (0.5, False) == (cost.cost_usd, cost.cost_estimated)
        (reviewing,) = sessions(loop, "reviewing")
        assert 9.5 == reviewing.max_budget_usd

    def test_a_mixed_sum_is_an_estimate(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """Reported dollars and an estimate make an estimate."""
        end = {"outcome": "completed", "usage": used(1).usage, "model": MODEL}
        t.events["s"] = ev.SessionEnded.model_validate(end)
        loop = loop_of(tmp_path, t, t.agent("(gx|)"), t.agent("(ds|)"))
        seen = t.record(loop.run())
        costs = [cost for _, cost in events_of(seen, ev.StageCost)]
        assert [(0.25, False, 0.25, False), (1.75, True, 2.0, True)] == [
            (one.cost_usd, one.cost_estimated, one.total_cost, one.total_estimated) for one in costs
        ]

    def test_tokens_are_counted_by_price(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """A million cache reads count as a tenth of a million tokens, and end the agent."""
        for name, reads in (("u", 900_000), ("v", 1_100_000)):
            tokens = ev.Usage(input_tokens=1000, cache_read_tokens=reads)
            t.events[name] = ev.UsageUpdate(usage=tokens)
        loop = loop_of(tmp_path, t, t.agent("u-v-a-"))
        seen = t.record(loop.run(max_tokens=100_000))
        assert (2, "LoopError 13") == course(seen)[-1]
        assert "111,000 of 100,000 weighted tokens spent" in error_of(seen).message

    def test_an_unknown_price(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """A session of unknown cost keeps its outcome, and no further one starts."""
        end = {"outcome": "completed", "usage": used(1).usage, "model": "gpt-99"}
        t.events["s"] = ev.SessionEnded.model_validate(end)
        loop = loop_of(tmp_path, t, t.agent("(gs|)"), t.agent("(ds|)"))
        seen = t.record(loop.run(budget=5))
        ends = ["CostUnknown", "StageCost", "Progress", "ImplementingStart", "LoopError 13"]
        assert ends == [tag for _, tag in course(seen)[4:]]
        error = error_of(seen)
        assert isinstance(error, LoopError)
        assert isinstance(error.cause, BudgetExceeded)
        assert "The budget of $5.00 cannot hold: memory reports no dollars" in error.message
        assert 'the price of its model "gpt-99" is unknown' in error.message
        assert "--price-as" in (error.hint or "")
        loop.assert_released()


class TestSession:
    def test_an_agent_without_dollars_is_cut_at_its_first_tokens(self) -> None:
        """An agent that reports tokens only is cut when their price is unknown."""
        t = Marbles(a=ev.AgentMessage(text="a"), u=used(1, model=None))
        stream = t.cold("a-u-a-a")
        seen = supervised(t, silent(stream), budget=1000.0)
        ends = [(2, "CostUnknown"), (2, "UsageUpdate"), (2, "BudgetExceeded 13")]
        assert [(0, "AgentMessage"), *ends] == told(seen)
        assert [(0, 2)] == stream.subscriptions
        assert "of its model is unknown" in str(seen[-1][2])

    def test_the_named_model_prices_it(self) -> None:
        """With `price_as` the same session is priced, and cut at its budget."""
        t = Marbles(u=used(1, model=None), v=used(2, model=None))
        seen = supervised(t, silent(t.cold("u-v-u-")), budget=5.0, price_as="claude-sonnet-4-5")
        ends = [(2, "BudgetWarning"), (2, "UsageUpdate"), (2, "BudgetExceeded 13")]
        assert [(0, "UsageUpdate"), *ends] == told(seen)
        costs = [event for _, event in events_of(seen, ev.UsageUpdate)]
        assert [(3.0, True), (6.0, True)] == [(one.cost_usd, one.cost_estimated) for one in costs]

    def test_without_a_budget_nothing_is_told(self) -> None:
        """An unknown price is no matter for a run without a budget in dollars."""
        t = Marbles(u=used(1, model=None))
        assert [(0, "UsageUpdate")] == told(supervised(t, silent(t.cold("(u|)")), budget=None))

    @pytest.mark.parametrize("agent", [Nothing, Silent])
    @pytest.mark.parametrize("outcome", ["completed", "failed"])
    def test_an_agent_that_reports_nothing(
        self, outcome: ev.SessionOutcome, agent: type[Silent]
    ) -> None:
        """The end of a session without any tokens is told, unless the session has failed."""
        t = Marbles(s=ev.SessionEnded(outcome=outcome))
        seen = supervised(t, silent(t.cold("-(s|)"), agent))
        unknown = [(1, "CostUnknown")] * (outcome == "completed")
        assert [*unknown, (1, "SessionEnded")] == told(seen)

    def test_each_fallback_has_its_own_model(self) -> None:
        """A router's events are priced by the model of the agent that works."""
        t = Marbles(u=used(1, model=None))
        first, second = (silent(t.cold("(u|)")) for _ in "ab")
        routed = RoutedAgent(
            [Candidate(agent=first, name="A", model="claude-sonnet-4-5")],
            {"coding": [Candidate(agent=second, name="B", model=MODEL)]},
        )
        for role, cost in (("coding", 1.75), (None, 3.0)):
            first.runs = {"planning": [t.cold("(u|)")]}
            seen = supervised(t, routed, role=role, model="gpt-99")
            ((_, update),) = events_of(seen, ev.UsageUpdate)
            assert cost == update.cost_usd

    def test_other_sessions_are_cut_too(self) -> None:
        """After an unknown cost no stream of the ledger continues."""
        t = Marbles(u=used(1, model=None), a=ev.AgentMessage(text="a"))
        supervision = Supervision(budget=Budget(cost_usd=5.0))
        drawn = [t.cold("a-a-a-a-"), t.cold("--u-a-")]
        streams = [
            supervision.session(silent(one), options(), read=lambda events: events) for one in drawn
        ]
        t.record(merge(*(one.pipe(ops.catch(empty())) for one in streams)))
        assert [[(0, 2)], [(0, 2)]] == [one.subscriptions for one in drawn]
