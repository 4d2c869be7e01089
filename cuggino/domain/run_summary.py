"""What a run came to, as a fold over its events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from cuggino.events import (
    CommitFailed,
    CommitPerformed,
    Done,
    Event,
    ImplementingStart,
    IterationStart,
    LoopApproved,
    LoopMaxIterations,
    LoopSpecIssue,
    PlanningStart,
    Progress,
    ReviewingStart,
    SessionEnded,
    WatchAuditStarted,
    WatchItemCompleted,
    WatchProcessingItem,
)

RunOutcome = Literal["approved", "spec_issue", "max_iterations", "failed", "interrupted"]
"""`failed` and `interrupted` are no events: who runs the stream says so with `ended`."""


class Commit(NamedTuple):
    """A commit of the run: its abbreviated hash and its first line."""

    commit_hash: str
    subject: str


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Counts and results of the events added so far; a new value for each event.

    In a watch the numbers cover all items; outcome and spec issue are those of the last one.
    """

    outcome: RunOutcome | None = None
    """None while the run goes on."""
    rounds: int = 0
    """Plan-to-review rounds begun."""
    tasks: int = 0
    """Tasks that an agent declared done: `Progress` and `Done`."""
    agents: int = 0
    """Agents started, one for each phase and audit."""
    items: int = 0
    """Backlog items completed."""
    commits: tuple[Commit, ...] = ()
    failed_commits: tuple[str, ...] = ()
    """Why each commit failed."""
    cost_usd: float | None = None
    """US dollars of all sessions that told their cost; None when none did."""
    spec_issue_file: str | None = None
    """Name of the file in `.cuggino/spec-issues/`, when the outcome is `spec_issue`."""

    def add(self, event: Event) -> RunSummary:
        """The summary with one more event; most events change nothing."""
        match event:
            case IterationStart():
                return replace(self, rounds=self.rounds + 1)
            case PlanningStart() | ImplementingStart() | ReviewingStart() | WatchAuditStarted():
                return replace(self, agents=self.agents + 1)
            case Progress() | Done():
                return replace(self, tasks=self.tasks + 1)
            case CommitPerformed(commit_hash=commit_hash, message=message):
                subject = message.strip().partition("\n")[0]
                return replace(self, commits=(*self.commits, Commit(commit_hash, subject)))
            case CommitFailed(message=message):
                return replace(self, failed_commits=(*self.failed_commits, message))
            case SessionEnded(cost_usd=float(cost)):
                return replace(self, cost_usd=(self.cost_usd or 0.0) + cost)
            case WatchProcessingItem():
                return replace(self, outcome=None, spec_issue_file=None)
            case WatchItemCompleted():
                return replace(self, items=self.items + 1)
            case LoopApproved():
                return self.ended("approved")
            case LoopMaxIterations():
                return self.ended("max_iterations")
            case LoopSpecIssue(filename=filename):
                return replace(self, outcome="spec_issue", spec_issue_file=filename)
            case _:
                return self

    def ended(self, outcome: RunOutcome) -> RunSummary:
        """The summary of a run that ended so."""
        return replace(self, outcome=outcome)
