"""Recorded runs as JSON, and their stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cuggino.errors import StorageError
from cuggino.events import DeliverablesListed, StageFinished, StageStarted
from cuggino.storage.journal import JournalFile
from cuggino.storage.journal_delivery import DeliveredSession, Delivery
from cuggino_cli.output.runs import StageRow
from cuggino_cli.recorded import RecordedRun


def stage_rows(journal: JournalFile) -> list[StageRow]:
    """The stages in the order in which they first began."""
    begun: dict[str, list[Any]] = {}
    rows: dict[str, StageRow] = {}
    for entry in journal.entries:
        match entry.stage, entry.event:
            case str(stage), StageStarted():
                begun.setdefault(stage, []).append(entry.at)
                rows[stage] = StageRow(stage=stage, attempts=len(begun[stage]))
            case str(stage), StageFinished(outcome=outcome):
                times = begun.get(stage) or [entry.at]
                rows[stage] = StageRow(
                    stage=stage,
                    seconds=max((entry.at - times[-1]).total_seconds(), 0.0),
                    attempts=len(times),
                    outcome=outcome,
                )
            case _:
                pass
    return list(rows.values())


def about(run: RecordedRun) -> dict[str, Any]:
    """What `cuggino runs list --json` says of a run."""
    started, totals, delivery = run.journal.started, run.totals, run.delivery
    return {
        "run_id": started.run_id,
        "state": run.state,
        "resumable": run.resumable,
        "kind": started.kind,
        "command": started.command,
        "focus": started.focus,
        "item": started.item,
        "agent": started.agent,
        "started": run.journal.entries[0].at.isoformat(),
        "last": run.journal.entries[-1].at.isoformat(),
        "duration": totals.duration,
        "iterations": totals.rounds,
        "tasks": totals.tasks,
        "agents": totals.agents,
        "commits": [{"hash": commit, "subject": subject} for commit, subject in totals.commits],
        "cost_usd": totals.cost_usd,
        "usage": totals.usage.model_dump() if totals.usage else None,
        "delivery": _delivery(delivery) if delivery is not None else None,
    }


def more_about(run: RecordedRun, stages: list[StageRow]) -> dict[str, Any]:
    """What `cuggino runs show --json` says besides."""
    more: dict[str, Any] = {
        "message": run.message,
        "options": run.journal.started.options,
        "stages": [
            {
                "stage": row.stage,
                "duration": row.seconds,
                "attempts": row.attempts,
                "outcome": row.outcome,
            }
            for row in stages
        ],
    }
    delivery = run.delivery
    if delivery is not None:
        listed = delivery.listed
        more["delivery"] = {
            **_delivery(delivery),
            "deliverables": [item.model_dump() for item in listed.deliverables] if listed else [],
            "sessions": [_session(session) for session in delivery.sessions],
        }
    return more


def _delivery(delivery: Delivery) -> dict[str, Any]:
    """How far it is; `reason` is None while it goes on, or when its process was killed."""
    listed = delivery.listed or DeliverablesListed()
    return {
        "reason": delivery.ended.reason if delivery.ended is not None else None,
        "failed_sessions": delivery.failures,
        "total": len(listed.deliverables),
        "passed": listed.passed,
        "blocked": listed.blocked,
        "verified": listed.verified,
    }


def _session(session: DeliveredSession) -> dict[str, Any]:
    ended = session.ended
    return {
        "session": session.session,
        "instruction": session.instruction,
        "model": session.model,
        "stage": session.stage,
        "started": session.at.isoformat(),
        "attempts": session.attempts,
        "outcome": ended.outcome if ended is not None else None,
        "message": ended.message if ended is not None else "",
        "cost_usd": ended.cost_usd if ended is not None else None,
        "duration": ended.duration if ended is not None else None,
    }


def unreadable(path: Path, error: StorageError) -> dict[str, Any]:
    """What is said in the place of a run whose journal cannot be read."""
    return {"run_id": path.stem, "state": "unreadable", "message": error.message}
