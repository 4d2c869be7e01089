"""An agent stage whose agent gives way to another, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable

from cuggino import events as ev
from cuggino.agents import Candidate, RoutedAgent, SpawnOptions
from cuggino.domain.spending import Budget
from cuggino.errors import LoopError, QuotaExceeded
from cuggino.events import QuotaLifted
from cuggino.operators import marker_tags
from cuggino.operators.supervision import QuotaGate, is_outage
from cuggino.stages import Supervision, agent_stage
from cuggino.testing import InMemoryAgent, Marbles, Seen
from tests.loops.supervised_loop import HOUR, events_of, failed, limited, second


@pytest.fixture
def t() -> Stage:
    return Stage()


TAGS = marker_tags(ev.Note, ev.Done)


class Stage(Marbles):
    """A stage with two agents, A and B; each session of one plays the next of its diagrams.

    `x` ends a session at a limit, `l` reports the limit, `d` is the last message, `s` ends well.
    """

    def __init__(self, *, can_resume: bool = False) -> None:
        super().__init__(
            a=ev.AgentMessage(text="working"),
            d=ev.AgentMessage(text="<DONE>all</DONE>"),
            t=ev.ToolCall(name="Bash", id="1"),
            u=ev.UsageUpdate(usage=ev.Usage(input_tokens=500)),
            x=ev.SessionEnded(outcome="quota", cost_usd=0.25),
            s=ev.SessionEnded(outcome="completed", cost_usd=0.5),
            l=ev.RateLimited(status="rejected", resets_at=second(HOUR)),
            m=ev.RateLimited(status="rejected", resets_at=second(2 * HOUR)),
        )
        self.a = InMemoryAgent({}, name="a", can_resume=can_resume)
        self.b = InMemoryAgent({}, name="b", can_resume=can_resume)
        self.routed = RoutedAgent(
            [Candidate(agent=self.a, name="A"), Candidate(agent=self.b, name="B")]
        )
        self.gate = QuotaGate()

    def drawn(self, diagram: str, error: Exception | None = None) -> Observable[Any]:
        self.error = error or self.error
        return self.cold(diagram)

    def run(
        self, a: list[Observable[Any]], b: list[Observable[Any]], **policies: Any
    ) -> list[Seen]:
        self.a.runs, self.b.runs = {"implementing": a}, {"implementing": b}
        stream = agent_stage(
            self.routed,
            SpawnOptions(prompt="Do it.", cwd=Path(), role="implementing", session_id="s-1"),
            phase="implementing",
            tags=TAGS,
            on_marker=lambda _marker: None,
            linger=5,
            supervision=Supervision(gate=self.gate, **policies),
        )
        return self.record(stream)


def course(seen: list[Seen]) -> list[str]:
    """Return the supervision events, the marker and the end."""
    said = [
        value.tag
        for _, kind, value in seen
        if kind == "next" and isinstance(value, ev.SupervisionEvent | ev.Done)
    ]
    return [*said, "completed" if seen[-1][1] == "completed" else type(seen[-1][2]).__name__]


# -- an agent stage whose agent gives way to another, under the policies, in virtual time


def test_both_are_counted_once(t: Stage) -> None:
    """The cost of the stage is that of both agents."""
    seen = t.run([t.drawn("-uax#", limited(HOUR))], [t.drawn("-uds|")])
    assert ["AgentFellBack", "StageCost", "Done", "completed"] == course(seen)
    ((_, cost),) = events_of(seen, ev.StageCost)
    assert (0.75, 0.75) == (cost.cost_usd, cost.total_cost)
    assert cost.usage == ev.Usage(input_tokens=1000)


def test_a_session_without_its_end_is_counted(t: Stage) -> None:
    """The usage of the first agent is counted although it failed without a result."""
    seen = t.run([t.drawn("-u#", limited(HOUR))], [t.drawn("-uds|")])
    ((_, cost),) = events_of(seen, ev.StageCost)
    assert cost.usage == ev.Usage(input_tokens=1000)


class TestRetries:
    def test_first_the_retries(self, t: Stage) -> None:
        """A transient failure is retried; when the retries are used up another agent starts."""
        down = [t.drawn("-#", failed("overloaded")) for _ in range(3)]
        seen = t.run(down, [t.drawn("-ds|")], max_retries=2)
        expected = ["AgentRetry", "AgentRetry", "AgentFellBack", "StageCost", "Done", "completed"]
        assert expected == course(seen)
        ((when, fell),) = events_of(seen, ev.AgentFellBack)
        assert ("overloaded", "A", "B") == (fell.reason, fell.from_agent, fell.to_agent)
        assert fell.until is not None
        assert 900 == pytest.approx((fell.until - second(when)).total_seconds(), abs=0.01)
        assert 1 == len(t.b.spawned)

    def test_without_retries_at_once(self, t: Stage) -> None:
        """With no retry allowed another takes over at the first failure."""
        seen = t.run([t.drawn("-#", failed("crash"))], [t.drawn("-ds|")], max_retries=0)
        assert ["AgentFellBack", "StageCost", "Done", "completed"] == course(seen)

    def test_the_other_has_its_own_retries(self, t: Stage) -> None:
        """The second one is retried as often; then the stage fails with its error."""
        seen = t.run(
            [t.drawn("#", failed("server")) for _ in range(2)],
            [t.drawn("#", failed("connection")) for _ in range(2)],
            max_retries=1,
        )
        assert ["AgentRetry", "AgentFellBack", "AgentRetry", "LoopError"] == course(seen)
        assert [1, 1] == [retry.attempt for _, retry in events_of(seen, ev.AgentRetry)]
        assert isinstance(seen[-1][2], LoopError)
        assert "it was connection" in seen[-1][2].message

    def test_a_limit_is_what_is_left(self, t: Stage) -> None:
        """When the second is down for good, and the first has a limit, that is waited for."""
        seen = t.run(
            [t.drawn("#", limited(HOUR)), t.drawn("-ds|")],
            [t.drawn("#", failed("server")) for _ in range(2)],
            max_retries=1,
            wait_for_quota=True,
        )
        steps = [tag for tag in course(seen) if tag != "QuotaWaiting"]
        assert [
            *("AgentFellBack", "AgentRetry", "QuotaLifted", "StageCost", "Done", "completed")
        ] == steps
        assert {second(HOUR)} == {wait.resets_at for _, wait in events_of(seen, ev.QuotaWaiting)}
        assert (2, 2) == (len(t.a.spawned), len(t.b.spawned))

    def test_what_this_loop_does_not_retry(self, t: Stage) -> None:
        """A failure that is not retried lets another agent take over at once."""
        crash, good = t.drawn("#", failed("crash")), t.drawn("-ds|")
        seen = t.run([crash], [good], max_retries=3, transient=is_outage)
        assert ["AgentFellBack", "StageCost", "Done", "completed"] == course(seen)

    def test_it_is_its_own_error_when_nobody_is_left(self, t: Stage) -> None:
        """The last agent's crash is the error, not the first one's limit; a session may follow."""
        first, crash = t.drawn("#", limited(HOUR)), t.drawn("#", failed("crash"))
        seen = t.run([first], [crash], wait_for_quota=True, transient=is_outage)
        assert ["AgentFellBack", "LoopError"] == course(seen)
        assert "it was crash" in seen[-1][2].message

    @pytest.mark.parametrize("reason", ["prompt_too_long", "bad_request", "aborted", "max_turns"])
    def test_what_another_would_meet_too(self, reason: Any, t: Stage) -> None:
        """It is the stage's error at once."""
        seen = t.run([t.drawn("#", failed(reason))], [], max_retries=3)
        assert ["LoopError"] == course(seen)
        assert [] == t.b.spawned


