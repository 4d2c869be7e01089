"""Folding a run's journal into a `RunReport`."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from cuggino.domain import Spending
from cuggino.events import (
    ApprovalBlocked,
    Approved,
    CheckCommandOutput,
    CommitPerformed,
    CommitSeen,
    DeliverableStatusChanged,
    Event,
    LoopSpecIssue,
    LoopStalled,
    Note,
    PushPerformed,
    RequestChanges,
    RunResumed,
    RunStarted,
    SetupCommandOutput,
    SpecIssue,
    StageFinished,
    StageStarted,
    ToBeDiscussed,
    ToolCall,
    ToolResult,
    Usage,
    WatchItemCompleted,
)
from cuggino.report.model import (
    DiffStats,
    ReportCommand,
    ReportCommit,
    ReportFinding,
    RunReport,
    Spent,
    Tone,
    ToolUse,
)
from cuggino.report.notices import Notices, finding_of_building
from cuggino.report.stages import Processes, Stages
from cuggino.storage.journal import DeliveryFold, Entry, Totals


def build_report(
    entries: Iterable[Entry],
    *,
    torn: bool = False,
    running_at: datetime | None = None,
    diffs: DiffStats | None = None,
) -> RunReport:
    """Fold the entries of a journal into a report, one by one. Pure.

    Args:
        entries: the first is `RunStarted`. A sequence, such as the entries of a `JournalFile`, is
            kept as it is, and read again by the page; an iterator is kept as a tuple.
        torn: the journal ends in a partial line.
        running_at: the current time if a process works on the run; without it, a run without
            an end was killed.
        diffs: the changed files of its commits, as far as known.

    Raises:
        ValueError: there is no entry, or the first is not `RunStarted`.
    """
    events = entries if isinstance(entries, Sequence) else tuple(entries)
    first = next(iter(events), None)
    if first is None or not isinstance(first.event, RunStarted):
        raise ValueError("a journal begins with RunStarted")
    started = first.event
    processes, stages, spending = Processes(first), Stages(), SpentOverTime()
    tools, notices, results = Tools(), Notices(), _Results()
    totals, delivery = Totals(), DeliveryFold()
    folds = (processes, stages, spending, tools, notices, results, totals, delivery)
    for entry in events:
        for collect in folds:
            collect.add(entry)
    of_processes = processes.result(running_at)
    last = of_processes[-1]
    return RunReport(
        run_id=started.run_id,
        kind=started.kind,
        focus=started.focus,
        item=started.item,
        agent=started.agent,
        options=started.options,
        state=last.state,
        message=last.message,
        start=first.at,
        end=last.end,
        totals=totals.result(),
        items=results.items,
        torn=torn,
        processes=of_processes,
        stages=stages.result(last.state, last.end),
        spent=spending.result(),
        tools=tools.result(),
        commits=results.commits(diffs or {}),
        commands=tuple(results.commands),
        findings=tuple(results.findings),
        notices=notices.result(),
        delivery=delivery.result() if started.kind == "deliver" else None,
        entries=events,
    )


class _Results:
    """Items, commits, commands and findings.

    A stage that was cut off and repeated may report its commit twice; it is one commit.
    """

    def __init__(self) -> None:
        self.items = 0
        self.commands: list[ReportCommand] = []
        self.findings: list[ReportFinding] = []
        self._commits: dict[str, ReportCommit] = {}

    def add(self, entry: Entry) -> None:
        event = entry.event
        match event:
            case StageFinished(outcome={"value": str(text)}) if _is_review(entry.stage, text):
                # The review file; the marker may only summarize it.
                if not self.findings or self.findings[-1].text.strip() != text.strip():
                    self._find(entry, "Review", "warning", text)
            case WatchItemCompleted():
                self.items += 1
            case CommitPerformed(commit_hash=commit_hash, message=message):
                if commit_hash not in self._commits:
                    self._commits[commit_hash] = ReportCommit(
                        commit_hash=commit_hash, message=message, at=entry.at, stage=entry.stage
                    )
            case CommitSeen(commit_hash=commit_hash, subject=subject):
                if commit_hash not in self._commits:
                    self._commits[commit_hash] = ReportCommit(
                        commit_hash=commit_hash, message=subject, at=entry.at, stage=entry.stage
                    )
            case PushPerformed(commit_hash=commit_hash, remote=remote):
                if commit_hash in self._commits:
                    known = self._commits[commit_hash]
                    self._commits[commit_hash] = replace(known, pushed_to=remote)
            case SetupCommandOutput() | CheckCommandOutput():
                self.commands.append(
                    ReportCommand(
                        kind="setup" if isinstance(event, SetupCommandOutput) else "check",
                        at=entry.at,
                        round=event.iteration,
                        exit_code=event.exit_code,
                        output=event.output,
                        truncated=event.truncated,
                    )
                )
            case _:
                pass
        said = _finding(event)
        if said is not None:
            self._find(entry, *said)

    def _find(self, entry: Entry, kind: str, tone: Tone, text: str) -> None:
        finding = ReportFinding(at=entry.at, stage=entry.stage, kind=kind, tone=tone, text=text)
        self.findings.append(finding)

    def commits(self, diffs: DiffStats) -> tuple[ReportCommit, ...]:
        """Return the commits, each with its changed files if known."""
        return tuple(
            replace(commit, changes=diffs.get(key), gone=key in diffs and diffs[key] is None)
            for key, commit in self._commits.items()
        )


def _is_review(stage: str | None, text: str) -> bool:
    return stage is not None and stage.startswith("review-text#") and bool(text.strip())


def _finding(event: Event) -> tuple[str, Tone, str] | None:
    match event:
        case Approved(content=text):
            return "Approved", "good", text
        case RequestChanges(content=text):
            return "Changes requested", "warning", text
        case ApprovalBlocked(changed=paths) if paths:
            return "Approval blocked", "warning", f"The check was changed: {', '.join(paths)}."
        case ApprovalBlocked(exit_code=code):
            return "Approval blocked", "warning", f"The check before it exited with {code}."
        case SpecIssue(content=text):
            return "Spec issue", "bad", text
        case LoopSpecIssue(filename=filename) if filename:
            return "Spec issue stored", "neutral", filename
        case ToBeDiscussed(content=text):
            return "To be discussed", "warning", text
        case LoopStalled(message=message, filenames=filenames):
            return "Stalled", "bad", "\n".join((message, *filenames))
        case Note(content=text):
            return "Note", "neutral", text
        case DeliverableStatusChanged(previous="passed", status="pending"):
            return "Not done after all", "warning", f"{event.description} ({event.deliverable_id})"
        case DeliverableStatusChanged(previous=before, status="blocked") if before != "blocked":
            return "Blocked", "bad", f"{event.description} ({event.deliverable_id})"
        case _:
            return finding_of_building(event)


MOST_POINTS: Final = 8000
"""Moments of spending that are kept; of more, every other one is dropped."""


class SpentOverTime:
    """Cost and tokens of the whole run over time; the agents of several stages may overlap."""

    def __init__(self) -> None:
        self._stages: defaultdict[str | None, Spending] = defaultdict(Spending)
        self._cost: float | None = None
        self._usage = Usage()
        self._points: list[Spent] = []

    def add(self, entry: Entry) -> None:
        if isinstance(entry.event, StageStarted):
            # Earlier attempts at the stage are already in the sum.
            self._stages.pop(entry.stage, None)
            return
        if isinstance(entry.event, RunResumed):  # repeats counted entries
            return
        before = self._stages[entry.stage]
        after = self._stages[entry.stage] = before.add(entry.event)
        if after is before:
            return
        if after.cost_usd is not None:
            self._cost = (self._cost or 0.0) + after.cost_usd - (before.cost_usd or 0.0)
        self._usage = _moved(self._usage, before.usage or Usage(), after.usage or Usage())
        point = Spent(entry.at, self._cost, self._usage)
        if not self._points or self._points[-1][1:] != point[1:]:
            self._points.append(point)
        if len(self._points) > MOST_POINTS:
            del self._points[-2::-2]

    def result(self) -> tuple[Spent, ...]:
        """Return the moments of spending, in order, each with the sum so far."""
        return tuple(self._points)


def _moved(total: Usage, before: Usage, after: Usage) -> Usage:
    return Usage(
        **{name: count + getattr(after, name) - getattr(before, name) for name, count in total}
    )


@dataclass(slots=True)
class _Tally:
    calls: int = 0
    errors: int = 0
    seconds: array[float] = field(default_factory=lambda: array("d"))
    answered: int = 0


class Tools:
    """Tool calls, paired with their results by id within a stage."""

    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}
        self._waiting: dict[tuple[str | None, str], tuple[str, datetime]] = {}

    def add(self, entry: Entry) -> None:
        match entry.event:
            case ToolCall(name=name, id=call):
                self._tallies.setdefault(name, _Tally()).calls += 1
                if call:
                    self._waiting[entry.stage, call] = (name, entry.at)
            case ToolResult(name=call, is_error=is_error):
                known = self._waiting.pop((entry.stage, call), None)
                if known is not None:
                    name, since = known
                    tally = self._tallies[name]
                    tally.answered += 1
                    tally.errors += is_error
                    tally.seconds.append(max(0.0, (entry.at - since).total_seconds()))
            case _:
                pass

    def result(self) -> tuple[ToolUse, ...]:
        """Return one entry per tool, the most called first."""
        uses = [
            ToolUse(
                name=name,
                calls=tally.calls,
                errors=tally.errors,
                unanswered=tally.calls - tally.answered,
                seconds=array("d", sorted(tally.seconds)),
            )
            for name, tally in self._tallies.items()
        ]
        return tuple(sorted(uses, key=lambda use: (-use.calls, use.name)))
