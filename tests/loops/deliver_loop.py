"""A deliver loop with scripted sessions, a scripted status file and virtual time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reactivex import Observable, never

from cuggino import events as ev
from cuggino.agents.base import SpawnOptions
from cuggino.errors import AgentFailed, AgentFailure
from cuggino.files import write_atomic
from cuggino.loops import DeliverRunOptions, DeliverService, Services
from cuggino.operators.supervision import QuotaGate
from cuggino.storage import Workspace
from cuggino.testing import Marbles
from tests.loops.session_loop import DONE, SessionLoop, SessionStory, TurnAgent

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
class Sessions(TurnAgent):
    """An agent that plays one turn per session."""

    turns: Sequence[Turn]
    project: Path
    spare: Turn | None = None
    """What is played when all turns were; without one there is one session too many."""

    def turn(self, options: SpawnOptions) -> Turn:
        left = self.turns[len(self.spawned) :]
        turn = left[0] if left else self.spare
        assert turn is not None, "one session too many"
        return turn

    def begin(self, turn: Turn, options: SpawnOptions) -> None:
        if turn.leaves is not None:
            self.write(turn.leaves)
        mark_verified(options, set(turn.verifies))

    def do(self, item: ev.Event | Writes) -> list[ev.Event]:
        if not isinstance(item, Writes):
            return [item]
        self.write(item.content)
        return []

    def write(self, content: Statuses | str) -> None:
        """Put this into the status file, as the tools of the run do."""
        file = self.project / ".autonoe" / "status.json"
        write_atomic(file, content if isinstance(content, str) else status_json(content))


def mark_verified(options: SpawnOptions, ids: set[str]) -> None:
    """Mark deliverables as verified, as the tool `verify` does."""
    if not ids:
        return
    file = Path(options.env["CUGGINO_SESSION_FILE"]).with_suffix(".verified.json")
    kept = json.loads(file.read_text())
    kept["verified"] = [name for name in kept["all"] if name in ids | set(kept["verified"])]
    write_atomic(file, json.dumps(kept))


def deliver_marbles(**events: Any) -> Marbles:
    """Letters for what agents say: `a` a word, `d` a good end, `!` is a change of the folder."""
    known = {"a": ev.AgentMessage(text="working"), "d": DONE, "!": "changed", "S": "stop"}
    return Marbles(**{**known, **events})


class RecordedDelivery(SessionStory):
    """The events of a deliverables run."""

    end = ev.DeliverEnded
    session = ev.DeliverSessionEnded
    warning = ev.DeliverWarning

    @property
    def instructions(self) -> list[str]:
        """The instructions of the sessions."""
        return [event.instruction for event in self.of(ev.DeliverSessionStarted)]

    @property
    def changes(self) -> list[tuple[float, str, str, str]]:
        """When which deliverable went from what to what."""
        return [
            (when, change.deliverable_id, change.previous, change.status)
            for when, change in self.timed(ev.DeliverableStatusChanged)
        ]


@dataclass
class DeliverLoop(SessionLoop):
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
    story = RecordedDelivery

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
                fingerprint=self.fingerprint,
                gate=self.gate,
            )
        )
        self._states = iter(self.fingerprints or map(str, range(1_000_000)))

    @property
    def status_file(self) -> Path:
        return self.folder / ".autonoe" / "status.json"

    def options(self, **given: Any) -> DeliverRunOptions:
        return DeliverRunOptions(cwd=self.folder, **{"session_pause": 0.0, **given})
