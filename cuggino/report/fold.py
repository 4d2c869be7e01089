"""Folding a run's journal into a `RunReport`."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple, Protocol, TypeAlias

from cuggino import events as ev
from cuggino.domain import Tally, added_cost, added_usage, unreset
from cuggino.report.model import (
    Diffs,
    ReportCommand,
    ReportCommit,
    ReportFinding,
    RoleSpent,
    RunReport,
    SlotsReport,
    Spent,
    Tone,
    ToolUse,
    Transcript,
)
from cuggino.report.notices import Notices, describe
from cuggino.report.plans import Plans
from cuggino.report.transcript import MOST_KEPT, Transcripts
from cuggino.runs.state import RunState, StageKind, StageTry, Watched, delay_text
from cuggino.storage.journal import Entries, Entry, Line


def build_report(
    entries: Iterable[Entry],
    *,
    torn: bool = False,
    running_at: datetime | None = None,
    diffs: Diffs | None = None,
    most: int = MOST_KEPT,
) -> RunReport:
    """Fold the entries of a journal into a report, one by one. Pure.

    Args:
        entries: the first is `RunStarted`.
        torn: the journal ends in a partial line.
        running_at: the current time if a process works on the run; without it, a run without
            an end was killed.
        diffs: the changes of its commits, as far as known.
        most: the maximum number of transcript characters to keep.

    Raises:
        ValueError: `entries` is empty, or the first is not `RunStarted`.
    """
    return fold_entries(entries, most=most).result(torn=torn, running_at=running_at, diffs=diffs)


def fold_entries(
    entries: Iterable[Entry],
    *,
    folder: str | os.PathLike[str] = "",
    most: int = MOST_KEPT,
) -> RunFold:
    """Fold the entries of a journal; those of a file are parsed only if needed.

    Raises:
        ValueError: the first is not `RunStarted`.
    """
    fold = RunFold(folder=folder, most=most)
    for entry in entries.lines(OF_AGENTS) if isinstance(entries, Entries) else entries:
        if isinstance(entry, Line):
            fold.add_line(entry)
        else:
            fold.add(entry)
    return fold


class Changed(NamedTuple):
    """The parts of a report that an entry changed."""

    parts: frozenset[str] = frozenset()
    """Names of parts, as in `render_part`."""
    stage: int | None = None
    """The index in `stages` of the stage that changed."""
    row: int | None = None
    """The number of the row of its transcript that is new or has its result now."""


_UNCHANGED = Changed()
_PARTS: Final[Mapping[str, str]] = {
    "AttemptChosen": "slots",
    "AttemptLost": "slots",
    "CheckCommandOutput": "checks reviews",
    "CommitPerformed": "commits head plan",
    "CommitSeen": "commits head",
    "DeliverEnded": "head deliverables",
    "DeliverSessionEnded": "sessions",
    "DeliverSessionStarted": "sessions head",
    "DeliverableStatusChanged": "deliverables reviews",
    "DeliverablesListed": "deliverables head",
    "IterationStart": "head",
    "JobBlocked": "jobs reviews",
    "JobVerified": "jobs reviews",
    "JobsCounted": "jobs head",
    "PlanWritten": "plan",
    "PushPerformed": "commits",
    "QuotaUsed": "spending",
    "RunContinued": "head timeline",
    "RunEnded": "head timeline",
    "RunResumed": "head",
    "RunStarted": "head",
    "SessionEnded": "head spending",
    "SetupCommandOutput": "checks",
    "StageFinished": "head plan timeline spending stages reviews",
    "StageStarted": "head plan timeline stages",
    "ToolCall": "tools",
    "ToolResult": "tools",
    "UsageUpdate": "head spending",
    "WatchCandidate": "head slots",
    "WatchFollowDelayed": "slots",
    "WatchFollowed": "slots",
    "WatchItemCompleted": "head slots",
    "WatchItemParked": "slots",
    "WatchItemRetry": "slots",
    "WatchLanded": "head slots landings commits",
    "WatchLanding": "head slots landings",
    "WatchProcessingItem": "slots",
    "WatchProposal": "slots",
    "WatchProposed": "head slots landings",
    "WatchSentBack": "head slots landings",
    "WatchSlotsChanged": "slots",
    "WatchWorkKept": "slots",
    "WatchPlaced": "slots",
    "WatchPlaceGone": "slots",
    "WatchWorkers": "slots",
}
_CHANGES: Final = {tag: frozenset(parts.split()) for tag, parts in _PARTS.items()}

OF_AGENTS: Final = frozenset(
    {"AgentMessage", "Thinking", "ToolCall", "ToolResult", "SystemMessage", "UserMessage"}
)
"""Tags that only the transcript and the tools need: most of a journal."""


_Key: TypeAlias = tuple[str | None, str | None]
"""A stage, and the backlog item in a watch with several slots."""


def _key(entry: Entry) -> _Key:
    return entry.stage, entry.event.item


class _Collector(Protocol):
    def add(self, entry: Entry) -> None: ...


class RunFold:
    """The report of a run from the entries added so far.

    A live page keeps one for each open run. `add` takes some microseconds, `result` reuses
    unchanged parts, and memory is bounded for runs of any length.
    """

    def __init__(self, *, folder: str | os.PathLike[str] = "", most: int = MOST_KEPT) -> None:
        """Begin with no entry.

        Args:
            folder: the project; paths in tool calls are shown relative to it.
            most: the maximum number of transcript characters to keep.
        """
        self._folder = os.fspath(folder)
        self._most = most
        self._first: Entry | None = None
        self._count = 0
        self._state = RunState()
        self._spending = SpentOverTime()
        self._tools = Tools()
        self._notices = Notices()
        self._results = _Results()
        self._plans = Plans()
        self._transcripts = Transcripts()
        self._others: tuple[_Collector, ...] = (
            self._notices,
            self._results,
            self._plans,
        )

    @property
    def started(self) -> ev.RunStarted:
        """Return the first event of the journal.

        Raises:
            ValueError: no entry was added.
        """
        return self._begun()[1]

    def add(self, entry: Entry) -> Changed:
        """Add the next entry of the journal, and return the changes.

        Raises:
            ValueError: the first is not `RunStarted`.
        """
        event = entry.event
        tag = event.tag
        if self._first is None:
            if not isinstance(event, ev.RunStarted):
                raise ValueError("a journal begins with RunStarted")
            self._first = entry
            named = event.options.get("cwd")
            folder = self._folder or (named if isinstance(named, str) else "")
            self._transcripts = Transcripts(
                folder, slot=_whole(event.options.get("slot")), most=self._most
            )
        self._count += 1
        self._state = self._state.add(event, at=entry.at, stage=entry.stage)
        place = self._state.stages.place(entry.stage)
        if tag in OF_AGENTS:
            if tag == "ToolCall" or tag == "ToolResult":
                self._tools.add(entry)
            row = None if place is None else self._transcripts.add(entry, place)
            return Changed(_CHANGES.get(tag, frozenset()), place, row)
        if tag == "StageFinished":
            self._transcripts.settle(place)
        self._spending.add(entry.at, self._state.tally)
        notices = self._notices.count
        for collect in self._others:
            collect.add(entry)
        row = None
        if place is not None and tag in ("Steered", "GuardDenied"):
            row = self._transcripts.add(entry, place)
        parts = _CHANGES.get(tag, frozenset())
        if self._notices.count != notices:
            parts |= {"notices", "timeline"}
        if self._results.has_new_finding():
            parts |= {"reviews"}
        return Changed(parts, place, row) if parts or row else _UNCHANGED

    def add_line(self, line: Line) -> None:
        """Add the next entry as an unparsed line, with a tag of `OF_AGENTS`."""
        self._begun()
        self._count += 1
        self._state = self._state.until(line.at)
        if line.tag == "ToolCall" or line.tag == "ToolResult":
            self._tools.add_line(line)
        place = self._state.stages.place(line.stage)
        if place is not None:
            self._transcripts.add_line(line, place)

    @property
    def state(self) -> RunState:
        return self._state

    @property
    def commits(self) -> tuple[str, ...]:
        """Return the hashes of the commits so far, for `diffs`."""
        return tuple(commit.commit_hash for commit in self._results.commits({}))

    def transcript(self, stage: int) -> Transcript:
        """Return the transcript of the stage with this index in `stages`."""
        return self._transcripts.of(stage)

    def result(
        self,
        *,
        torn: bool = False,
        running_at: datetime | None = None,
        diffs: Diffs | None = None,
        transcripts: bool = True,
    ) -> RunReport:
        """Return the report; the arguments are those of `build_report`.

        Without `transcripts`, the report has none: a page requests those that are unfolded.

        Raises:
            ValueError: no entry was added.
        """
        first, started = self._begun()
        state = self._state
        processes = state.worked_until(running_at)
        last = processes[-1]
        is_running = last.state == "running"
        stages = state.stages.until(last.end, is_running=is_running)
        watched = state.watched.until(last.end, is_running=is_running)
        return RunReport(
            run_id=started.run_id,
            kind=started.kind,
            focus=started.focus,
            item=started.item,
            slot=_whole(started.options.get("slot")),
            agent=started.agent,
            options=started.options,
            state=last.state,
            message=last.message,
            start=first.at,
            end=last.end,
            totals=state.totals,
            items=state.done,
            forecast=state.forecast,
            torn=torn,
            processes=processes,
            stages=stages,
            spent=self._spending.result(),
            tools=self._tools.result(),
            commits=self._results.commits(diffs or {}),
            commands=tuple(self._results.commands),
            findings=tuple(self._results.findings),
            notices=self._notices.result(),
            delivery=state.delivery if started.kind == "deliver" else None,
            watched=tuple(sorted(watched.items.values(), key=lambda one: not one.attempts)),
            slots=slots_of(watched, _whole(started.options.get("slots"))),
            jobs=state.jobs,
            counted=state.counted,
            plans=self._plans.result(),
            roles=roles_of(stages),
            windows=unreset(state.windows, last.end),
            transcripts=self._transcripts.result(len(stages)) if transcripts else (),
            events=self._count,
        )

    def _begun(self) -> tuple[Entry, ev.RunStarted]:
        if self._first is None:
            raise ValueError("a journal begins with RunStarted")
        assert isinstance(self._first.event, ev.RunStarted)  # by `add`
        return self._first, self._first.event


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def slots_of(watched: Watched, count: int) -> SlotsReport | None:
    """Return what is known about the slots of a watch, at least `count`; None without slots."""
    count = max(watched.slots, count)
    if count < 2 and not watched.slots:
        return None
    waiting = [one for one in watched.items.values() if one.state == "queued"]
    waiting.sort(key=lambda one: (not one.returns, one.end or one.start))
    delayed = watched.delayed
    return SlotsReport(
        count=count,
        uses=watched.uses,
        landings=watched.landings,
        queue=tuple(one.name for one in waiting),
        kept=watched.kept,
        delayed=f"{delayed.branch} waits: {delay_text(delayed)}" if delayed else "",
        workers=watched.workers.workers if watched.workers is not None else None,
        lost=watched.lost,
    )


def roles_of(stages: Iterable[StageTry]) -> tuple[RoleSpent, ...]:
    """Return duration and spending of the stages by their kind, the most expensive first."""
    known: dict[StageKind, RoleSpent] = {}
    for stage in stages:
        sum_ = known.setdefault(stage.kind, RoleSpent(kind=stage.kind))
        known[stage.kind] = RoleSpent(
            kind=stage.kind,
            stages=sum_.stages + 1,
            seconds=sum_.seconds + stage.seconds,
            cost_usd=added_cost(sum_.cost_usd, stage.cost_usd),
            cost_estimated=sum_.cost_estimated or stage.cost_estimated,
            usage=added_usage(sum_.usage, stage.usage),
        )
    return tuple(sorted(known.values(), key=lambda role: (-(role.cost_usd or 0), -role.seconds)))


_LONGEST_OUTPUT: Final = 20_000
"""The characters that are kept of a command's output: its end."""


