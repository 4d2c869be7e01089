"""Sample events: one of each class, built from its declared fields."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from cuggino import events as ev
from cuggino.events.base import is_item_shared

_VALUES: dict[str, Any] = {
    "iteration": 1,
    "max_iterations": 3,
    "max_tasks": 50,
    "exit_code": 2,
    "timestamp": 0.0,
    "status": "rejected",
    "resets_at": datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    "limit": "five_hour",
    "outcome": "completed",
    "usage": None,
    "cost_usd": None,
    "cost_estimated": False,
    "model": None,
    "num_turns": None,
    "duration": None,
    "is_error": False,
    "truncated": False,
    "attempt": 1,
    "max_retries": 3,
    "max_attempts": 3,
    "retry_in": 60.0,
    "input": {"command": "ls"},
}


_WITH_NUMBERS = (ev.SupervisionEvent, ev.UsageUpdate)
_USAGE = {"input_tokens": 1200, "output_tokens": 34}
_OF_POLICIES: dict[str, Any] = {
    "agents": 3,
    "commits": [("abc1234", "subject")],
    "cost_usd": 0.5,
    "idle": 90.0,
    "limit": 10.0,
    "markers": [("DONE", "all"), ("PROGRESS", "more")],
    "no_marker": False,
    "phase": "planning",
    "remaining": 7500.0,
    "repeated": 20,
    "retry_in": 5.0,
    "rounds": 2,
    "spent": 8.0,
    "stages": 12,
    "tasks": 3,
    "total_cost": 1.5,
    "total_estimated": True,
    "total_usage": _USAGE,
    "until": datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    "usage": _USAGE,
    "waited": 60.0,
}
_OF_ONE: dict[type[ev.Event], dict[str, Any]] = {
    ev.QuotaUsed: {"used": 0.85, "nearly": False},
    ev.QuotaWaiting: {"planned": False},
    ev.RateLimited: {"overage": False},
    ev.BudgetWarning: {"budget": "cost", "estimated": True, "count_tokens": "plain"},
    ev.BuildVerified: {"passed": False, "issues": ["no test"]},
    ev.DeliverEnded: {
        "reason": "all_passed",
        "sessions": 3,
        "passed": 2,
        "total": 3,
        "blocked": 1,
        "verified": 0,
        "to_verify": 0,
        "cost_usd": 0.5,
        "duration": 60.0,
        "sync": False,
    },
    ev.ApprovalBlocked: {"exit_code": 1, "changed": [], "reason": "check", "failing": []},
    ev.CheckCommandOutput: {"on": "work"},
    ev.CheckCommandStarted: {"on": "start"},
    ev.Baseline: {"exit_code": 1, "failing": ["test_a"], "seconds": 2.0},
    ev.CheckUnmeasured: {"paths": ["tests/test_a.py"]},
    ev.CheckVerdict: {"verdict": "known", "failing": ["test_a"]},
    ev.CheckWeakened: {"id": "C1", "paths": ["tests/test_a.py"], "failing": ["test_a"]},
    ev.NotInCommit: {"reason": "missing", "paths": ["a.txt"], "mended": False},
    ev.CostUnknown: {"agent": "codex", "model": "gpt-x", "reports": "tokens"},
    ev.CheckFlaky: {"tests": ["test_a"], "times": 2},
    ev.ApprovalQuestioned: {"objections": ["the review file has findings"]},
    ev.CommitPerformed: {"left": []},
    ev.DeliverSessionEnded: {"session": 1, "cost_usd": 0.5, "duration": 60.0},
    ev.DeliverSessionStarted: {"session": 1, "instruction": "coding"},
    ev.DeliverableStatusChanged: {"previous": "pending", "status": "passed"},
    ev.DeliverablesListed: {
        "deliverables": [{"id": "DL-001", "description": "a login", "status": "passed"}]
    },
    ev.Forecast: {
        "cost_estimated": True,
        "loop": "run",
        "runs": 10,
        "duration": 60.0,
        "worst_duration": 90.0,
        "worst_cost_usd": 1.5,
        "items": 0,
        "slots": 1,
    },
    ev.GateChanged: {"paths": ["check.sh"], "check": ["check.sh"], "skipping": [], "weakened": []},
    ev.JobBlocked: {"failures": 3},
    ev.JobVerified: {"passed": False, "issues": ["no test"]},
    ev.JobsCounted: {"open": 2, "done": 1, "blocked": 1},
    ev.LoopStalled: {"reason": "same_findings", "filenames": ["x.md"], "findings": ["x"]},
    ev.NoProgress: {"kind": "unchanged", "action": "replan"},
    ev.PlanBuildEnded: {
        "reason": "complete",
        "iterations": 3,
        "open": 0,
        "done": 2,
        "blocked": 1,
        "cost_usd": 0.5,
        "duration": 60.0,
    },
    ev.PlanBuildIterationEnded: {"cost_usd": 0.5, "duration": 60.0},
    ev.PlanBuildPhaseStarted: {"phase": "build"},
    ev.PlanBuildSessionEnded: {"phase": "build", "cost_usd": 0.5, "duration": 60.0},
    ev.ProtectedChanged: {"paths": [".specs/a.md"]},
    ev.InstructionsChanged: {"paths": ["AGENTS.md"]},
    ev.RoleViolated: {"paths": [".specs/a.md"], "failed": [], "void": True},
    ev.CheckCannotFail: {"command": "make test || true", "why": "`|| true` hides it"},
    ev.SandboxChosen: {"held": ["planning"], "not_held": []},
    ev.RunEnded: {"state": "failed", "checked": None},
    ev.LoopApproved: {"checked": False},
    ev.WatchItemCompleted: {"checked": True},
    ev.RunContinued: {"options": {"budget": 5.0}},
    ev.RunResumed: {"duration": 60.0},
    ev.RunStarted: {"kind": "run", "options": {}, "agents": {}},
    ev.DirtyFilesCommitted: {"paths": ["a.py"]},
    ev.DirtyFilesKept: {"paths": ["a.py"]},
    ev.PauseEnded: {"seconds": 60.0},
    ev.RateLimited: {"overage": False},
    ev.AgentNudged: {"polling": False},
    ev.WaitingStarted: {"until": {"kind": "ci", "pull_request": 12}, "since": "2026-01-02T03:04Z"},
    ev.WaitingEnded: {"until": {"kind": "ci", "pull_request": 12}, "outcome": "happened"},
    ev.SnapshotTaken: {"left_out": []},
    ev.HandsStarted: {"hands": 4, "tasks": 8, "notes": ("task-1.2: `attempts: 20` counts as 8",)},
    ev.HandsEnded: {"landed": ["task-1.1"], "undone": {"task-1.2": "skipped"}},
    ev.ImprovementsKept: {"findings": ["x"], "filenames": ["x.md"], "approves": True},
    ev.SpecsChanged: {"paths": [".specs/a.md"]},
    ev.VerificationEnded: {"findings": ["no test"], "failures": {"J1": 1}},
    ev.Steered: {"to": "prompt"},
    ev.StopAsked: {"now": False},
    ev.AttemptChosen: {"slot": 1, "passed": 2},
    ev.AttemptLost: {"slot": 1, "why": "failed", "tried": ["Add a page"]},
    ev.WatchCandidate: {"slot": 1, "attempt": 1, "approved": True},
    ev.WatchFollowDelayed: {"paths": ["a.py"]},
    ev.WatchFollowHealed: {"restored": 3},
    ev.WatchLanded: {"nothing": False},
    ev.WatchLanding: {"returns": 1},
    ev.WatchProcessingItem: {"position": 2, "total": 5, "slot": 0, "returns": 0},
    ev.WatchSentBack: {"reason": "check", "paths": ["a.py"], "returns": 2},
    ev.WatchSlotPrepared: {"slot": 1},
    ev.WatchPlaced: {"slot": 1},
    ev.WatchPlaceGone: {"slot": 1},
    ev.WatchWorkers: {
        "workers": [{"name": "w1", "places": 4, "busy": 1, "resources": {"claude": 2}}],
        "joined": ["w1"],
        "left": [],
        "dashboard": "http://head:8787/status",
    },
    ev.WatchSlotsChanged: {"active": 2, "slots": 4},
    ev.WatchWorkKept: {"slot": 1},
    ev.HookFailed: {"exit_code": 1},
    ev.WatchItemImported: {"change": "new"},
    ev.WatchIssueReported: {"state": "working"},
    ev.WatchBacklogWaiting: {"proposals": 0},
    ev.WatchProposal: {"number": 7, "state": "red"},
    ev.WatchProposed: {"number": 7, "is_new": True},
    ev.WatchItemRetry: {"counted": True, "login": False, "review": ""},
}


def sample(cls: type[ev.Event], **fields: Any) -> ev.Event:
    """Return an event of the class; a field without a default gets its name as text."""
    values = {**_VALUES, **(_OF_POLICIES if issubclass(cls, _WITH_NUMBERS) else {})}
    values |= _OF_ONE.get(cls, {})
    defaults = {name: values.get(name, name) for name in own_fields(cls)}
    return cls.model_validate({**defaults, **fields})


def own_fields(cls: type[ev.Event]) -> list[str]:
    """Return the fields of an event but the `item` that all share."""
    return [name for name in cls.model_fields if name != "item" or not is_item_shared(cls)]


def all_event_types() -> list[type[ev.Event]]:
    """Return every event class of the package, sorted by name."""
    types = ev.event_types().values()
    own = [cls for cls in types if cls.__module__.startswith("cuggino.")]
    return sorted(own, key=lambda cls: cls.__name__)
