"""What a run came to, as a fold over its events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal, NamedTuple

from cuggino.domain.spending import Spending
from cuggino.events import (
    CommitFailed,
    CommitPerformed,
    DeliverablesListed,
    DeliverEnded,
    DeliverExit,
    DeliverSessionStarted,
    Done,
    Event,
    ImplementingStart,
    IterationStart,
    LoopApproved,
    LoopMaxIterations,
    LoopSpecIssue,
    LoopStalled,
    PlanningStart,
    Progress,
    ReviewingStart,
    RunResumed,
    Usage,
    WatchAuditStarted,
    WatchItemCompleted,
    WatchProcessingItem,
)

RunOutcome = Literal[
    "approved", "spec_issue", "max_iterations", "stalled", "blocked", "failed", "interrupted"
]
"""`failed` and `interrupted` are no events of the coding loop: who runs the stream says so with
`ended`. The deliverables loop tells all of them; `blocked`: every deliverable is."""

_COUNTED = (
    RunResumed,
    IterationStart,
    PlanningStart,
    ImplementingStart,
    ReviewingStart,
    WatchAuditStarted,
    Progress,
    Done,
    CommitPerformed,
    CommitFailed,
    WatchProcessingItem,
    WatchItemCompleted,
    LoopApproved,
    LoopMaxIterations,
    LoopStalled,
    LoopSpecIssue,
    DeliverSessionStarted,
    DeliverablesListed,
    DeliverEnded,
)
"""Events that change more than what was spent."""

_DELIVERED: dict[DeliverExit, RunOutcome] = {
    "all_passed": "approved",
    "all_verified": "approved",
    "all_blocked": "blocked",
    "max_iterations": "max_iterations",
    "max_retries_exceeded": "stalled",
    "stalled": "stalled",
    "quota_exceeded": "failed",
    "budget_exceeded": "failed",
    "failed": "failed",
    "interrupted": "interrupted",
}


@cache
def _counts(cls: type[Event]) -> bool:
    """Whether events of this class change a summary; asked for each of very many that do not."""
    return issubclass(cls, _COUNTED)


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
    """Plan-to-review rounds begun; sessions, in the deliverables loop."""
    tasks: int = 0
    """Tasks that an agent declared done: `Progress` and `Done`."""
    agents: int = 0
    """Agents started, one for each phase and audit."""
    items: int = 0
    """Backlog items completed."""
    in_watch: bool = False
    """A watch has taken an item: it goes on with its runs by itself."""
    in_delivery: bool = False
    """It is the deliverables loop."""
    deliverables: DeliverablesListed | None = None
    """The deliverables as last seen, None while they are unknown."""
    commits: tuple[Commit, ...] = ()
    failed_commits: tuple[str, ...] = ()
    """Why each commit failed."""
    spent: Spending = field(default_factory=Spending)
    """What all sessions took, as far as they told."""
    earlier_s: float = 0.0
    """Seconds that earlier processes worked on a run that was resumed: no event tells the time of
    this one."""
    tbd_files: tuple[str, ...] = ()
    """Names of the files in `.cuggino/tbd/` that a stalled loop has left."""
    spec_issue_file: str | None = None
    """Name of the file in `.cuggino/spec-issues/`, when the outcome is `spec_issue`."""

    @property
    def cost_usd(self) -> float | None:
        """US dollars of all sessions that told their cost; None when none did."""
        return self.spent.cost_usd

    @property
    def usage(self) -> Usage | None:
        """Tokens of all sessions that told them; None when none did."""
        return self.spent.usage

    def add(self, event: Event) -> RunSummary:
        """The summary with one more event; most events change nothing."""
        if isinstance(event, RunResumed) and (self.agents or self.rounds or self.items):
            return self  # a watch goes on with a run of its own, which it has counted
        spent = self.spent.add(event)
        summary = self if spent is self.spent else replace(self, spent=spent)
        return summary._counted(event) if _counts(type(event)) else summary

    def _counted(self, event: Event) -> RunSummary:
        match event:
            case RunResumed():
                return self.recounted(event)
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
            case WatchProcessingItem():
                return replace(self, outcome=None, spec_issue_file=None, in_watch=True)
            case WatchItemCompleted():
                return replace(self, items=self.items + 1)
            case LoopApproved():
                return self.ended("approved")
            case LoopMaxIterations():
                return self.ended("max_iterations")
            case LoopStalled(filenames=names):
                return replace(self, outcome="stalled", tbd_files=names)
            case LoopSpecIssue(filename=filename):
                return replace(self, outcome="spec_issue", spec_issue_file=filename)
            case DeliverSessionStarted():
                counted = replace(self, rounds=self.rounds + 1, agents=self.agents + 1)
                return replace(counted, in_delivery=True)
            case DeliverablesListed():
                return replace(self, deliverables=event, in_delivery=True)
            case DeliverEnded(reason=reason):
                return replace(self, outcome=_DELIVERED[reason], in_delivery=True)
            case _:
                return self

    def recounted(self, totals: RunResumed) -> RunSummary:
        """The summary with these counts, such as those of the whole journal, for its own."""
        return replace(
            self,
            rounds=totals.rounds,
            tasks=totals.tasks,
            agents=totals.agents,
            commits=tuple(Commit(*commit) for commit in totals.commits),
            spent=self.spent.add(totals),
            earlier_s=totals.duration,
        )

    def ended(self, outcome: RunOutcome) -> RunSummary:
        """The summary of a run that ended so."""
        return replace(self, outcome=outcome)
