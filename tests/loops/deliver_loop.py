"""A deliver loop with scripted sessions, a scripted status file and virtual time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from reactivex import Observable, abc, concat, defer, from_iterable, never, throw

from cuggino import events as ev
from cuggino.agents.base import Capabilities, LlmAgent, SpawnOptions
from cuggino.errors import AgentFailed, AgentFailure
from cuggino.loops import DeliverRunOptions, DeliverService, Services
from cuggino.operators.mapcat import mapcat
from cuggino.operators.supervision import QuotaGate
from cuggino.storage import Workspace
from cuggino.testing import Marbles, Seen

DONE = ev.SessionEnded(outcome="completed", cost_usd=0.01)

NO_SERVERS: Mapping[str, object] = {"mcpServers": {}}
"""Settings without the browser's server, whose program is not on every machine."""

Statuses = Mapping[str, str]
"""Status by id, in order; ` (deprecated)` may follow it."""


@dataclass(frozen=True, slots=True)
class Writes:
    """A side effect within an agent's stream: the content of the status file."""

    content: Statuses | str


@dataclass(frozen=True, slots=True)
class Turn:
    """One session: its events, its status file and its error."""

    events: Sequence[ev.Event | Writes] = (ev.AgentMessage(text="done"), DONE)
    leaves: Statuses | str | None = None
    """What stands in the status file from its first event on; None leaves it as it is."""
    error: Exception | None = None
    stream: Observable[Any] | None = None
    """In the place of `events` and `error`."""
    verifies: Iterable[str] = ()
    """The ids that it marks as verified."""


def crash(message: str = "it crashed", *, reason: AgentFailure = "crash") -> Turn:
    """A session that fails without a result."""
    return Turn(events=(), error=AgentFailed(message, reason=reason))


def write_settings(project: Path, settings: Mapping[str, object] | str = NO_SERVERS) -> None:
    """Put them into the project's `agent.json`."""
    file = project / ".autonoe" / "agent.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(settings if isinstance(settings, str) else json.dumps(settings))


def status_json(statuses: Statuses) -> str:
    """A status file."""
    day = "2026-01-02"
    items = [
        {
            "id": name,
            "description": f"do {name}",
            "acceptanceCriteria": ["it works"],
            "passed": status.startswith("passed"),
            "blocked": status.startswith("blocked"),
            **({"deprecatedAt": day} if status.endswith("(deprecated)") else {}),
        }
        for name, status in statuses.items()
    ]
    return json.dumps({"createdAt": day, "updatedAt": day, "deliverables": items})


@dataclass
class Sessions(LlmAgent):
    """An agent that plays one turn per session and records its options."""

    turns: Sequence[Turn]
    project: Path
    name: str = "memory"
    can_resume: bool = False
    spare: Turn | None = None
    """What is played when all turns were; without one there is one session too many."""
    spawned: list[SpawnOptions] = field(default_factory=list)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(resume=self.can_resume)

    def check(self) -> str:
        return "in memory"

    def spawn(self, options: SpawnOptions) -> Observable[ev.LlmAgentEvent]:
        def start(_scheduler: abc.SchedulerBase | None) -> Observable[Any]:
            turn = self.turn(options)
            self.spawned.append(options)
            if turn.leaves is not None:
                self.write(turn.leaves)
            mark_verified(options, set(turn.verifies))
            if turn.stream is not None:
                return turn.stream.pipe(mapcat(self._done))
            events: Observable[Any] = from_iterable(turn.events).pipe(mapcat(self._done))
            return events if turn.error is None else concat(events, throw(turn.error))

        return defer(start)

    def turn(self, options: SpawnOptions) -> Turn:
        """The turn of the session that is spawned."""
        left = self.turns[len(self.spawned) :]
        turn = left[0] if left else self.spare
        assert turn is not None, "one session too many"
        return turn

    def write(self, content: Statuses | str) -> None:
        """Put this into the status file."""
        file = self.project / ".autonoe" / "status.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else status_json(content))

    def _done(self, item: ev.Event | Writes) -> list[ev.Event]:
        if isinstance(item, Writes):
            self.write(item.content)
            return []
        return [item]


def mark_verified(options: SpawnOptions, ids: set[str]) -> None:
    """Mark deliverables as verified, as the tool `verify` does."""
    if not ids:
        return
    file = Path(options.env["CUGGINO_SESSION_FILE"]).with_suffix(".verified.json")
    kept = json.loads(file.read_text())
    kept["verified"] = [name for name in kept["all"] if name in ids | set(kept["verified"])]
    file.write_text(json.dumps(kept))


def deliver_marbles(**events: Any) -> Marbles:
    """Letters for what agents say: `a` a word, `d` a good end, `!` is a change of the folder."""
    known = {"a": ev.AgentMessage(text="working"), "d": DONE, "!": "changed", "S": "stop"}
    return Marbles(**{**known, **events})


