"""Waits of a run for something outside of it: what is awaited, and how the wait ended."""

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from cuggino.events.marker import LlmTerminalMarkerEvent
from cuggino.events.supervision import SupervisionEvent

WaitOutcome = Literal["happened", "deadline", "failed"]


class _Until(BaseModel):
    model_config = ConfigDict(frozen=True)

    within: float | None = None
    """The longest wait in seconds; default: no limit."""
    deadline: datetime | None = None
    """The end of the wait, if nothing happens before; the earlier one of the two counts."""
    default: str = ""
    """The answer at the deadline."""


class FileExists(_Until):
    """A file or folder exists."""

    kind: Literal["file"] = "file"
    path: str
    """Relative to the project, or absolute."""


class FilesCounted(_Until):
    """A folder has at least this number of visible files."""

    kind: Literal["files"] = "files"
    folder: str
    at_least: int = 1


class ProcessEnded(_Until):
    """A process of this machine has ended."""

    kind: Literal["process"] = "process"
    pid: int
    started: float | None = None
    """When it was started, by which a reused pid is noticed; filled in when the wait begins."""


class At(_Until):
    """A time has come."""

    kind: Literal["time"] = "time"
    time: datetime
    """In the time zone of this machine, unless it names one."""


class CommandSucceeds(_Until):
    """A shell command exits with code 0; it is run again and again until then."""

    kind: Literal["command"] = "command"
    command: str


class CiDone(_Until):
    """The jobs of a pull request or a commit have ended."""

    kind: Literal["ci"] = "ci"
    pull_request: int | None = None
    """Default: the pull request of the current branch, filled in when the wait begins; without one,
    the current commit."""
    commit: str | None = None


class PersonAnswers(_Until):
    """A person has answered a question, or approved or rejected something."""

    kind: Literal["person"] = "person"
    question: str
    approves: str = ""
    """What is to be approved: `plan`, `landing`, or a sum such as `spend:20`; "" for a question."""
    issue: str = ""
    """The file of the question in `.cuggino/spec-issues/`, filled in when the wait begins."""


Until: TypeAlias = Annotated[
    FileExists | FilesCounted | ProcessEnded | At | CommandSucceeds | CiDone | PersonAnswers,
    Field(discriminator="kind"),
]
"""What is awaited; frozen data."""


class Waiting(LlmTerminalMarkerEvent):
    """The agent waits for something outside: its session ends, and is resumed when it happened."""

    session_id: str | None = None
    """The session to resume; None if the agent cannot."""
    words: str = ""
    """The agent's last message, for a fresh session."""


class WaitingStarted(SupervisionEvent):
    """A run waits, and no agent works; emitted again by a process that resumes the wait."""

    until: Until
    since: datetime
    """When the wait began."""


class WaitingEnded(SupervisionEvent):
    """A wait is over; the run continues."""

    until: Until
    outcome: WaitOutcome
    """`deadline`: nothing happened before it; `failed`: it cannot be watched any longer."""
    answer: str = ""
    """The words of a person, the outcome of the jobs, the default at the deadline, or the error."""
    waited: float
    """Seconds."""


class WaitingRefused(SupervisionEvent):
    """A run cannot wait for what an agent asked for; its session is resumed with the reason."""

    asked: str
    """The first line of the marker."""
    reason: str
