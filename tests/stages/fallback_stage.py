"""A stage with two agents, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reactivex import Observable

from cuggino import events as ev
from cuggino.agents import Candidate, RoutedAgent, SpawnOptions
from cuggino.operators import marker_tags
from cuggino.operators.supervision import QuotaGate
from cuggino.stages import Supervision, agent_stage
from cuggino.testing import InMemoryAgent, Marbles, Seen
from tests.loops.supervised_loop import HOUR, second

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