class TestTheLastWord:
    @pytest.mark.parametrize("ending", ["-dx#", "-d#", "-dlx#"])
    def test_nobody_begins_behind_it(self, ending: str, t: Stage) -> None:
        """A usage limit after the terminal marker starts no other agent."""
        seen = t.run([t.drawn(ending, limited(HOUR))], [t.drawn("-ds|")], max_retries=3)
        assert "AgentFellBack" not in course(seen)
        assert ["Done", "completed"] == course(seen)[-2:]
        assert [] == t.b.spawned

    def test_nor_when_it_fails_in_passing(self, t: Stage) -> None:
        """So it is with what would be retried."""
        seen = t.run([t.drawn("-d#", failed("crash"))], [t.drawn("-ds|")])
        assert ["Done", "completed"] == course(seen)[-2:]
        assert [] == t.b.spawned


class TestLiveness:
    def test_a_nudge_goes_to_who_works(self) -> None:
        """A silent fallback agent resumes its own session."""
        t = Stage(can_resume=True)
        seen = t.run(
            [t.drawn("x#", limited(HOUR))],
            [t.drawn("-a--------------------"), t.drawn("-ds|")],
            idle_timeout=5,
        )
        assert 1 == len(events_of(seen, ev.AgentNudged))
        begun, resumed = t.b.spawned
        assert begun.session_id == resumed.resume_session_id
        assert 1 == len(t.a.spawned)

    def test_a_fresh_agent_is_the_one_that_works(self, t: Stage) -> None:
        """A stalled agent is replaced by a new session of it, not of one on cooldown."""
        seen = t.run(
            [t.drawn("x#", limited(HOUR))],
            [t.drawn("-a--------------------"), t.drawn("-ds|")],
            idle_timeout=5,
        )
        assert 1 == len(events_of(seen, ev.AgentReplaced))
        assert (1, 2) == (len(t.a.spawned), len(t.b.spawned))

    def test_its_tools_are_over(self, t: Stage) -> None:
        """A tool that ran when the first one failed does not run in the second's session."""
        seen = t.run(
            [t.drawn("t#", limited(HOUR))],
            [t.drawn("-" * 30), t.drawn("-ds|")],
            idle_timeout=5,
            tool_timeout=100,
        )
        ((when, _),) = events_of(seen, ev.AgentReplaced)
        assert 1 + 5 == when


