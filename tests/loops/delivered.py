"""The deliverables loop with everything around it drawn: sessions, the status file, time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reactivex import Observable, abc, concat, defer, from_iterable, never, throw

from cuggino.agents.protocol import InteractiveOptions, SpawnOptions
from cuggino.events import (
    AgentMessage,
    DeliverEnded,
    DeliverSessionEnded,
    DeliverSessionStarted,
    Event,
    LlmAgentEvent,
    SessionEnded,
)
from cuggino.loops import DeliverRunOptions, DeliverService
from cuggino.storage import Workspace
from cuggino.testing import Marbles, Seen

DONE = SessionEnded(outcome="completed", cost_usd=0.01)

Statuses = Mapping[str, str]
"""Status by id, in order."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One session: what it says, what it leaves in the status file, and how it fails."""

    events: Sequence[Event] = (AgentMessage(text="done"), DONE)
    leaves: Statuses | None = None
    """What stands in the status file from its first event on; None leaves it as it is."""
    error: Exception | None = None
    stream: Observable[Any] | None = None
    """In the place of `events` and `error`."""
    verifies: Iterable[str] = ()
    """The ids that it marks as verified."""


def status_json(statuses: Statuses) -> str:
    """A status file."""
    items = [
        {
            "id": name,
            "description": f"do {name}",
            "acceptanceCriteria": ["it works"],
            "passed": status == "passed",
            "blocked": status == "blocked",
        }
        for name, status in statuses.items()
    ]
    day = "2026-01-02"
    return json.dumps({"createdAt": day, "updatedAt": day, "deliverables": items})


@dataclass
class Sessions:
    """An agent that plays the turns, one a session, and keeps what it was spawned with."""

    turns: Sequence[Turn]
    project: Path
    verified: Path | None = None
    name: str = "memory"
    can_resume: bool = False
    spawned: list[SpawnOptions] = field(default_factory=list)

    def check(self) -> str:
        return "in memory"

    def interactive(self, options: InteractiveOptions) -> int:
        return 0

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        def start(_scheduler: abc.SchedulerBase | None) -> Observable[Any]:
            assert len(self.spawned) < len(self.turns), "one session too many"
            turn = self.turns[len(self.spawned)]
            self.spawned.append(options)
            if turn.leaves is not None:
                file = self.project / ".autonoe" / "status.json"
                file.parent.mkdir(exist_ok=True)
                file.write_text(status_json(turn.leaves))
            self._verify(options, set(turn.verifies))
            if turn.stream is not None:
                return turn.stream
            events: Observable[Any] = from_iterable(turn.events)
            return events if turn.error is None else concat(events, throw(turn.error))

        return defer(start)

    def _verify(self, options: SpawnOptions, ids: set[str]) -> None:
        if not ids:
            return
        file = Path(options.env["CUGGINO_SESSION_FILE"]).with_suffix(".verified.json")
        kept = json.loads(file.read_text())
        kept["verified"] = [name for name in kept["all"] if name in ids | set(kept["verified"])]
        file.write_text(json.dumps(kept))


@dataclass
class Delivered:
    """A project in which a loop is run in virtual time."""

    folder: Path
    turns: Sequence[Turn]
    start: Statuses | None = None
    """The status file at the start; None for none."""
    marbles: Marbles = field(default_factory=Marbles)
    changes: Observable[object] = field(default_factory=never)

    def __post_init__(self) -> None:
        if self.start is not None:
            file = self.folder / ".autonoe" / "status.json"
            file.parent.mkdir()
            file.write_text(status_json(self.start))
        self.agent = Sessions(self.turns, self.folder)
        self.service = DeliverService(
            agent=self.agent,
            workspace=Workspace(self.folder),
            changes=lambda _folder: self.changes,
            fingerprint=lambda *_args, **_options: self._fingerprint(),
        )
        self.state = 0

    def _fingerprint(self) -> Observable[str]:
        self.state += 1
        return from_iterable([str(self.state)])

    def options(self, **given: Any) -> DeliverRunOptions:
        return DeliverRunOptions(cwd=self.folder, **{"session_pause": 0.0, **given})

    def stream(self, *, interrupt: Observable[object] | None = None, **given: Any) -> Any:
        return self.service.run(self.options(**given), interrupt=interrupt)

    def run(self, *, interrupt: Observable[object] | None = None, **given: Any) -> Story:
        return Story(self.marbles.record(self.stream(interrupt=interrupt, **given)))


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
    def ended(self) -> DeliverEnded:
        """The one end of the run, behind which there is no event."""
        last = [event for event in self.events if isinstance(event, DeliverEnded)]
        assert last == self.events[-1:]
        return last[0]

    @property
    def instructions(self) -> list[str]:
        """What the sessions were told."""
        return [e.instruction for e in self.events if isinstance(e, DeliverSessionStarted)]

    @property
    def outcomes(self) -> list[str]:
        """How the sessions ended."""
        return [event.outcome for event in self.events if isinstance(event, DeliverSessionEnded)]

    def times(self, *kinds: type[Event]) -> list[float]:
        """When events of these kinds came, in virtual seconds."""
        return [when for when, kind, value in self.seen if kind == "next" and type(value) in kinds]
