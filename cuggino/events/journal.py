"""Journal entries that are never emitted: start, stages and end of a run."""

from typing import Literal

from pydantic import Field, JsonValue

from cuggino.events.base import Event, category_guard
from cuggino.events.result import EndState


class JournalEvent(Event, category=True):
    """Category: written to the journal, not emitted."""


class RunStarted(JournalEvent):
    """The first entry of a journal."""

    run_id: str
    kind: Literal["run", "watch", "deliver", "loop"]
    command: str
    focus: str = ""
    item: str | None = None
    """The backlog item, a space, and the digest of its content."""
    agent: str = ""
    """The agent's name, as accepted by `--agent`."""
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """The options of the run."""
    branch: str | None = None
    """The branch that was checked out; None if HEAD was detached."""
    agents: dict[str, tuple[str, str | None]] = Field(default_factory=dict)
    """The agent and the model of each role, if roles have agents of their own; a model of None is
    the agent's default."""
    prompts: str = ""
    """The version of the prompts: a short digest of all templates, those of the project included.
    Empty in journals of older versions."""

    @property
    def attempts(self) -> int:
        """The number of attempts at the work, side by side; with hands, they are its tasks'."""
        hands, given = self.options.get("hands"), self.options.get("attempts")
        if isinstance(hands, int) and hands > 1:
            return 1
        return len(given) if isinstance(given, list) else given if isinstance(given, int) else 1

    @property
    def attempt_of(self) -> str | None:
        """The id of the run of which this is one of several attempts."""
        given = self.options.get("attempt_of")
        return given if isinstance(given, str) else None

    @property
    def has_runs(self) -> bool:
        """Whether other runs do its work: those of the items of a watch, or of several attempts.

        Each has a journal, with the costs and the stages.
        """
        return self.kind == "watch" or self.attempts > 1


class RunContinued(JournalEvent):
    """Another process resumes the run."""

    command: str = ""
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """Its limits in money and tokens; empty in journals of older versions."""


class StageStarted(JournalEvent):
    """A stage starts, or starts again in another process."""

    name: str


class StageFinished(JournalEvent):
    """A stage has ended with this outcome; a resumed run does not repeat it."""

    outcome: JsonValue = None
    """An event with its `_tag`, a time as `{"time": ...}`, or a value as `{"value": ...}`."""


class RunEnded(JournalEvent):
    """The last entry of a process, unless it was killed."""

    state: EndState
    message: str = ""
    """The error, if any."""
    checked: bool | None = None
    """For an approval: whether the check command decided (`LoopApproved`)."""
    exit_code: int | None = None
    """The exit code of the command, if an error decided on it."""


is_journal_event = category_guard(JournalEvent)