def test_a_budget_that_is_used_up_ends_it(t: Stage) -> None:
    """When the first agent has used up the budget, none takes over."""
    seen = t.run([t.drawn("ax#", limited(HOUR))], [t.drawn("-ds|")], budget=Budget(cost_usd=0.25))
    error = seen[-1][2]
    assert isinstance(error, LoopError)
    assert isinstance(error.cause, QuotaExceeded)
    assert [] == t.b.spawned


# -- an agent stage in which one agent after the other meets a usage limit, in virtual time


class TestLimits:
    def test_the_earliest_is_waited_for(self) -> None:
        """When both have met a limit the wait is for the one that is lifted first."""
        t = Stage(can_resume=True)
        seen = t.run(
            [t.drawn("lx#", limited(HOUR)), t.drawn("-ds|")],
            [t.drawn("mx#", limited(2 * HOUR))],
            wait_for_quota=True,
        )
        steps = [tag for tag in course(seen) if tag != "QuotaWaiting"]
        assert ["AgentFellBack", "QuotaLifted", "StageCost", "Done", "completed"] == steps
        ((lifted_at, _),) = events_of(seen, QuotaLifted)
        assert HOUR + 60 == lifted_at
        # The second's session cannot be gone on with by the first, which begins anew.
        again = t.a.spawned[-1]
        assert ("Do it.", None) == (again.prompt, again.resume_session_id)

    def test_the_one_that_is_back_goes_on(self) -> None:
        """The agent cut off last resumes its own session when it is available first."""
        t = Stage(can_resume=True)
        t.run(
            [t.drawn("mx#", limited(2 * HOUR))],
            [t.drawn("lax#", limited(HOUR)), t.drawn("-ds|")],
            wait_for_quota=True,
        )
        begun, resumed = t.b.spawned
        assert begun.session_id == resumed.resume_session_id
        assert "s-1" != begun.session_id
        assert resumed.prompt.startswith("Your session was cut off")

    def test_without_waiting_it_is_the_limit(self, t: Stage) -> None:
        """Otherwise the stage fails with the earliest limit."""
        seen = t.run([t.drawn("#", limited(2 * HOUR))], [t.drawn("#", limited(HOUR))])
        assert ["AgentFellBack", "LoopError"] == course(seen)
        error = seen[-1][2]
        assert isinstance(error, LoopError)
        assert isinstance(error.cause, QuotaExceeded)
        assert (12, second(HOUR)) == (error.code, error.cause.resets_at)

    @pytest.mark.parametrize("ending", ["-ds|", "-d" + "-" * 20, "-a|"])
    def test_the_gate_is_not_left_closed(self, ending: str, t: Stage) -> None:
        """A limit that made another take over does not keep the next stage from beginning."""
        t.run([t.drawn("lx#", limited(HOUR))], [t.drawn(ending)])
        account = t.gate.of((id(t.a), id(t.b)))
        assert 0 == account.remaining(second(10)) == t.gate.remaining(second(10))

    def test_nor_by_a_failure_of_the_other(self, t: Stage) -> None:
        """The same holds if the fallback fails for another reason."""
        t.run([t.drawn("lx#", limited(HOUR))], [t.drawn("-a#", failed("max_turns"))])
        assert 0 == t.gate.of((id(t.a), id(t.b))).remaining(second(10))

    def test_a_limit_binds_its_account(self, t: Stage) -> None:
        """A limit of one role's agent does not keep another role's from beginning."""
        t.run([t.drawn("lx#", limited(HOUR))], [t.drawn("mx#", limited(2 * HOUR))])
        account = t.gate.of((id(t.a), id(t.b)))
        assert HOUR == account.remaining(second(0))
        assert 0 == t.gate.remaining(second(0)) == t.gate.of((id(t.b),)).remaining(second(0))

    def test_unknown_ends_are_waited_for_with_growing_pauses(self, t: Stage) -> None:
        """Without reset times the delays grow and end after a day, whichever agent runs between."""
        seen = t.run(
            [t.drawn("#", limited()) for _ in range(40)],
            [t.drawn("#", limited()) for _ in range(40)],
            wait_for_quota=True,
        )
        pauses = [HOUR * hours for hours in (0.25, 0.5, 1, 2, 4, 5, 5, 5, 1.25)]
        assert pauses == [lifted.waited for _, lifted in events_of(seen, QuotaLifted)]
        assert "LoopError" == course(seen)[-1]


