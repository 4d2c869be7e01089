"""Journals that tests write as a run would."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from cuggino.events import AgentMessage, Event, RunContinued, RunEnded, RunStarted, StageStarted
from cuggino.storage import Workspace, new_run_id
from cuggino.storage.journal import Journal

AT = datetime(2026, 11, 23, 5, tzinfo=UTC)
NOTE = "note-([0-9]+)-"


class Writer:
    """A run that writes its journal."""

    def __init__(self, project: Path | Journal, *, run_id: str | None = None) -> None:
        self._has_stage = isinstance(project, Journal)
        if isinstance(project, Journal):
            self.journal = project
            return
        started = RunStarted(run_id=run_id or new_run_id(), kind="run", command="cuggino run")
        self.journal = Journal.create(Workspace(project).journal, started, at=AT, sync=False)

    @classmethod
    def resume(cls, path: Path) -> Writer:
        """Resume the run, which cuts off half a line."""
        made = cls(Journal.open(path, sync=False))
        made.add(RunContinued())
        return made

    @property
    def run_id(self) -> str:
        return self.journal.run_id

    @property
    def path(self) -> Path:
        return self.journal.path

    def killed(self) -> Writer:
        """Be killed in the middle of a line, and return the resumed run."""
        self.close()
        with self.path.open("ab") as file:
            file.write(b'{"v":1,"seq":3,"at":"2026-11-23T05:00:00Z","stage":null,"event":{"_ta')
        return Writer.resume(self.path)

    def close(self) -> None:
        """Close the journal; closing it again is allowed."""
        self.journal.close()

    def note(self, *numbers: int) -> None:
        """Append a message for each number, which `NOTE` finds."""
        self.write(*(f"note-{number}-" for number in numbers))

    def write(self, *texts: str) -> None:
        """Append a message of the agent for each text."""
        if not self._has_stage:
            self._has_stage = True
            started = StageStarted(name="implementing")
            self.journal.append(started, at=AT, stage="implementing#1")
        for text in texts:
            self.journal.append(AgentMessage(text=text), at=AT, stage="implementing#1")

    def add(self, event: Event) -> None:
        """Append an event."""
        self.journal.append(event, at=AT)

    def end(self) -> None:
        """End the run as approved."""
        self.add(RunEnded(state="approved"))
        self.journal.close()
