"""Stages of a recorded run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue

from cuggino.events import StageFinished, StageStarted
from cuggino.storage.journal import JournalFile


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStage:
    """One stage of a recorded run."""

    stage: str
    seconds: float | None = None
    """Duration of the last attempt; None if it did not finish."""
    attempts: int = 1
    outcome: JsonValue = None
    """The outcome, as in the journal."""


def recorded_stages(journal: JournalFile) -> list[RecordedStage]:
    """Return the stages in the order in which they first started."""
    started: dict[str, list[datetime]] = {}
    stages: dict[str, RecordedStage] = {}
    for entry in journal.entries.only(("StageStarted", "StageFinished")):
        match entry.stage, entry.event:
            case str(stage), StageStarted():
                started.setdefault(stage, []).append(entry.at)
                stages[stage] = RecordedStage(stage=stage, attempts=len(started[stage]))
            case str(stage), StageFinished(outcome=outcome):
                times = started.get(stage) or [entry.at]
                stages[stage] = RecordedStage(
                    stage=stage,
                    seconds=max((entry.at - times[-1]).total_seconds(), 0.0),
                    attempts=len(times),
                    outcome=outcome,
                )
            case _:
                pass
    return list(stages.values())
