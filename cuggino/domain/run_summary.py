"""The totals of a run, as a fold over its events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cuggino.domain.spending import Spending
from cuggino.events import (
    CommitFailed,
    CommitPerformed,
    DeliverablesListed,
    DeliverEnded,
    DeliverSessionStarted,
    Done,
    Event,
    GateChanged,
    HistoryRewritten,
    ImplementingStart,
    IterationStart,
    LoopApproved,
    LoopMaxIterations,
    LoopSpecIssue,
    LoopStalled,
    PlanningStart,
    Progress,
    ReviewingStart,
    RunOutcome,
    RunResumed,
    Usage,
    WatchAuditStarted,
    WatchItemCompleted,
    WatchLanded,
    WatchProcessingItem,
    WatchSentBack,
)

_COUNTED = frozenset(
    {
        "CommitFailed",
        "CommitPerformed",
        "DeliverEnded",
        "DeliverSessionStarted",
        "DeliverablesListed",
        "Done",
        "GateChanged",
        "HistoryRewritten",
        "ImplementingStart",
        "IterationStart",
        "LoopApproved",
        "LoopMaxIterations",
        "LoopSpecIssue",
        "LoopStalled",
        "PlanningStart",
        "Progress",
        "ReviewingStart",
        "RunResumed",
        "WatchAuditStarted",
        "WatchItemCompleted",
        "WatchLanded",
        "WatchProcessingItem",
        "WatchSentBack",
    }
)
"""The tags of events that change more than the spending."""


class SummaryCommit(NamedTuple):
    """A commit of the run: its abbreviated hash and its subject."""

    commit_hash: str
    subject: str


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The totals of the events added so far; each event gives a new value.

    In a watch, the numbers cover all items; outcome and spec issue are those of the last one.
    """

    outcome: RunOutcome | None = None
    """None while the run is in progress."""
    checked: bool | None = None
    """For an approval: whether the check command decided (`LoopApproved`)."""
    rounds: int = 0
    """Iterations begun; sessions in the deliver loop."""
    tasks: int = 0
    """Tasks that an agent reported as done: `Progress` and `Done`."""
    agents: int = 0
    """Agents started, one per phase and audit."""
    items: int = 0
    """Backlog items completed."""
    landed: int = 0
    """Candidates of a watch with several slots that have landed."""
    returns: int = 0
    """Candidates that were sent back instead."""
    in_watch: bool = False
    """True once a watch has taken an item; it resumes its runs itself."""
    in_delivery: bool = False
    """True in the deliver loop."""
    deliverables: DeliverablesListed | None = None
    """The latest deliverables; None while unknown."""
    commits: tuple[SummaryCommit, ...] = ()
    failed_commits: tuple[str, ...] = ()
    """The error of each failed commit."""
    gate_changed: tuple[str, ...] = ()
    """Files of the check, removed tests and specifications that changed during the run."""
    lost_base: str | None = None
    """The commit that the run began with, if it was removed from the history."""
    spent: Spending = field(default_factory=Spending)
    """The spending of all sessions, as far as reported."""
    earlier_s: float = 0.0
    """Seconds that earlier processes worked on a resumed run."""
    tbd_files: tuple[str, ...] = ()
    """Names of the files in `.cuggino/tbd/` written by a stalled loop."""
    spec_issue_file: str | None = None
    """Name of the file in `.cuggino/spec-issues/` if the outcome is `spec_issue`."""

    @property
    def cost_usd(self) -> float | None:
        """US dollars of all sessions whose cost is known; None if none is."""
        return self.spent.cost_usd

    @property
    def cost_estimated(self) -> bool:
        """True if a part of the cost is an estimate."""
        return self.spent.cost_estimated

    @property
    def usage(self) -> Usage | None:
        """Tokens of all sessions that reported them; None if none did."""
        return self.spent.usage

    def add(self, event: Event) -> RunSummary:
        """Return the summary with one more event; most events change nothing."""
        if event.tag == "RunResumed" and (
            event.item is not None or self.agents or self.rounds or self.items
        ):
            return self  # a watch resumes a run of its own, which is already counted
        spent = self.spent.add(event)
        summary = self if spent is self.spent else replace(self, spent=spent)
        return summary._counted(event) if event.tag in _COUNTED else summary

    def _counted(self, event: Event) -> RunSummary:
        match event:
            case IterationStart():
                return replace(self, rounds=self.rounds + 1)
            case PlanningStart() | ImplementingStart() | ReviewingStart():
                return replace(self, agents=self.agents + 1)
            case Progress() | Done():
                return replace(self, tasks=self.tasks + 1)
            case CommitPerformed(commit_hash=commit_hash, message=message):
                subject = message.strip().partition("\n")[0]
                return replace(self, commits=(*self.commits, SummaryCommit(commit_hash, subject)))
            case CommitFailed(message=message):
                return replace(self, failed_commits=(*self.failed_commits, message))
            case RunResumed():
                return self.recounted(event)
            case GateChanged(paths=paths):
                return replace(self, gate_changed=paths)
            case HistoryRewritten(base=base):
                return replace(self, lost_base=base)
            case LoopApproved(checked=checked):
                return replace(self, outcome="approved", checked=checked)
            case LoopMaxIterations():
                return self.ended("max_iterations")
            case LoopStalled(filenames=names):
                return replace(self, outcome="stalled", tbd_files=names)
            case LoopSpecIssue(filename=filename):
                return replace(self, outcome="spec_issue", spec_issue_file=filename)
            case _:
                return self._counted_of_others(event)

    def _counted_of_others(self, event: Event) -> RunSummary:
        """Count an event of the watch or the deliver loop, whose events are loaded only here."""
        match event:
            case WatchAuditStarted():
                return replace(self, agents=self.agents + 1)
            case WatchProcessingItem():
                return replace(self, outcome=None, spec_issue_file=None, in_watch=True)
            case WatchItemCompleted():
                return replace(self, items=self.items + 1)
            case WatchLanded():
                return replace(self, landed=self.landed + 1)
            case WatchSentBack():
                return replace(self, returns=self.returns + 1)
            case DeliverSessionStarted():
                counted = replace(self, rounds=self.rounds + 1, agents=self.agents + 1)
                return replace(counted, in_delivery=True)
            case DeliverablesListed():
                return replace(self, deliverables=event, in_delivery=True)
            case DeliverEnded(outcome="quota" | "budget"):
                return replace(self, outcome="failed", in_delivery=True)
            case DeliverEnded(outcome=outcome):
                return replace(self, outcome=outcome, in_delivery=True)
            case _:
                return self

    def recounted(self, totals: RunResumed) -> RunSummary:
        """Return the summary with these counts, such as those of the whole journal."""
        return replace(
            self,
            rounds=totals.rounds,
            tasks=totals.tasks,
            agents=totals.agents,
            commits=tuple(SummaryCommit(*commit) for commit in totals.commits),
            spent=self.spent.add(totals),
            earlier_s=totals.duration,
        )

    def ended(self, outcome: RunOutcome) -> RunSummary:
        return replace(self, outcome=outcome)
