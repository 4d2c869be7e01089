"""What a subscriber of the plan/build loop saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cuggino.events import (
    Event,
    JobVerified,
    PlanBuildEnded,
    PlanBuildPhaseStarted,
    PlanBuildSessionEnded,
    PlanBuildWarning,
)
from cuggino.testing import Seen


@dataclass(frozen=True, slots=True)
class Story:
    """What a subscriber saw."""

    seen: list[Seen]

    @property
    def events(self) -> list[Any]:
        return [value for _, kind, value in self.seen if kind == "next"]

    @property
    def error(self) -> Exception | None:
        """What the stream ended with; None when it has completed."""
        _, kind, value = self.seen[-1]
        assert kind in ("completed", "error")
        return value if kind == "error" else None

    @property
    def ended(self) -> PlanBuildEnded:
        """The one end of the run, behind which there is no event."""
        last = [event for event in self.events if isinstance(event, PlanBuildEnded)]
        assert last == self.events[-1:]
        return last[0]

    @property
    def phases(self) -> list[tuple[str, int]]:
        """The phase of each session, and its iteration."""
        return [(e.phase, e.iteration) for e in self.of(PlanBuildPhaseStarted)]

    @property
    def outcomes(self) -> list[str]:
        """How the sessions of plan and build ended."""
        return [event.outcome for event in self.of(PlanBuildSessionEnded)]

    @property
    def verdicts(self) -> list[tuple[str, bool]]:
        """Which job was verified, and whether it is done."""
        return [(event.job_id, event.passed) for event in self.of(JobVerified)]

    @property
    def warnings(self) -> list[str]:
        return [event.message for event in self.of(PlanBuildWarning)]

    def of(self, *kinds: type[Event]) -> list[Any]:
        """The events of these kinds."""
        return [event for event in self.events if isinstance(event, kinds)]

    def times(self, *kinds: type[Event]) -> list[float]:
        """When events of these kinds came, in virtual seconds."""
        return [when for when, kind, value in self.seen if kind == "next" and type(value) in kinds]