class _Results:
    """Commits, commands and findings.

    A stage that was cut off and repeated may report its commit twice; it is one commit.
    """

    def __init__(self) -> None:
        self.commands: list[ReportCommand] = []
        self.findings: list[ReportFinding] = []
        self._chosen = ""
        """The attempt that lands, of several."""
        self._commits: dict[str, ReportCommit] = {}
        self._begun: dict[_Key, tuple[str, datetime]] = {}
        """The command that works in a stage, and its start."""
        self._seen = 0

    def has_new_finding(self) -> bool:
        """Return whether there is a new finding since the last call."""
        before, self._seen = self._seen, len(self.findings)
        return self._seen != before

    def add(self, entry: Entry) -> None:
        event = entry.event
        match event:
            case ev.StageFinished(outcome={"value": str(text)}) if _is_review(entry.stage, text):
                # The review file; the marker may only summarize it.
                if not self.findings or self.findings[-1].text.strip() != text.strip():
                    self._find(entry, "Review", "warning", text)
            case ev.CommitPerformed(commit_hash=commit_hash, message=message):
                if commit_hash not in self._commits:
                    self._commits[commit_hash] = ReportCommit(
                        commit_hash=commit_hash, message=message, at=entry.at, stage=entry.stage
                    )
            case ev.CommitSeen(commit_hash=commit_hash, subject=subject):
                if commit_hash not in self._commits:
                    self._commits[commit_hash] = ReportCommit(
                        commit_hash=commit_hash, message=subject, at=entry.at, stage=entry.stage
                    )
            case ev.AttemptChosen(filename=name):
                self._chosen = name
            case ev.WatchLanded(filename=name, commit=commit) if name == self._chosen:
                # Those of the attempts are in their own runs.
                self._commits[commit] = ReportCommit(
                    commit_hash=commit, message=f"Land {name}", at=entry.at, stage=entry.stage
                )
            case ev.PushPerformed(commit_hash=commit_hash, remote=remote):
                if commit_hash in self._commits:
                    known = self._commits[commit_hash]
                    self._commits[commit_hash] = replace(known, pushed_to=remote)
            case ev.SetupCommandStarted(title=command) | ev.CheckCommandStarted(title=command):
                self._begun[_key(entry)] = (command, entry.at)
            case ev.SetupCommandOutput() | ev.CheckCommandOutput():
                command, since = self._begun.pop(_key(entry), ("", None))
                output = event.output
                self.commands.append(
                    ReportCommand(
                        kind="setup" if isinstance(event, ev.SetupCommandOutput) else "check",
                        at=entry.at,
                        iteration=event.iteration,
                        command=command,
                        stage=entry.stage,
                        item=event.item or "",
                        exit_code=event.exit_code,
                        output=output[-_LONGEST_OUTPUT:],
                        truncated=event.truncated or len(output) > _LONGEST_OUTPUT,
                        seconds=(entry.at - since).total_seconds() if since else None,
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

    def commits(self, diffs: Diffs) -> tuple[ReportCommit, ...]:
        """Return the commits, each with its changed files if known."""
        return tuple(
            replace(commit, diff=diffs.get(key), gone=key in diffs and diffs[key] is None)
            for key, commit in self._commits.items()
        )


def _is_review(stage: str | None, text: str) -> bool:
    return stage is not None and stage.startswith("review-text#") and bool(text.strip())


def _finding(event: ev.Event) -> tuple[str, Tone, str] | None:
    match event:
        case ev.Approved(content=text):
            return "Approved", "good", text
        case ev.RequestChanges(content=text):
            return "Changes requested", "warning", text
        case ev.ApprovalBlocked(message=message):
            return "Approval blocked", "warning", f"{message[:1].upper()}{message[1:]}."
        case ev.CheckWeakened(message=message, output=output):
            return "Check weakened", "warning", f"{message}\n\n{output}"
        case ev.SpecIssue(content=text):
            return "Spec issue", "bad", text
        case ev.LoopSpecIssue(filename=filename) if filename:
            return "Spec issue stored", "neutral", filename
        case ev.ToBeDiscussed(content=text):
            return "To be discussed", "warning", text
        case ev.LoopStalled(message=message, filenames=filenames):
            return "Stalled", "bad", "\n".join((message, *filenames))
        case ev.Note(content=text):
            return "Note", "neutral", text
        case ev.DeliverableStatusChanged(previous="passed", status="pending"):
            return "Not done after all", "warning", f"{event.description} ({event.deliverable_id})"
        case ev.DeliverableStatusChanged(previous=before, status="blocked") if before != "blocked":
            return "Blocked", "bad", f"{event.description} ({event.deliverable_id})"
        case ev.BuildVerified(passed=False) | ev.JobVerified(passed=False) | ev.JobBlocked():
            return describe(event)
        case _:
            return None


MOST_POINTS: Final = 8000
"""Moments of spending that are kept; of more, every other one is dropped."""


class SpentOverTime:
    """Cost and tokens of the whole run over time."""

    def __init__(self) -> None:
        self._tally = Tally()
        self._points: list[Spent] = []

    def add(self, at: datetime, tally: Tally) -> None:
        if tally is self._tally:
            return
        self._tally, spent = tally, tally.spent
        point = Spent(at, spent.cost_usd, spent.usage or ev.Usage())
        before = self._points[-1][1:] if self._points else Spent(at, None, ev.Usage())[1:]
        if before != point[1:]:
            self._points.append(point)
        if len(self._points) > MOST_POINTS:
            del self._points[-2::-2]

    def result(self) -> tuple[Spent, ...]:
        """Return the moments of spending in order, each with the running total."""
        return tuple(self._points)


@dataclass(slots=True)
class _Tally:
    calls: int = 0
    errors: int = 0
    seconds: array[float] = field(default_factory=lambda: array("d"))
    answered: int = 0


_CALL = re.compile(rb'"_tag": ?"ToolCall", ?"name": ?"([\w-]*)"')
_ID = re.compile(rb'"id": ?"([\w-]*)"\}\}\n\Z')
_ID_WITHIN = 100
_RESULT = re.compile(rb'"_tag": ?"ToolResult", ?"name": ?"([\w-]*)"')


class Tools:
    """Tool calls, paired with their results by id within a stage."""

    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}
        self._waiting: dict[tuple[str | None, str], tuple[str, datetime]] = {}

    def add(self, entry: Entry) -> None:
        match entry.event:
            case ev.ToolCall(name=name, id=call):
                self._call(name, call, entry.stage, entry.at)
            case ev.ToolResult(name=call, is_error=is_error):
                self._answer(call, is_error, entry.stage, entry.at)
            case _:
                pass

    def _call(self, name: str, call: str, stage: str | None, at: datetime) -> None:
        self._tallies.setdefault(name, _Tally()).calls += 1
        if call:
            self._waiting[stage, call] = (name, at)

    def _answer(self, call: str, is_error: bool, stage: str | None, at: datetime) -> None:
        known = self._waiting.pop((stage, call), None)
        if known is not None:
            name, since = known
            tally = self._tallies[name]
            tally.answered += 1
            tally.errors += is_error
            tally.seconds.append(max(0.0, (at - since).total_seconds()))

    def add_line(self, line: Line) -> None:
        """Count an unparsed line like `add`."""
        raw = line.raw
        if line.tag == "ToolCall":
            head, tail = _CALL.search(raw), _ID.search(raw, max(len(raw) - _ID_WITHIN, 0))
            if head and tail:
                self._call(head[1].decode(), tail[1].decode(), line.stage, line.at)
                return
        elif head := _RESULT.search(raw):
            is_error = raw.endswith(b"true}}\n")
            self._answer(head[1].decode(), is_error, line.stage, line.at)
            return
        with suppress(ValueError):  # broken: the journal itself says where
            self.add(line.entry())

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
