"""The totals of a run, as a fold over its events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cuggino.domain.spending import Spending
from cuggino.domain.tally import RunCommit, Tally
from cuggino.events import (
    CommitFailed,
    DeliverablesListed,
    DeliverEnded,
    DeliverSessionStarted,
    Event,
    GateChanged,
    HistoryRewritten,
    LoopApproved,
    LoopMaxIterations,
    LoopSpecIssue,
    LoopStalled,
    RunOutcome,
    RunResumed,
    Usage,
    WatchItemCompleted,
    WatchItemParked,
    WatchLanded,
    WatchProcessingItem,
    WatchSentBack,
)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The totals of the events added so far; each event gives a new value.

    In a watch, the numbers cover all items; outcome and spec issue are those of the last one.
    """

    outcome: RunOutcome | None = None
    """None while the run is in progress."""
    checked: bool | None = None
    """For an approval: whether the check command decided (`LoopApproved`)."""
    tally: Tally = field(default_factory=Tally)
    """Iterations, tasks, agents, commits and spending."""
    items: int = 0
    """Backlog items completed."""
    parked: int = 0
    """Backlog items parked."""
    asking: frozenset[str] = frozenset()
    """The spec issues that wait for a person, by the item that each stops, or the file."""
    landings: tuple[RunCommit, ...] = ()
    """What has landed in a watch with several slots: the commit, and the item's file name."""
    returns: int = 0
    """Candidates that were sent back instead."""
    in_watch: bool = False
    """True once a watch has taken an item; it resumes its runs itself."""
    in_delivery: bool = False
    """True in the deliver loop."""
    deliverables: DeliverablesListed | None = None
    """The latest deliverables; None while unknown."""
    failed_commits: tuple[str, ...] = ()
    """The error of each failed commit."""
    gate_changed: tuple[str, ...] = ()
    """Files of the check, removed tests and specifications that changed during the run."""
    lost_base: str | None = None
    """The commit that the run began with, if it was removed from the history."""
    tbd_files: tuple[str, ...] = ()
    """Names of the files in `.cuggino/tbd/` written by a stalled loop."""
    spec_issue_file: str | None = None
    """Name of the file in `.cuggino/spec-issues/` if the outcome is `spec_issue`."""

    @property
    def rounds(self) -> int:
        """Iterations begun; sessions in the deliver loop."""
        return self.tally.rounds

    @property
    def tasks(self) -> int:
        """Tasks that an agent reported as done: `Progress` and `Done`."""
        return self.tally.tasks

    @property
    def agents(self) -> int:
        """Agents started, one per phase, session and audit."""
        return self.tally.agents

    @property
    def commits(self) -> tuple[RunCommit, ...]:
        """The commits of the run, each once."""
        return self.tally.commits

    @property
    def earlier_s(self) -> float:
        """Seconds that earlier processes worked on a resumed run."""
        return self.tally.before.duration if self.tally.before else 0.0

    @property
    def spent(self) -> Spending:
        """The spending of all sessions, as far as reported."""
        return self.tally.spent

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
        if isinstance(event, RunResumed) and (
            event.item is not None or self.agents or self.rounds or self.items
        ):
            return self  # a watch resumes a run of its own, which is already counted
        tally = self.tally.add(event)
        summary = self if tally is self.tally else replace(self, tally=tally)
        return summary._noted(event)

    def _noted(self, event: Event) -> RunSummary:
        match event:
            case CommitFailed(message=message):
                return replace(self, failed_commits=(*self.failed_commits, message))
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
                asking = self.asking | {event.item or filename}
                return replace(self, outcome="spec_issue", spec_issue_file=filename, asking=asking)
            case WatchProcessingItem(filename=name, slot=slot):
                # With one slot, a watch continues once all issues are settled.
                asking = self.asking - {name} if slot else frozenset()
                return replace(
                    self, outcome=None, spec_issue_file=None, in_watch=True, asking=asking
                )
            case WatchItemCompleted():
                return replace(self, items=self.items + 1)
            case WatchItemParked():
                return replace(self, parked=self.parked + 1)
            case WatchLanded(filename=name, commit=commit):
                landed = RunCommit(commit[:7], name.removesuffix(".md"))
                return replace(self, landings=(*self.landings, landed))
            case WatchSentBack():
                return replace(self, returns=self.returns + 1)
            case DeliverSessionStarted():
                return replace(self, in_delivery=True)
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
        return replace(self, tally=self.tally.add(totals))

    def ended(self, outcome: RunOutcome) -> RunSummary:
        return replace(self, outcome=outcome)
