"""Reports as JSON objects: the format of `cuggino report --json`."""

from __future__ import annotations

from typing import Any

from cuggino.events import Forecast, Usage
from cuggino.report.model import Decision, ReportCommit, RoleSpent, RunReport, SlotsReport
from cuggino.report.morning import Proof, proof_of
from cuggino.report.night import NightItem, NightReport
from cuggino.runs import windows_json


def report_json(report: RunReport | NightReport) -> dict[str, Any]:
    """Return the facts of a report: totals, plans, commits, reviews; of a watch, its items."""
    if isinstance(report, NightReport):
        return _night(report)
    return _run(report)


def _run(report: RunReport) -> dict[str, Any]:
    totals = report.totals
    return {
        **_identity(report),
        "proof": _proof(proof_of(report)),
        "title": report.title,
        "item": report.item,
        "slot": report.slot or None,
        "worker": report.worker or None,
        "duration": report.worked,
        "iterations": totals.rounds,
        "tasks": totals.tasks,
        "agents": totals.agents,
        "cost_usd": _cost(totals.cost_usd),
        "cost_estimated": totals.cost_estimated,
        "usage": _usage(totals.usage),
        "roles": [_role(role) for role in report.roles],
        "forecast": _forecast(report.forecast),
        "windows": windows_json(report.windows),
        "plans": [
            {
                "iteration": plan.iteration,
                "tasks": [
                    {"title": task.title, "done": task.is_done, "commit": task.commit}
                    for task in plan.tasks
                ],
            }
            for plan in report.plans
        ],
        "stages": [
            {
                "stage": stage.stage,
                "kind": stage.kind,
                "started": stage.start.isoformat(),
                "duration": stage.seconds,
                "ending": stage.ending,
                "cost_usd": _cost(stage.cost_usd),
                "cost_estimated": stage.cost_estimated,
            }
            for stage in report.stages
        ],
        "commits": [_commit(commit) for commit in report.commits],
        "checks": [
            {
                "kind": command.kind,
                "command": command.command,
                "iteration": command.iteration,
                "exit_code": command.exit_code,
            }
            for command in report.commands
        ],
        "findings": [
            {"kind": finding.kind, "stage": finding.stage, "text": finding.text}
            for finding in report.findings
        ],
        "notices": [
            {"at": notice.at.isoformat(), "kind": notice.kind, "text": notice.text}
            for notice in report.notices
        ],
        "deliverables": [
            {"id": one.id, "description": one.description, "status": one.status}
            for one in (report.delivery.deliverables if report.delivery else ())
        ],
        "jobs": report.counted.model_dump() if report.counted else None,
    }


def _night(night: NightReport) -> dict[str, Any]:
    lines = night.lines
    return {
        **_identity(night.watch),
        "duration": night.seconds,
        "agents": night.agents,
        "cost_usd": _cost(night.cost_usd),
        "cost_estimated": night.cost_estimated,
        "audit_cost_usd": _cost(night.audit_cost),
        "audit_cost_estimated": night.audit_estimated,
        "usage": _usage(night.usage),
        "forecast": _forecast(night.watch.forecast),
        "commits": len(night.commits),
        "lines_added": lines[0] if lines else None,
        "lines_deleted": lines[1] if lines else None,
        "outcomes": {word: count for word, count, _ in night.counts},
        "decisions": [_decision(one) for one in night.decisions],
        "items": [_item(one, night.proof(one)) for one in night.items],
        "slots": _slots(night.slots) if night.slots else None,
    }


def _slots(slots: SlotsReport) -> dict[str, Any]:
    return {
        "slots": slots.count,
        "landed": slots.landed,
        "sent_back": slots.returns,
        "queue": list(slots.queue),
        "landings": [
            {
                "item": one.item,
                "candidate": one.candidate,
                "started": one.start.isoformat(),
                "duration": one.seconds,
                "ending": one.ending,
                "commit": one.commit or None,
                "branch": one.branch or None,
                "paths": list(one.paths),
            }
            for one in slots.landings
        ],
        "uses": [
            {
                "slot": one.slot,
                "item": one.item,
                "worker": one.worker or None,
                "started": one.start.isoformat(),
                "duration": one.seconds,
                "lost": one.is_lost,
            }
            for one in slots.uses
        ],
        "workers": None
        if slots.workers is None
        else [worker.model_dump() for worker in slots.workers],
        "lost_workers": list(slots.lost),
        "kept": [
            {"ref": one.ref, "slot": one.slot, "item": one.item, "reason": one.reason}
            for one in slots.kept
        ],
    }


def _identity(report: RunReport) -> dict[str, Any]:
    return {
        "run_id": report.run_id,
        "kind": report.kind,
        "state": report.state,
        "checked": report.checked,
        "message": report.message,
        "started": report.start.isoformat(),
        "last": report.end.isoformat(),
    }


def _item(item: NightItem, proof: Proof | None) -> dict[str, Any]:
    return {
        "item": item.item.name,
        "title": item.title,
        "state": "approved" if item.item.state == "unchecked" else item.item.state,
        "checked": False if item.item.state == "unchecked" else None,
        "proof": _proof(proof),
        "outcome": item.outcome[0],
        "reason": item.item.reason,
        "attempts": item.item.attempts,
        "slot": item.item.slot or None,
        "worker": item.item.worker or None,
        "returns": item.item.returns,
        "issue": item.item.issue or None,
        "pull_request": item.item.pull_request or None,
        "duration": item.seconds,
        "cost_usd": _cost(item.cost_usd),
        "cost_estimated": item.cost_estimated,
        "usage": _usage(item.usage),
        "commits": [_commit(commit) for commit in item.commits],
        "runs": [run.run_id for run in item.runs],
    }


def _proof(proof: Proof | None) -> dict[str, Any] | None:
    """Return the check behind an approval, and whether it proves the work."""
    return None if proof is None else {"proven": proof.tone == "good", "text": proof.text}


def _forecast(forecast: Forecast | None) -> dict[str, Any] | None:
    return None if forecast is None else forecast.model_dump(exclude={"item"})


def _decision(one: Decision) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "title": one.title,
        "path": one.path,
        "item": one.item or None,
        "command": one.command,
        "new": one.is_new,
    }


def _commit(commit: ReportCommit) -> dict[str, Any]:
    return {
        "hash": commit.commit_hash,
        "subject": commit.message.strip().partition("\n")[0],
        "added": commit.diff.added if commit.diff else None,
        "deleted": commit.diff.deleted if commit.diff else None,
        "gone": commit.gone,
    }


def _role(role: RoleSpent) -> dict[str, Any]:
    return {
        "role": role.kind,
        "stages": role.stages,
        "duration": role.seconds,
        "cost_usd": _cost(role.cost_usd),
        "cost_estimated": role.cost_estimated,
        "usage": _usage(role.usage),
    }


def _cost(usd: float | None) -> float | None:
    """Return the cost without the noise of binary fractions."""
    return None if usd is None else round(usd, 8)


def _usage(usage: Usage | None) -> dict[str, int] | None:
    return usage.model_dump() if usage is not None else None
