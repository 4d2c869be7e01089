"""Claims of issues, so that two machines do not work on the same one.

An import's comment is its claim. The oldest cuggino comment on an issue wins: a forge numbers
comments in order of creation, so all machines agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from reactivex import Observable

from cuggino.errors import ForgeRefused, StorageError
from cuggino.events import Event, WatchIssueReported
from cuggino.forge.commenting import (
    first_claim,
    found_or_added,
    key_of,
    new_key,
    own,
    same_text,
)
from cuggino.forge.desk import Desk, Place, polling
from cuggino.forge.model import Comment
from cuggino.loops import Companion
from cuggino.operators import Flow, emit, flow
from cuggino.operators.mapcat import mapcat


def claim_with(desk: Desk) -> Callable[[str], Observable[bool]]:
    """Return a function that emits whether this machine may begin work on an item.

    Work may always begin if the item has no issue or its source does not comment. An item claimed
    by another machine is held in its file. Events, such as waits, go to the desk's news.
    """
    claimed: set[str] = set()

    def claim(item: str) -> Observable[bool]:
        def story() -> Flow[None]:
            place = desk.place(item)
            is_ours = True
            if item not in claimed and place is not None and place.tracker.settings.comment:
                try:
                    is_ours = yield from _claimed(desk, place)
                except (ForgeRefused, StorageError) as error:  # such as an issue that is gone
                    yield from emit(desk.silence(item, error))
            if is_ours:
                claimed.add(item)
            yield from emit(is_ours)

        def split(one: object) -> Iterable[bool]:
            if isinstance(one, Event):
                desk.news.on_next(one)
                return ()
            return (bool(one),)

        return flow(story).pipe(mapcat(split))

    return claim


def reclaimed(desk: Desk) -> Companion:
    """Return a companion that releases held items once the other machine's claim is gone."""
    return polling(desk, lambda origin: bool(origin.claimed_by), _look)


def _claimed(desk: Desk, place: Place) -> Flow[bool]:
    """Claim the issue if it is unclaimed; return whether the claim is ours."""
    number, forge = place.number, place.forge
    key = place.origin.key or desk.origins.change(place.item, key=new_key()).key
    for _ in range(4):  # again if the comment is deleted in between
        comments = yield from _comments(place)
        first = first_claim(comments)
        mine = own(comments, key)
        if first is not None and key_of(first) != key:
            yield from _lost(desk, place, first, mine)
            return False
        if mine is not None:
            yield from _won(desk, place, mine)
            return True
        if not desk.may_comment(place):
            return True
        adding = f"claim issue {number}"
        body = desk.body(key, place.report)
        yield from place.patient.get(adding, found_or_added, forge, number, key, body)
    return True


def _won(desk: Desk, place: Place, mine: Comment) -> Flow[None]:
    """Record the comment and the report in it."""
    item, report = place.item, place.report
    desk.looked.add(item)
    desk.origins.change(item, comment=mine.id, report=report.model_dump(mode="json"), claimed_by="")
    if same_text(mine.body, desk.body(key_of(mine), report)):
        written = place.origin.written
        origin = desk.origins.change(item, written=report.digest)
        if origin.written != written:
            yield from emit(WatchIssueReported(filename=item, url=origin.url, state=report.state))


def _lost(desk: Desk, place: Place, first: Comment, mine: Comment | None) -> Flow[None]:
    """Hold the item and delete our comment."""
    item, number, forge = place.item, place.number, place.forge
    page = first.url or place.origin.url
    desk.origins.change(item, claimed_by=page, comment="", report={})
    why = f"is claimed by {first.author} at {page}; delete that comment to start it here"
    desk.backlog.hold(item, why)
    if mine is not None:
        with suppress(ForgeRefused):  # already deleted
            yield from place.patient.do(
                f"take back the claim of issue {number}", forge.delete_comment, number, mine.id
            )


def _look(desk: Desk, place: Place) -> Flow[None]:
    if first_claim((yield from _comments(place))) is None:
        origin = desk.origins.change(place.item, claimed_by="")
        desk.backlog.hold(place.item, origin.held)


def _comments(place: Place) -> Flow[list[Comment]]:
    return place.comments(f"read the claims of issue {place.number}")