# -- stages that keep a share of usage windows, and that pay for overage or do not


END = ["StageCost", "Done", "completed"]


def window(share: float, name: str = "five_hour") -> ev.QuotaUsed:
    return ev.QuotaUsed(window=name, used=share, resets_at=second(HOUR))


class Stages(Marbles):
    """Stages one after the other, with the agent A and its fallbacks.

    `h` and `q` report a window half full and nearly full, `o` overage; `d` is the last message.
    """

    def __init__(self, *agents: list[str], **policies: Any) -> None:
        super().__init__(
            a=ev.AgentMessage(text="working"),
            d=ev.AgentMessage(text="<DONE>all</DONE>"),
            h=window(0.5),
            q=window(0.85),
            w=window(0.85, "seven_day"),
            o=ev.RateLimited(
                status="rejected", limit="five_hour", resets_at=second(HOUR), overage=True
            ),
            l=ev.RateLimited(status="rejected", limit="five_hour", resets_at=second(HOUR)),
            s=ev.SessionEnded(outcome="completed", cost_usd=0.5),
        )
        self.agents = [
            InMemoryAgent(
                {"implementing": [self.cold(diagram) for diagram in diagrams]},
                name="ABC"[number],
                can_resume=True,
            )
            for number, diagrams in enumerate(agents)
        ]
        chain = [Candidate(agent=one, name=one.name) for one in self.agents]
        self.agent = RoutedAgent(chain) if len(chain) > 1 else self.agents[0]
        self.supervision = Supervision(gate=QuotaGate(), **policies)

    def run(self, seconds: float = 60) -> list[Seen]:
        return self.record(
            agent_stage(
                self.agent,
                SpawnOptions(prompt="Do it.", cwd=Path(), role="implementing", session_id="s-1"),
                phase="implementing",
                tags=TAGS,
                on_marker=lambda _marker: None,
                linger=5,
                supervision=self.supervision,
            ),
            until=seconds,
        )

    @property
    def spawned(self) -> list[int]:
        return [len(agent.spawned) for agent in self.agents]


def steps(seen: list[Seen]) -> list[str]:
    """Return the supervision events and the end; a wait is shown once."""
    found = course(seen)
    return [tag for tag, before in zip(found, ["", *found], strict=False) if tag != before]