@dataclass
class DeliverLoop:
    """A project in which a loop is run in virtual time."""

    folder: Path
    turns: Sequence[Turn] = ()
    start: Statuses | str | None = None
    """The status file at the start; None for none."""
    marbles: Marbles = field(default_factory=deliver_marbles)
    changes: Observable[object] = field(default_factory=never)
    fingerprints: Iterable[str] | None = None
    """The state of the project at each look; without them it is another one each time."""
    can_resume: bool = False
    gate: QuotaGate = field(default_factory=QuotaGate)
    sessions: type[Sessions] = Sessions
    """What the agent is."""
    settings: Mapping[str, object] | str | None = field(default_factory=lambda: NO_SERVERS)
    """`agent.json`; None for none."""

    def __post_init__(self) -> None:
        self.agent = self.sessions(self.turns, self.folder, can_resume=self.can_resume)
        if self.start is not None:
            self.agent.write(self.start)
        if self.settings is not None:
            write_settings(self.folder, self.settings)
        self.workspace = Workspace(self.folder)
        self.service = DeliverService(
            Services(
                agent=self.agent,
                workspace=self.workspace,
                changes=lambda _folder: self.changes,
                fingerprint=lambda *_args, **_options: defer(self._fingerprint),
                gate=self.gate,
            )
        )
        self._states = iter(self.fingerprints or map(str, range(1_000_000)))

    def replace(self, **services: Any) -> None:
        """Replace services of the loop."""
        self.service = DeliverService(replace(self.service.services, **services))

    @property
    def status_file(self) -> Path:
        return self.folder / ".autonoe" / "status.json"

    def _fingerprint(self, _scheduler: abc.SchedulerBase | None) -> Observable[str]:
        return from_iterable([next(self._states)])

    def options(self, **given: Any) -> DeliverRunOptions:
        return DeliverRunOptions(cwd=self.folder, **{"session_pause": 0.0, **given})

    def stream(self, *, interrupt: Observable[object] | None = None, **given: Any) -> Any:
        return self.service.run(self.options(**given), interrupt=interrupt)

    def run(
        self,
        *,
        interrupt: Observable[object] | None = None,
        dispose_at: float | None = None,
        **given: Any,
    ) -> RecordedDelivery:
        stream = self.stream(interrupt=interrupt, **given)
        return RecordedDelivery(self.marbles.record(stream, dispose_at=dispose_at))

    def assert_released(self) -> None:
        """Assert that no timer is left, no file of the run, and another run could begin."""
        assert 0 == pending(self.marbles)
        assert [] == list(self.workspace.wip.iterdir())
        with Workspace(self.folder).lock():
            pass


def pending(marbles: Marbles) -> int:
    """Timers that would still go off."""
    return sum(1 for item, _ in marbles.scheduler._queue.items if not item.is_cancelled())


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The events of a run."""

    seen: list[Seen]

    @property
    def events(self) -> list[Any]:
        return [value for _, kind, value in self.seen if kind == "next"]

    @property
    def error(self) -> Exception | None:
        """The error of the stream; None when it has completed."""
        _, kind, value = self.seen[-1]
        assert kind in ("completed", "error")
        return value if kind == "error" else None

    def times(self, *kinds: type[ev.Event]) -> list[float]:
        """When events of these kinds came, in virtual seconds."""
        return [when for when, kind, value in self.seen if kind == "next" and type(value) in kinds]


class RecordedDelivery(RecordedRun):
    """The events of a deliverables run."""

    @property
    def ended(self) -> ev.DeliverEnded:
        """The result, which is the last event."""
        last = [event for event in self.events if isinstance(event, ev.DeliverEnded)]
        assert last == self.events[-1:]
        return last[0]

    @property
    def instructions(self) -> list[str]:
        """The instructions of the sessions."""
        return [e.instruction for e in self.events if isinstance(e, ev.DeliverSessionStarted)]

    @property
    def outcomes(self) -> list[str]:
        """The outcomes of the sessions."""
        return [event.outcome for event in self.events if isinstance(event, ev.DeliverSessionEnded)]

    @property
    def warnings(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, ev.DeliverWarning)]

    @property
    def changes(self) -> list[tuple[float, str, str, str]]:
        """When which deliverable went from what to what."""
        return [
            (when, value.deliverable_id, value.previous, value.status)
            for when, _, value in self.seen
            if isinstance(value, ev.DeliverableStatusChanged)
        ]

    def of(self, *kinds: type[ev.Event]) -> list[tuple[float, Any]]:
        """The events of these kinds, and when they came."""
        return [(when, value) for when, _, value in self.seen if isinstance(value, kinds)]
