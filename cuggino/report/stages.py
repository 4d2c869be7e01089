"""The stages and processes of a run, with stages that were cut off and repeated."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import get_args

from cuggino.domain import Spending
from cuggino.events import (
    DeliverEnded,
    DeliverInstruction,
    DeliverSessionStarted,
    RunContinued,
    RunEnded,
    RunStarted,
    SnapshotTaken,
    StageFinished,
    StageStarted,
    WatchAuditEnded,
    WatchAuditFailed,
    WatchAuditInterrupted,
    WatchAuditStarted,
)
from cuggino.report.model import Ending, Process, ReportState, StageKind, StageTry
from cuggino.storage.journal import Entry

_SESSIONS = frozenset(get_args(DeliverInstruction))
_SNAPSHOTS = "refs/cuggino/snapshots/"
_AUDIT = "audit"
_KINDS: dict[str, StageKind] = {kind: kind for kind in get_args(StageKind)}


def kind_of(name: str) -> StageKind:
    """Return the kind of a stage by its name."""
    return _KINDS.get(name, "other")


class Processes:
    """The processes of the run, in order."""

    def __init__(self) -> None:
        self._ended: list[Process] = []
        self._present = _NO_PROCESS
        self._end = _NO_PROCESS.start

    def add(self, entry: Entry) -> None:
        if entry.event.tag not in _OF_PROCESSES:
            self.until(entry.at)
            return
        match entry.event:
            case RunStarted(command=command):
                self._present = _begun(entry.at, command)
                self._end = entry.at
            case RunContinued(command=command):
                self._ended.append(replace(self._present, end=self._end))
                self._present = _begun(entry.at, command)
                self._end = entry.at
            case DeliverEnded(reason=reason, error=error):
                self._present = replace(self._present, reason=reason, message=error)
            case RunEnded(state=state, message=message, checked=checked):
                message = message or self._present.message
                self._present = replace(
                    self._present, state=state, message=message, checked=checked
                )
            case _:
                pass
        self._end = max(self._end, entry.at)

    def until(self, at: datetime) -> None:
        """Record the time of an entry that changes no process."""
        if at > self._end:
            self._end = at

    def result(self, running_at: datetime | None) -> tuple[Process, ...]:
        """Return the processes; `running_at` is the current time if the last one still works."""
        last = replace(self._present, end=self._end)
        if running_at is not None and last.state == "killed":
            last = replace(last, state="running", end=max(last.end, running_at))
        return (*self._ended, last)


def _begun(at: datetime, command: str) -> Process:
    # A process without an end was killed.
    return Process(start=at, end=at, state="killed", command=command)


_NO_PROCESS = _begun(datetime.fromtimestamp(0, UTC), "")
_OF_PROCESSES = frozenset({"RunStarted", "RunContinued", "DeliverEnded", "RunEnded"})


_OF_AGENTS = frozenset({"AgentMessage", "Thinking", "ToolCall", "ToolResult"})
"""Tags that change no stage: most of a journal."""


class Stages:
    """Every attempt at every stage, in order of their start."""

    def __init__(self) -> None:
        self._tries: list[StageTry] = []
        self._latest: dict[str, int] = {}
        """The index of each stage's latest attempt."""
        self._open: dict[str, Spending] = {}
        self._session: int | None = None
        self._last_at: datetime | None = None

    def add(self, entry: Entry) -> None:
        before, self._last_at = self._last_at, entry.at
        if entry.event.tag in _OF_AGENTS:
            return
        match entry.event:
            case StageStarted(name=name):
                self._begin(entry.stage or name, name, entry.at)
            case StageFinished(outcome=outcome) if entry.stage in self._open:
                place = self._latest[entry.stage]
                self._tries[place] = replace(self._tries[place], outcome=outcome)
                self._close(entry.stage, entry.at, "finished")
            case WatchAuditStarted():
                self._latest.pop(entry.stage or _AUDIT, None)  # another one, not a repetition
                self._begin(entry.stage or _AUDIT, _AUDIT, entry.at)
            case WatchAuditEnded():
                self._close(entry.stage or _AUDIT, entry.at, "finished")
            case WatchAuditInterrupted() | WatchAuditFailed():
                self._close(entry.stage or _AUDIT, entry.at, "unfinished")
            case DeliverSessionStarted(session=session):
                self._session = session
            case RunContinued():
                self._close_all(before or entry.at, "unfinished")
            case RunEnded():
                self._close_all(entry.at, "unfinished")
            case SnapshotTaken(ref=ref) if entry.stage in self._open:
                place = self._latest[entry.stage]
                if not self._tries[place].snapshot:
                    name = ref.removeprefix(_SNAPSHOTS)
                    self._tries[place] = replace(self._tries[place], snapshot=name)
            case event if entry.stage in self._open:
                self._open[entry.stage] = self._open[entry.stage].add(event)
            case _:
                pass

    def until(self, at: datetime) -> None:
        """Record the time of an entry that changes no stage."""
        self._last_at = at

    def place(self, stage: str | None) -> int | None:
        """Return the index of the latest attempt at this stage."""
        return None if stage is None else self._latest.get(stage)

    def result(self, state: ReportState, end: datetime) -> tuple[StageTry, ...]:
        """Return all attempts; open ones end with the run, at `end`."""
        tries = list(self._tries)
        for stage in self._open:
            place = self._latest[stage]
            ending: Ending = "running" if state == "running" else "unfinished"
            tries[place] = self._closed(stage, end, ending)
        return tuple(tries)

    def _begin(self, stage: str, name: str, at: datetime) -> None:
        attempt = 1
        before = self._latest.get(stage)
        if before is not None:
            attempt = self._tries[before].attempt + 1
            self._close(stage, at, "repeated")
            self._tries[before] = replace(self._tries[before], ending="repeated")
        self._latest[stage] = len(self._tries)
        self._open[stage] = Spending()
        self._tries.append(
            StageTry(
                stage=stage,
                name=name,
                kind=kind_of(name),
                start=at,
                end=at,
                ending="running",
                attempt=attempt,
                session=self._session if name in _SESSIONS else None,
            )
        )

    def _close(self, stage: str, at: datetime, ending: Ending) -> None:
        if stage in self._open:
            self._tries[self._latest[stage]] = self._closed(stage, at, ending)
            del self._open[stage]

    def _closed(self, stage: str, at: datetime, ending: Ending) -> StageTry:
        spent = self._open[stage]
        known = self._tries[self._latest[stage]]
        return replace(
            known,
            end=max(known.start, at),
            ending=ending,
            cost_usd=spent.cost_usd,
            cost_estimated=spent.cost_estimated,
            usage=spent.usage,
        )

    def _close_all(self, at: datetime, ending: Ending) -> None:
        for stage in list(self._open):
            self._close(stage, at, ending)
