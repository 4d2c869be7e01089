"""Recorded runs as JSON objects: the format of `cuggino runs --json`."""

from __future__ import annotations

from typing import Any

from cuggino.events import DeliverablesListed
from cuggino.runs.listing import RecordedRun, UnreadableRun
from cuggino.runs.state import DeliveredSession, Delivery


def run_json(run: RecordedRun) -> dict[str, Any]:
    """Return the facts of a run, as `cuggino runs list --json` prints them."""
    started, totals, delivery = run.started, run.totals, run.delivery
    none = None if started.has_runs else 0  # the runs of its items have them
    return {
        "run_id": started.run_id,
        "state": run.state,
        "checked": run.checked,
        "resumable": run.resumable,
        "kind": started.kind,
        "command": started.command,
        "focus": started.focus,
        "item": started.item,
        "agent": started.agent,
        "started": run.digest.began.isoformat(),
        "last": run.digest.last.isoformat(),
        "duration": totals.duration,
        "iterations": totals.rounds or none,
        "tasks": totals.tasks or none,
        "agents": totals.agents,
        "commits": [{"hash": commit, "subject": subject} for commit, subject in totals.commits],
        "cost_usd": totals.cost_usd,
        "cost_estimated": totals.cost_estimated,
        "usage": totals.usage.model_dump() if totals.usage else None,
        "delivery": _delivery(delivery) if delivery is not None else None,
    }


def run_details_json(run: RecordedRun) -> dict[str, Any]:
    """Return the facts of a run with its options, stages and deliverables."""
    details: dict[str, Any] = {
        **run_json(run),
        "message": run.message,
        "options": run.started.options,
        "stages": [
            {
                "stage": stage.stage,
                "duration": stage.seconds if stage.ending == "finished" else None,
                "attempts": stage.attempt,
                "outcome": stage.outcome,
            }
            for stage in run.folded.stages.last_tries
        ],
    }
    delivery = run.delivery
    if delivery is not None:
        listed = delivery.listed
        details["delivery"] = {
            **_delivery(delivery),
            "deliverables": [item.model_dump() for item in listed.deliverables] if listed else [],
            "sessions": [_session(session) for session in delivery.sessions],
        }
    return details


def unreadable_json(run: UnreadableRun) -> dict[str, Any]:
    """Return the object for a run whose journal cannot be read."""
    return {"run_id": run.id, "state": "unreadable", "message": run.error.message}


def _delivery(delivery: Delivery) -> dict[str, Any]:
    """Return the progress; `reason` is None while it runs, or if its process was killed."""
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
        "cost_estimated": ended.cost_estimated if ended is not None else False,
        "duration": ended.duration if ended is not None else None,
    }
