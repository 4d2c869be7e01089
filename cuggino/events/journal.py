"""What only a run's journal says: how it began, its stages, how it ended."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from cuggino.events.base import Event

RunState = Literal[
    "approved",
    "spec_issue",
    "max_iterations",
    "stalled",
    "ended",
    "failed",
    "quota",
    "budget",
    "interrupted",
]
"""How a run ended. The last four can be resumed, as can a run that was killed (no `RunEnded`)."""


class JournalEvent(Event, category=True):
    """Category: written to the journal, not emitted."""


class RunStarted(JournalEvent):
    """The first entry of a journal."""

    run_id: str
    kind: Literal["run", "watch", "deliver", "loop"]
    command: str
    focus: str = ""
    item: str | None = None
    """The backlog item, with the digest of its content behind a space."""
    agent: str = ""
    """The agent's name, as it can be given to `--agent`."""
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """The options of the run."""


class RunContinued(JournalEvent):
    """Another process goes on with the run."""

    command: str = ""


class StageStarted(JournalEvent):
    """A stage begins, or begins again in another process."""

    name: str


class StageFinished(JournalEvent):
    """A stage has ended with this outcome: on resume it is not run again."""

    outcome: JsonValue = None
    """An event with its `_tag`, a time as `{"time": ...}`, or a value as `{"value": ...}`."""


class RunEnded(JournalEvent):
    """The last entry of a process that could say how it ended."""

    state: RunState
    message: str = ""
    """What went wrong, if anything did."""
