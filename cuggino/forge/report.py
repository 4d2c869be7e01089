"""The state of an item as its issue shows it: a fold over events, and its text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from cuggino.config import ReportState
from cuggino.domain import money, until_text
from cuggino.events import (
    CommitPerformed,
    Event,
    IterationStart,
    LoopSpecIssue,
    PersonAnswers,
    QuotaLifted,
    QuotaWaiting,
    SessionEnded,
    WaitingEnded,
    WaitingStarted,
    WatchCandidate,
    WatchItemCompleted,
    WatchItemImported,
    WatchItemParked,
    WatchItemRetained,
    WatchItemRetry,
    WatchLanded,
    WatchLanding,
    WatchProcessingItem,
    WatchProposal,
    WatchProposed,
    WatchSentBack,
)
from cuggino.forge.redaction import Redaction, foreign, inline, outgoing

FINAL: frozenset[ReportState] = frozenset({"landed", "parked", "removed"})
"""States after which nothing happens unless a person acts."""


class Report(BaseModel):
    """The report on an item in the comment on its issue."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    state: ReportState = "working"
    note: str = ""
    """A sentence by cuggino with more detail than the state."""
    quoted: str = ""
    """A question or a reason, written by other people or by agents."""
    question: str = ""
    """The file of the spec issue while it waits for an answer."""
    iterations: int = 0
    sessions: int = 0
    cost: float | None = None
    """US dollars, as far as they are known."""
    cost_estimated: bool = False
    """True if a part of the cost is an estimate."""
    pull_request: str = ""
    """The page of the pull request."""
    branch: str = ""
    commit: str = ""

    @property
    def digest(self) -> str:
        """Return a digest of the whole report."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def gist(self) -> Report:
        """Return the report without its counters and cost."""
        return self.but(iterations=0, sessions=0, cost=None, cost_estimated=False)

    def but(self, **fields: Any) -> Report:
        """Return the report with other fields."""
        return self.model_copy(update=fields)

    def now(self, state: ReportState, note: str = "", quoted: str = "") -> Report:
        """Return the report in another state."""
        return self.but(state=state, note=note, quoted=quoted, question="")

    def after(self, event: Event) -> Report:
        """Return the report after an event of its item."""
        change = _CHANGES.get(type(event))
        return self if change is None else change(self, event)


def report_of(fields: dict[str, Any]) -> Report:
    """Return the recorded report, or a new one if it cannot be read."""
    try:
        return Report.model_validate(fields)
    except ValidationError:
        return Report()


def text_of(report: Report, redact: Redaction) -> str:
    """Return the text of the comment, in Markdown, without its hidden marker."""
    sentence = _SENTENCES[report.state]
    note = f" {inline(redact(report.note))}" if report.note else ""
    parts = [f"**{sentence}**{note}"]
    if report.quoted:
        parts.append(foreign(redact(report.quoted)))
    if report.state == "question":
        parts.append(
            "**To answer, reply here.** The first reply from someone with write access counts; it "
            f"becomes part of the specification. (`{report.question}`)"
        )
    if links := _links(report):
        parts.append(links)
    parts.append(f"<sub>{_count(report)}Written by cuggino, which edits this comment.</sub>")
    return outgoing("\n\n".join(parts), redact)


_SENTENCES: dict[ReportState, str] = {
    "working": "An agent is working on this.",
    "waiting": "Work on this is waiting.",
    "question": "Work on this needs an answer.",
    "proposed": "A pull request is open for this.",
    "landed": "Work on this has landed.",
    "parked": "Work on this was given up.",
    "removed": "This was removed from the backlog.",
}


def _links(report: Report) -> str:
    links = {
        "Pull request": report.pull_request,
        "Branch": f"`{report.branch}`" if report.branch else "",
        "Commit": report.commit,
    }
    return "  \n".join(f"{name}: {link}" for name, link in links.items() if link)


def _count(report: Report) -> str:
    parts = [
        f"{count} {word}{'' if count == 1 else 's'}"
        for count, word in ((report.iterations, "iteration"), (report.sessions, "agent session"))
        if count
    ]
    if report.cost is not None:
        parts.append(money(report.cost, estimated=report.cost_estimated))
    so_far = "" if report.state in FINAL else " so far"
    return f"{', '.join(parts)}{so_far}. " if parts else ""


def _session(report: Report, event: SessionEnded) -> Report:
    cost = report.cost
    if event.cost_usd is not None:
        cost = round((cost or 0.0) + event.cost_usd, 6)
    estimated = report.cost_estimated or event.cost_estimated
    return report.but(sessions=report.sessions + 1, cost=cost, cost_estimated=estimated)


def _quota(report: Report, event: QuotaWaiting) -> Report:
    at = event.resets_at
    until = "" if at is None else f", until {at:%Y-%m-%d %H:%M} UTC"
    return report.now("waiting", f"A usage limit is reached{until}.")


def _waits(report: Report, event: WaitingStarted) -> Report:
    if isinstance(event.until, PersonAnswers):
        asked = report.now("question", quoted=event.until.question)
        return asked.but(question=event.until.issue)
    return report.now("waiting", "It waits for this:", until_text(event.until))


def _retried(report: Report, event: WatchItemRetry) -> Report:
    times = f" (attempt {event.attempt} of {event.max_attempts})" if event.counted else ""
    return report.now("waiting", f"It failed and will be retried{times}:", event.message)


def _candidate(report: Report, event: WatchCandidate) -> Report:
    if not event.approved:
        return report
    return report.now("working", "It is done and waiting to land.").but(commit=event.commit)


_SENT_BACK = {
    "conflict": "it conflicts with what has landed",
    "ci": "a job of its pull request failed",
    "review": "its review asks for changes",
    "changed-files": "the check command changes files",
}


def _sent_back(report: Report, event: WatchSentBack) -> Report:
    why = _SENT_BACK.get(event.reason, f"the {event.reason} command failed")
    return report.now("working", f"It was sent back: {why}.")


_PROPOSAL = {
    "pending": "Its checks are running.",
    "green": "All checks have passed.",
    "red": "A check has failed.",
    "queued": "It will be merged once the rules allow it.",
    "blocked": "A person has to act.",
    "taken-over": "Someone else has pushed to its branch.",
}


def _landed(report: Report, event: WatchLanded) -> Report:
    note = "Nothing had to be changed." if event.nothing else ""
    return report.now("landed", note).but(
        pull_request=event.url or report.pull_request,
        branch=event.branch or "",
        commit=event.commit,
    )


def _completed(report: Report, event: WatchItemCompleted) -> Report:
    note = "Approved, unchecked: no check decided." if event.checked is False else ""
    return report if report.state == "landed" else report.now("landed", note)


def _imported(report: Report, event: WatchItemImported) -> Report:
    if event.change == "removed" and report.state not in FINAL:
        return report.now("removed", quoted=event.reason)
    return report


_CHANGES: dict[type[Event], Callable[[Report, Any], Report]] = {
    WatchProcessingItem: lambda report, _: report.now("working"),
    IterationStart: lambda report, _: report.but(iterations=report.iterations + 1),
    SessionEnded: _session,
    CommitPerformed: lambda report, event: report.but(commit=event.commit_hash),
    LoopSpecIssue: lambda report, event: report.now("question", quoted=event.content).but(
        question=event.filename
    ),
    QuotaWaiting: _quota,
    QuotaLifted: lambda report, _: report.now("working") if report.state == "waiting" else report,
    WaitingStarted: _waits,
    WaitingEnded: lambda report, _: report.now("working"),
    WatchItemRetry: _retried,
    WatchCandidate: _candidate,
    WatchLanding: lambda report, _: report.now("working", "It is being merged and checked."),
    WatchSentBack: _sent_back,
    WatchProposed: lambda report, event: report.now("proposed").but(
        pull_request=event.url, branch=event.branch, commit=event.commit
    ),
    WatchProposal: lambda report, event: report.now(
        "proposed", _PROPOSAL.get(event.state, ""), event.message
    ),
    WatchLanded: _landed,
    WatchItemCompleted: _completed,
    WatchItemRetained: lambda report, _: report.now(
        "working", "It was edited in the meantime, and is being worked on again."
    ),
    WatchItemParked: lambda report, event: report.now("parked", quoted=event.reason),
    WatchItemImported: _imported,
}


def is_reported(event: Event) -> bool:
    """Return whether the event may change the report on its item."""
    return type(event) in _CHANGES
