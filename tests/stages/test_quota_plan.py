"""Stages that keep a share of usage windows, and that pay for overage or do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.agents import Candidate, RoutedAgent, SpawnOptions
from cuggino.errors import LoopError, QuotaExceeded
from cuggino.operators.supervision import QuotaGate
from cuggino.stages import Supervision, agent_stage
from cuggino.testing import InMemoryAgent, Marbles, Seen
from tests.loops.supervised_loop import HOUR, events_of, second
from tests.stages.fallback_stage import TAGS, course

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
