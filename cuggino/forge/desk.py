"""The items with issues and the state of their comments, for reports, answers and claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from reactivex import Observable
from reactivex.subject import Subject

from cuggino.config import BacklogSource
from cuggino.domain import Schedule
from cuggino.errors import CugginoError, ForgeRefused, StorageError
from cuggino.events import Event, WatchReportFailed
from cuggino.forge.commenting import all_comments, with_marker
from cuggino.forge.model import Comment, Forge
from cuggino.forge.patience import Patient
from cuggino.forge.redaction import Redaction
from cuggino.forge.report import Report, report_of, text_of
from cuggino.loops import Companion
from cuggino.operators import Flow, emit, flow
from cuggino.operators.merge_now import merge_now
from cuggino.operators.repeat_on import repeat_on
from cuggino.storage import Backlog, Origin, Origins, Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracker:
    """A source whose items are issues of a forge."""

    forge: Forge
    settings: BacklogSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An item, and where its issue is."""

    item: str
    number: int
    origin: Origin
    tracker: Tracker

    @property
    def forge(self) -> Forge:
        """Return the forge of its issue."""
        return self.tracker.forge

    @property
    def report(self) -> Report:
        """Return the report that the comment is to show."""
        return report_of(self.origin.report)

    @property
    def patient(self) -> Patient:
        """Return the calls to its forge, repeated until they succeed."""
        return Patient(self.forge)

    def comments(self, doing: str) -> Flow[list[Comment]]:
        """Return all comments on its issue, oldest first; `doing` says what for."""
        return self.patient.get(doing, all_comments, self.forge, self.number)


class Desk:
    """The items of a workspace that have issues, by the trackers of their sources.

    `redact` masks text that must not leave this machine. Answers are added to the specifications
    in the folder `specs`.
    """

    def __init__(
        self,
        workspace: Workspace,
        trackers: Mapping[str, Tracker],
        *,
        redact: Redaction,
        specs: Path,
    ) -> None:
        self.workspace = workspace
        self.trackers = trackers
        self.specs = specs
        self.origins = Origins(workspace)
        self.backlog = Backlog(workspace)
        self.news: Subject[Event] = Subject()
        """Events that belong to no other stream, such as those of a claim."""
        self.changed: Subject[str] = Subject()
        """Emits an item whose report has changed."""
        self.looked: set[str] = set()
        """The items whose comments this process has looked for."""
        self._redact = redact
        self._silent: set[str] = set()

    def place(self, item: str) -> Place | None:
        """Return the place of the item's issue; None without one, or if nothing is reported there.

        Raises:
            StorageError: the item's origin cannot be read.
        """
        origin = self.origins.read(item)
        if origin is None or origin.number is None or origin.silent or item in self._silent:
            return None
        tracker = self.trackers.get(origin.source)
        if tracker is None:
            return None
        return Place(item=item, number=origin.number, origin=origin, tracker=tracker)

    def places(self, source: str) -> list[Place]:
        """Return the places of all issues of a source's items."""
        of_source = [name for name, one in self.origins.all().items() if one.source == source]
        return [place for name in of_source if (place := self.place(name)) is not None]

    def body(self, key: str, report: Report) -> str:
        """Return the body of a comment."""
        return with_marker(key, text_of(report, self._redact))

    def change(self, item: str, report: Report) -> None:
        """Record the report that the comment is to show."""
        self.origins.change(item, report=report.model_dump(mode="json"))
        self.changed.on_next(item)

    def may_comment(self, place: Place) -> bool:
        """Return whether to add a missing comment: once more if a person has removed it."""
        origin = place.origin
        is_gone = origin.comment not in ("", "?")
        if is_gone and origin.rewritten:
            return False
        self.origins.change(place.item, comment="?", rewritten=origin.rewritten or is_gone)
        return True

    def silence(self, item: str, error: CugginoError) -> Event:
        """Stop reporting on an item's issue; return the event with the reason.

        A deleted issue stays silenced; after any other refusal the next watch tries again.
        """
        self._silent.add(item)
        url = ""
        try:
            if (origin := self.origins.read(item)) is not None:
                url = origin.url
                if isinstance(error, ForgeRefused) and error.status in (404, 410):
                    self.origins.change(item, silent=error.message)
        except StorageError:
            pass  # already the reason, or raised again by the next watch
        return WatchReportFailed(filename=item, url=url, message=error.message)


def polling(
    desk: Desk, concerns: Callable[[Origin], bool], look: Callable[[Desk, Place], Flow[None]]
) -> Companion:
    """Return a companion that polls issues, at the interval of their source.

    `concerns` selects them by their origin; the others cost no request. An issue that refuses a
    request is silenced.
    """

    def poll(source: str) -> Flow[None]:
        for place in desk.places(source):
            if concerns(place.origin):
                try:
                    yield from look(desk, place)
                except (ForgeRefused, StorageError) as error:
                    yield from emit(desk.silence(place.item, error))

    def companion(_events: Observable[Event]) -> Observable[Event]:
        return merge_now(
            *(
                flow(partial(poll, source)).pipe(
                    repeat_on(Schedule.constant(tracker.settings.every))
                )
                for source, tracker in desk.trackers.items()
            )
        )

    return companion