class TestTheReserve:
    @pytest.mark.parametrize("first", ["-qds|", "-hqds|", "-wds|", "-dqs|"])
    def test_waiting_for_the_reset(self, first: str) -> None:
        """The session that reports the window ends; the next one starts after its reset."""
        t = Stages([first, "-ds|"], quota_reserve=0.2, wait_for_quota=True)
        assert END == steps(t.run())
        seen = t.run(2 * HOUR)
        assert ["QuotaWaiting", "QuotaLifted", *END] == steps(seen)
        waits = [wait for _, wait in events_of(seen, ev.QuotaWaiting)]
        assert {second(HOUR)} == {wait.resets_at for wait in waits}
        assert "quotaReserve keeps 20 % of it" in waits[0].message
        ((lifted, _),) = events_of(seen, ev.QuotaLifted)
        assert HOUR == lifted  # a minute later, and a minute after the first stage began
        assert [2] == t.spawned

    @pytest.mark.parametrize("reserve", [0, 0.1])
    def test_below_it(self, reserve: float) -> None:
        """A window with more left than the reserve holds nothing back."""
        t = Stages(["-qds|", "-ds|"], quota_reserve=reserve)
        assert [END, END] == [steps(t.run()), steps(t.run())]

    def test_without_waiting(self) -> None:
        """Without `waitForQuota` the next session fails as with a usage limit."""
        t = Stages(["-qds|"], quota_reserve=0.2)
        t.run()
        _, kind, error = t.run()[-1]
        assert "error" == kind
        assert isinstance(error, LoopError)
        assert isinstance(error.cause, QuotaExceeded)
        assert (second(HOUR), 12) == (error.cause.resets_at, error.code)
        assert [1] == t.spawned

    def test_the_fallback(self) -> None:
        """Another agent takes over at once, until the window is reset."""
        t = Stages(["-qds|", "-ds|"], ["-ds|", "-ds|"], quota_reserve=0.2)
        assert END == steps(t.run())
        seen = t.run()
        assert ["AgentFellBack", *END] == steps(seen)
        ((_, fell),) = events_of(seen, ev.AgentFellBack)
        assert ("quota", "A", "B", second(HOUR)) == (
            *(fell.reason, fell.from_agent, fell.to_agent),
            fell.until,
        )
        assert END == steps(t.run())
        assert [1, 2] == t.spawned
        t.scheduler.advance_to(HOUR)
        assert END == steps(t.run())
        assert [2, 2] == t.spawned

    def test_all_are_in_the_reserve(self) -> None:
        """Without another agent the first reset is waited for."""
        t = Stages(["-qds|", "-ds|"], ["-qds|"], quota_reserve=0.2, wait_for_quota=True)
        assert [END, ["AgentFellBack", *END]] == [steps(t.run()), steps(t.run())]
        seen = t.run(2 * HOUR)
        assert ["QuotaWaiting", "QuotaLifted", *END] == steps(seen)
        assert [2, 1] == t.spawned

    def test_the_running_stage_goes_on(self) -> None:
        """A session without a marker is resumed for it although the window is nearly full."""
        t = Stages(["-aqs|", "-ds|"], quota_reserve=0.2)
        seen = t.run()
        assert ["AgentNudged", *END] == steps(seen)

    def test_names_of_accounts(self) -> None:
        """Each report has the agent's name; unchanged ones are not repeated."""
        t = Stages(["-hhqqds|"])
        reports = [one for _, one in events_of(t.run(), ev.QuotaUsed)]
        assert [("A", 0.5), ("A", 0.85)] == [(one.agent, one.used) for one in reports]


class TestOverage:
    @pytest.mark.parametrize("waits", [False, True])
    def test_paying(self, waits: bool) -> None:
        """Work goes on beyond the limit, also in the next stage."""
        t = Stages(["-oads|", "-ds|"], wait_for_quota=waits)
        assert [END, END] == [steps(t.run()), steps(t.run())]

    def test_stopping(self) -> None:
        """The session is ended, and resumed when the window is reset."""
        t = Stages(["-aoads|", "-ds|"], overage="stop", wait_for_quota=True)
        seen = t.run(2 * HOUR)
        assert ["QuotaWaiting", "QuotaLifted", *END] == steps(seen)
        ((end, ended), _) = events_of(seen, ev.SessionEnded)
        assert (2, "quota") == (end, ended.outcome)
        ((lifted, _),) = events_of(seen, ev.QuotaLifted)
        assert HOUR + 60 == lifted
        (agent,) = t.agents
        assert "s-1" == agent.spawned[1].resume_session_id

    def test_stopping_without_waiting(self) -> None:
        """Without `waitForQuota` the stage ends with exit code 12."""
        t = Stages(["-aoads|"], overage="stop")
        *_, (_, _, error) = t.run()
        assert isinstance(error, LoopError)
        assert 12 == error.code
        assert "five_hour is used up" in error.message

    def test_the_fallback(self) -> None:
        """Another agent takes over at once."""
        t = Stages(["-aoads|"], ["-ds|"], overage="stop")
        assert ["AgentFellBack", *END] == steps(t.run())
