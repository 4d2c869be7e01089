"""Replies on issues that answer spec issues."""

from __future__ import annotations

from collections.abc import Iterable

from cuggino.domain import cleaned, limited
from cuggino.events import WatchIssueAnswered
from cuggino.forge.api import current_time
from cuggino.forge.commenting import key_of
from cuggino.forge.desk import Desk, Place, polling
from cuggino.forge.model import Comment
from cuggino.loops import Companion
from cuggino.operators import Flow, emit
from cuggino.storage import DECISIONS, Issue, answer_issue


def answered(desk: Desk) -> Companion:
    """Return a companion that polls issues with open questions for replies."""
    return polling(desk, lambda origin: bool(origin.question), _look)


def reply(place: Place, comments: Iterable[Comment]) -> Comment | None:
    """Return the first reply to an item's question by a trusted author or this login, if any."""
    asked = place.origin.asked
    if asked is None:
        return None
    for comment in comments:
        counts = comment.is_trusted or comment.is_mine
        if counts and comment.at > asked and not key_of(comment) and cleaned(comment.body).strip():
            return comment
    return None


def _look(desk: Desk, place: Place) -> Flow[None]:
    """Answer an item's spec issue if there is a reply; clear the question if it is settled."""
    issue = _open_issue(desk, place)
    if issue is None:
        _settle(desk, place, "It was answered elsewhere; work continues.")
        return
    comments = yield from place.comments(f"read the replies on issue {place.number}")
    found = reply(place, comments)
    if found is None:
        return
    issue = _open_issue(desk, place)  # it may have been settled while a forge was down
    if issue is None:
        _settle(desk, place, "It was answered elsewhere; work continues.")
        return
    now = yield from current_time()
    if _is_recorded(desk, found):  # by a process that was killed before it settled the issue
        desk.workspace.resolve(issue)
    else:
        text = limited(cleaned(found.body).strip())
        answer = f"{text}\n\n({found.author}, {_source(found)})"
        answer_issue(desk.workspace, issue, answer, specs=desk.specs, at=now.astimezone())
    _settle(desk, place, f"{found.author} has answered; work continues.")
    yield from emit(
        WatchIssueAnswered(
            filename=place.item,
            issue=place.origin.question,
            author=found.author,
            url=found.url,
        )
    )


def _open_issue(desk: Desk, place: Place) -> Issue | None:
    issues = desk.workspace.issues()
    return next((issue for issue in issues if issue.name == place.origin.question), None)


def _settle(desk: Desk, place: Place, note: str) -> None:
    """Clear an item's question and record the outcome in its report."""
    desk.origins.change(place.item, question="", asked=None)
    now = desk.place(place.item)
    if now is not None and now.report.question == place.origin.question:
        desk.change(place.item, now.report.now("waiting", note))


def _source(comment: Comment) -> str:
    return comment.url or f"comment {comment.id}"


def _is_recorded(desk: Desk, comment: Comment) -> bool:
    try:
        text = (desk.specs / DECISIONS).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return f", {_source(comment)})" in text
