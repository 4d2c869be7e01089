"""The words for recorded runs of the deliverables loop: sessions and deliverables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cuggino.events import DeliverOutcome, DeliverStatus, RunStarted
from cuggino.storage.journal_delivery import DeliverableCourse, DeliveredSession, Delivery
from cuggino_cli.output.cells import cut, first_line, flat, money, padded
from cuggino_cli.output.durations import format_duration
from cuggino_cli.output.summary import passed_text
from cuggino_cli.output.theme import Fragment, Label
from cuggino_cli.output.widths import width

_OUTCOMES: Mapping[DeliverOutcome, tuple[Label, str]] = {
    "completed": ("success", "completed"),
    "execution_error": ("failure", "failed"),
    "error": ("failure", "failed"),
    "max_turns": ("caution", "turns used up"),
    "interrupted": ("warning", "interrupted"),
    "budget": ("warning", "budget spent"),
    "quota": ("warning", "usage limit"),
}
_STATUSES: Mapping[DeliverStatus, Label] = {
    "passed": "success",
    "blocked": "caution",
    "pending": "plain",
}


def delivery_state(state: str, delivery: Delivery | None) -> str:
    """The state of the run as it is shown: what the loop is for, or why it cannot get there."""
    ended = delivery.ended if delivery is not None else None
    if ended is not None and state in ("approved", "ended") and ended.reason.startswith("all_"):
        return ended.reason
    return state


def delivery_focus(delivery: Delivery, started: RunStarted) -> str:
    """How far the run is, for the column of what runs work on; empty while that is unknown."""
    listed = delivery.listed
    if listed is None or not listed.deliverables:
        return ""
    total = len(listed.deliverables)
    if started.options.get("workflow") == "sync":
        return f"{listed.verified}/{total} deliverables verified"
    return f"{listed.passed}/{total} deliverables passed"


def delivery_counts(delivery: Delivery) -> Iterator[tuple[str, str]]:
    """The facts in the place of rounds, tasks and commits."""
    failed = f" ({delivery.failures} failed)" if delivery.failures else ""
    yield "Sessions", f"{len(delivery.sessions)}{failed}"
    yield "Passed", passed_text(delivery.listed)
    ended = delivery.ended
    if ended is not None and ended.verified is not None:
        yield "Verified", f"{ended.verified}/{ended.to_verify} deliverables"
    elif delivery.listed is not None and delivery.listed.verified:
        yield "Verified", f"{delivery.listed.verified} deliverables"


def delivery_lines(
    delivery: Delivery, *, is_running: bool, columns: int | None
) -> Iterator[list[Fragment]]:
    """The deliverables and the sessions, a line each, below their headings."""
    if delivery.deliverables:
        yield from ([], [Fragment("round", "Deliverables")])
        words = [_standing(item) for item in delivery.deliverables]
        first = max(map(width, words))
        for item, word in zip(delivery.deliverables, words, strict=True):
            yield _deliverable(item, padded(word, first), columns)
    if delivery.sessions:
        yield from ([], [Fragment("round", "Sessions")])
        rows = [_cells(session) for session in delivery.sessions]
        widths = [max(width(row[at]) for row in rows) for at in range(4)]
        for session, row in zip(delivery.sessions, rows, strict=True):
            number, instruction, took, cost = map(padded, row, widths)
            lead = f"  {number}  {instruction}  {took.rstrip():>{widths[2]}}  {cost}  "
            yield _session(session, lead, is_running=is_running, columns=columns)


def _standing(item: DeliverableCourse) -> str:
    if not item.is_wanted:
        return "dropped"
    return f"{item.status}, verified" if item.verified else item.status


def _deliverable(item: DeliverableCourse, word: str, columns: int | None) -> list[Fragment]:
    room = None if columns is None else max(columns - width(word) - 4, 1)
    label = _STATUSES[item.status] if item.is_wanted else "plain"
    text = cut(flat(f"{item.description} ({item.id})"), room)
    return [Fragment(label, f"  {word}  "), Fragment("plain", text)]


def _cells(session: DeliveredSession) -> tuple[str, str, str, str]:
    ended = session.ended
    took = format_duration(ended.duration) if ended is not None else ""
    cost = money(ended.cost_usd) if ended is not None else ""
    return str(session.session), session.instruction, took, cost


def _session(
    session: DeliveredSession, lead: str, *, is_running: bool, columns: int | None
) -> list[Fragment]:
    again = f" ({session.attempts} attempts)" if session.attempts > 1 else ""
    if session.ended is None:
        word = "running" if is_running else "unfinished"
        return [Fragment("plain", lead), Fragment("warning", word + again)]
    label, word = _OUTCOMES[session.ended.outcome]
    said = flat(first_line(session.ended.message))
    room = None if columns is None else max(columns - width(lead) - width(word), 1)
    text = cut((f": {said}" if said and said != word else "") + again, room)
    return [Fragment("plain", lead), Fragment(label, word), Fragment("plain", text)]
