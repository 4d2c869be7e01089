"""The stages and processes of a run, with stages that were cut off and repeated."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
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
)
from cuggino.report.model import Ending, Process, ReportState, StageKind, StageTry
from cuggino.storage.journal import Entry

_SESSIONS = frozenset(get_args(DeliverInstruction))
_SNAPSHOTS = "refs/cuggino/snapshots/"
_KINDS: dict[str, StageKind] = {kind: kind for kind in get_args(StageKind)}


def kind_of(name: str) -> StageKind:
    """Return the kind of a stage by its name."""
    return _KINDS.get(name, "other")


class Processes:
    """The processes of the run, in order."""

    def __init__(self, first: Entry) -> None:
        self._ended: list[Process] = []
        command = first.event.command if isinstance(first.event, RunStarted) else ""
        self._present = _begun(first.at, command)
        self._end = first.at

    def add(self, entry: Entry) -> None:
        match entry.event:
            case RunContinued(command=command):
                self._ended.append(replace(self._present, end=self._end))
                self._present = _begun(entry.at, command)
                self._end = entry.at
            case DeliverEnded(reason=reason, error=error):
                self._present = replace(self._present, reason=reason, message=error)
            case RunEnded(state=state, message=message):
                self._present = replace(
                    self._present, state=state, message=message or self._present.message
                )
            case _:
                pass
        self._end = max(self._end, entry.at)

    def result(self, running_at: datetime | None) -> tuple[Process, ...]:
        """Return the processes; `running_at` is the current time if the last one still works."""
        last = replace(self._present, end=self._end)
        if running_at is not None and last.state == "killed":
            last = replace(last, state="running", end=max(last.end, running_at))
        return (*self._ended, last)


def _begun(at: datetime, command: str) -> Process:
    # A process without an end was killed.
    return Process(start=at, end=at, state="killed", command=command)


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
        match entry.event:
            case StageStarted(name=name):
                self._begin(entry.stage or name, name, entry.at)
            case StageFinished(outcome=outcome) if entry.stage in self._open:
                place = self._latest[entry.stage]
                self._tries[place] = replace(self._tries[place], outcome=outcome)
                self._close(entry.stage, entry.at, "finished")
            case DeliverSessionStarted(session=session):
                self._session = session
            case RunContinued():
                self._close_all(self._last_at or entry.at, "unfinished")
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
        self._last_at = entry.at

    def result(self, state: ReportState, end: datetime) -> tuple[StageTry, ...]:
        """Return all attempts; open ones end with the run, at `end`."""
        self._close_all(end, "running" if state == "running" else "unfinished")
        return tuple(self._tries)

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
        spent = self._open.pop(stage, None)
        if spent is None:
            return
        place = self._latest[stage]
        known = self._tries[place]
        self._tries[place] = replace(
            known,
            end=max(known.start, at),
            ending=ending,
            cost_usd=spent.cost_usd,
            usage=spent.usage,
        )

    def _close_all(self, at: datetime, ending: Ending) -> None:
        for stage in list(self._open):
            self._close(stage, at, ending)
