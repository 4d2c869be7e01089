"""The report's sections on the deliverables loop: deliverables and sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cuggino.events import DeliverOutcome, DeliverStatus
from cuggino.report.markup import Html, join, tag
from cuggino.report.model import RunReport, Tone
from cuggino.report.sections import badge, first_rows, section, table
from cuggino.report.times import Times
from cuggino.report.wording import counted, duration, first_line, money, number
from cuggino.storage.journal import DeliverableCourse, DeliveredSession, StatusChange

_STATUSES: Final[Mapping[DeliverStatus, Tone]] = {
    "passed": "good",
    "blocked": "bad",
    "pending": "neutral",
}
_OUTCOMES: Final[Mapping[DeliverOutcome, tuple[str, Tone]]] = {
    "completed": ("completed", "good"),
    "execution_error": ("failed", "bad"),
    "error": ("failed", "bad"),
    "max_turns": ("turns used up", "warning"),
    "interrupted": ("interrupted", "warning"),
    "budget": ("budget spent", "warning"),
    "quota": ("usage limit", "warning"),
}
_LONGEST_MESSAGE = 20_000


def deliverables(report: RunReport, times: Times) -> Html | None:
    """Render each deliverable with its status and the changes of it."""
    if report.delivery is None or not report.delivery.deliverables:
        return None
    shown, note = first_rows(report.delivery.deliverables)
    rows = [
        (
            tag("code", item.id),
            item.description,
            _standing(item),
            _since(item, times),
            _course(item, times),
        )
        for item in shown
    ]
    heads = ["Deliverable", "Description", "Status", "Since", "Before"]
    return section("Deliverables", table(heads, rows), note, name="deliverables")


def _standing(item: DeliverableCourse) -> Html:
    if not item.is_wanted:
        return badge("no longer wanted", "neutral")
    status = badge(item.status, _STATUSES[item.status])
    return join(status, " ", badge("verified", "good")) if item.verified else status


def _since(item: DeliverableCourse, times: Times) -> str | Html:
    if not item.changes:
        return "it was first seen"
    return _when(item.changes[-1], times)


def _when(change: StatusChange, times: Times) -> Html:
    where = f", session {number(change.session)}" if change.session is not None else ""
    return tag("span", f"{times.short(change.at)}{where}", class_="id")


def _course(item: DeliverableCourse, times: Times) -> Html | None:
    """Return the statuses between the first and the current one."""
    before = item.changes[:-1]
    if not before:
        return None
    steps = [tag("li", change.status, " ", _when(change, times)) for change in before]
    return tag(
        "details", tag("summary", counted(len(steps), "change")), tag("ul", steps, class_="plain")
    )


def sessions(report: RunReport, times: Times) -> Html | None:
    """Render each session: instruction, cost, outcome and last message."""
    if report.delivery is None or not report.delivery.sessions:
        return None
    shown, note = first_rows(report.delivery.sessions)
    rows = [
        (
            number(session.session),
            _instruction(session),
            tag("span", times.short(session.at), class_="id"),
            duration(session.ended.duration) if session.ended is not None else "–",
            money(session.ended.cost_usd if session.ended is not None else None),
            _outcome(session, is_running=report.state == "running"),
            _said(session),
        )
        for session in shown
    ]
    heads = ["Session", "Instruction", "Started", "Took", "Cost", "Ended", "Last words"]
    rendered = table(heads, rows, numeric="n  nn")
    failed = report.delivery.failures
    return section(
        "Sessions",
        rendered,
        note,
        name="sessions",
        note=f"{counted(failed, 'session')} failed." if failed else None,
    )


def _instruction(session: DeliveredSession) -> Html:
    dot = tag("i", class_=f"dot {session.instruction}")
    model = tag("span", f" {session.model}", class_="quiet") if session.model else None
    return tag("span", dot, session.instruction, model, class_="id")


def _outcome(session: DeliveredSession, *, is_running: bool) -> Html:
    again = f" {number(session.attempts)} attempts" if session.attempts > 1 else None
    if session.ended is None:
        word = badge("running", "neutral") if is_running else badge("cut off", "warning")
    else:
        word = badge(*_OUTCOMES[session.ended.outcome])
    return join(word, tag("span", again, class_="quiet") if again else None)


def _said(session: DeliveredSession) -> Html:
    """Render the message: its first line, expandable to the whole."""
    ended = session.ended
    message = ended.message.strip() if ended is not None else ""
    if ended is not None and message == ended.outcome:  # as of an interrupted one
        message = ""
    title = first_line(message)
    whole = None
    if message != title:
        text = message[:_LONGEST_MESSAGE]
        cut = tag("p", "The rest is among the events.", class_="note") if text != message else None
        whole = tag("details", tag("summary", "Whole message"), tag("pre", text), cut)
    return join(title, whole)
