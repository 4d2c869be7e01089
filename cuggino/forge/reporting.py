"""Reports on issues: a comment per item that is edited in place, labels, and closing.

A report is recorded in the origin of its item before the comment is written, and again afterwards.
A watch therefore writes the reports that a killed one did not, and none twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial

from reactivex import Observable, abc, operators as ops, timer
from reactivex.subject import Subject

from cuggino.errors import ForgeRefused, StorageError
from cuggino.events import Event, LoopSpecIssue, WatchIssueReported, WatchProcessingItem
from cuggino.forge.commenting import found_or_added, new_key, own, same_text
from cuggino.forge.desk import Desk, Place
from cuggino.forge.model import Comment
from cuggino.forge.report import FINAL, Report, is_reported
from cuggino.loops import Companion, items_of_issues
from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.operators.mapcat import mapcat
from cuggino.operators.merge_now import merge_now
from cuggino.stages import lane

SETTLED = timedelta(seconds=1)
"""Delay after a change of state, so that a burst of events becomes one edit."""
PROGRESS = timedelta(minutes=5)
"""Time between edits that only update counts."""
LOOK = timedelta(minutes=1)
"""Time between checks for items that have left the backlog."""


def reported(desk: Desk) -> Companion:
    """Return a companion that keeps the comments, labels and states of issues up to date."""

    def companion(events: Observable[Event]) -> Observable[Event]:
        def story() -> Flow[None]:
            here = yield from ask(lane())
            assert here is not None
            yield from _questions_kept(desk)
            outbox = _Outbox(desk, here)
            written = [flow(partial(outbox.tell, source)) for source in desk.trackers]
            noted = events.pipe(mapcat(outbox.note))
            changed = desk.changed.pipe(mapcat(outbox.hurry))
            yield from forward(merge_now(noted, changed, desk.news, *written))

        return flow(story)

    return companion


def _questions_kept(desk: Desk) -> Flow[None]:
    """Record the questions that a killed watch did not record."""
    files = set(desk.workspace.spec_issue_names())
    for file, item in items_of_issues(desk.workspace, files).items():
        try:
            place = desk.place(item)
            if place is None or not place.origin.report:
                continue
            if place.report.question != file and place.report.state not in FINAL:
                path = desk.workspace.spec_issues / file
                text = path.read_text(encoding="utf-8", errors="replace")
                asked = LoopSpecIssue(iteration=1, content=text, filename=file)
                desk.change(item, place.report.after(asked))
        except OSError:  # already settled
            continue
        except StorageError as error:
            yield from emit(desk.silence(item, error))


class _Outbox:
    """The reports that are due, by item; the newest state wins."""

    def __init__(self, desk: Desk, here: abc.SchedulerBase) -> None:
        self._desk = desk
        self._here = here
        self._due: dict[str, datetime] = {}
        self._wakes: Subject[None] = Subject()
        self._current: str | None = None
        """The item at work in the project itself, whose events do not name it."""

    # Events.

    def note(self, event: Event) -> Iterable[Event]:
        """Record the changes of an event; return a failure to record them as an event."""
        if isinstance(event, WatchProcessingItem) and not event.slot:
            self._current = event.filename
        if not is_reported(event):
            return ()
        item = getattr(event, "filename", None) if _names_its_item(event) else None
        item = item or event.item or self._current
        if item is None:
            return ()
        try:
            place = self._desk.place(item)
            if place is None or not (place.origin.report or _begins(event)):
                return ()
            old = place.report
            new = old.after(event)
            if new != old or _begins(event):
                self._desk.origins.change(item, report=new.model_dump(mode="json"))
                self._put(item, SETTLED if new.gist != old.gist or _begins(event) else PROGRESS)
        except StorageError as error:
            return (self._desk.silence(item, error),)
        return ()

    def hurry(self, item: str) -> Iterable[Event]:
        """Write the report of an item soon."""
        self._put(item, SETTLED)
        return ()

    def _put(self, item: str, after: timedelta) -> None:
        due = self._here.now + after
        if due < self._due.get(item, due + LOOK):
            self._due[item] = due
            self._wakes.on_next(None)

    # Writing.

    def tell(self, source: str) -> Flow[None]:
        """Write the reports that are due, one after the other, indefinitely."""
        looks = self._here.now
        while True:
            if self._here.now >= looks:
                self._look(source)
                looks = self._here.now + LOOK
            place = self._first(source)
            due = self._due[place.item] if place is not None else looks
            if place is None or due > self._here.now:
                left = max(min(due, looks) - self._here.now, timedelta(milliseconds=1))
                sleep: Observable[object] = timer(left)
                yield from ask(merge_now(sleep, self._wakes).pipe(ops.take(1)))
                continue
            del self._due[place.item]
            yield from self._write(place)

    def _first(self, source: str) -> Place | None:
        """Return the place of a source's item whose report is due first."""
        for item in sorted(self._due, key=lambda one: self._due[one]):
            try:
                place = self._desk.place(item)
            except StorageError:  # silenced with its next event
                continue
            if place is not None and place.origin.source == source:
                return place
        return None

    def _look(self, source: str) -> None:
        """Find items that left the backlog without an event, and reports not yet written."""
        for place in self._desk.places(source):
            item, origin = place.item, place.origin
            if not origin.report and origin.comment != "?":
                continue
            if place.report.state not in FINAL and not self._desk.backlog.is_there(item):
                self._desk.change(item, self._left(place))
            elif origin.report and not self._is_done(place):
                self._due.setdefault(item, self._here.now)

    def _left(self, place: Place) -> Report:
        """Return the report on an item that has left the backlog."""
        if (reason := self._desk.backlog.parked().get(place.item)) is not None:
            return place.report.now("parked", quoted=reason)
        how = self._desk.backlog.settled().get(place.item, "removed")
        return place.report.now("removed" if how == "removed" else "landed")

    def _is_done(self, place: Place) -> bool:
        origin, settings, report = place.origin, place.tracker.settings, place.report
        return (
            (not settings.comment or origin.written == report.digest)
            and origin.labeled == settings.labels.get(report.state, "")
            and (origin.closed or not (settings.close_issues and report.state == "landed"))
        )

    def _write(self, place: Place) -> Flow[None]:
        settings = place.tracker.settings
        try:
            if settings.comment:
                yield from self._comment(place)
            if settings.labels:
                yield from self._label(place.item)
            if settings.close_issues:
                yield from self._close(place.item)
        except (ForgeRefused, StorageError) as error:
            yield from emit(self._desk.silence(place.item, error))

    def _comment(self, place: Place) -> Flow[None]:
        item, number, forge = place.item, place.number, place.forge
        desk, origins = self._desk, self._desk.origins
        sent = place.report
        if sent.digest == place.origin.written:
            return
        key = place.origin.key or origins.change(item, key=new_key()).key

        def newest() -> str:
            nonlocal sent
            now = desk.place(item)
            sent = now.report if now is not None else sent
            return desk.body(key, sent)

        for _ in range(3):  # again if the comment is deleted between read and edit
            known = desk.place(item)
            if known is None:
                return
            comment_id = known.origin.comment
            if item not in desk.looked or comment_id in ("", "?"):
                comments = yield from place.comments(f"read the comments on issue {number}")
                desk.looked.add(item)
                found = own(comments, key)
                if found is None:
                    if not self._may_write_anew(known):
                        return
                    found = yield from place.patient.get(
                        f"comment on issue {number}",
                        lambda: found_or_added(forge, number, key, newest()),
                    )
                self._note_question(item, sent, found)
                comment_id = origins.change(item, comment=found.id).comment
                if same_text(found.body, newest()):
                    yield from self._written(item, sent, found)
                    return
            try:
                edited = yield from place.patient.get(
                    f"edit the comment on issue {number}",
                    partial(lambda id: forge.edit_comment(number, id, newest()), comment_id),
                )
            except ForgeRefused as error:
                if error.status not in (404, 410):
                    raise
                desk.looked.discard(item)  # the comment or the issue is gone
                continue
            yield from self._written(item, sent, edited)
            return

    def _may_write_anew(self, place: Place) -> bool:
        """Return whether to write a missing comment."""
        if place.report.state != "removed" and self._desk.may_comment(place):
            return True
        self._desk.origins.change(place.item, written=place.report.digest)
        return False

    def _note_question(self, item: str, report: Report, comment: Comment) -> None:
        """Record when the comment first showed the question, if it shows it."""
        place = self._desk.place(item)
        file = report.question
        if place is not None and file and place.origin.question != file and file in comment.body:
            asked = comment.edited_at or comment.at
            self._desk.origins.change(item, question=file, asked=asked)

    def _written(self, item: str, report: Report, comment: Comment) -> Flow[None]:
        self._note_question(item, report, comment)
        origin = self._desk.origins.change(item, comment=comment.id, written=report.digest)
        yield from emit(WatchIssueReported(filename=item, url=origin.url, state=report.state))

    def _label(self, item: str) -> Flow[None]:
        place = self._desk.place(item)
        if place is None:
            return
        settings, forge, number = place.tracker.settings, place.forge, place.number
        label = settings.labels.get(place.report.state, "")
        if place.origin.labeled == label:
            return
        self._desk.origins.change(item, labeled="?")
        issue = yield from place.patient.get(f"read issue {number}", forge.issue, number)
        others = {*settings.labels.values()} - {label, settings.label}
        remove = tuple(name for name in issue.labels if name in others)
        add = (label,) if label and label not in issue.labels else ()
        if add or remove:
            yield from place.patient.do(
                f"label issue {number}", forge.change_labels, number, add=add, remove=remove
            )
        self._desk.origins.change(item, labeled=label)

    def _close(self, item: str) -> Flow[None]:
        place = self._desk.place(item)
        if place is None or place.report.state != "landed" or place.origin.closed:
            return
        number = place.number
        yield from place.patient.do(f"close issue {number}", place.forge.close_issue, number)
        self._desk.origins.change(item, closed=True)


def _begins(event: Event) -> bool:
    return isinstance(event, WatchProcessingItem)


def _names_its_item(event: Event) -> bool:
    """Return whether `filename` is the item; for a spec issue it is the issue's file."""
    return type(event).__name__.startswith("Watch")
