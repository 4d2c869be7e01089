"""What reports, answers and claims share: the items with issues, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reactivex.subject import Subject

from cuggino._values import dataclass
from cuggino.config import BacklogSource
from cuggino.errors import CugginoError, ForgeRefused, StorageError
from cuggino.events import Event, WatchReportFailed
from cuggino.forge.commenting import with_marker
from cuggino.forge.model import Forge
from cuggino.forge.redaction import Redaction
from cuggino.forge.report import Report, report_of, text_of
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
    def report(self) -> Report:
        """Return what the comment is to say."""
        return report_of(self.origin.report)


class Desk:
    """The items of a workspace that have issues, by the trackers of their sources.

    `redact` masks what must not leave this machine, and `specs` is the folder of the
    specifications, which answers are added to.
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
        """Events from outside of any stream of its own, such as those of a claim."""
        self.changed: Subject[str] = Subject()
        """Emits an item whose report has changed."""
        self.looked: set[str] = set()
        """The items whose comments this process has looked for."""
        self._redact = redact
        self._silent: set[str] = set()

    def place(self, item: str) -> Place | None:
        """Return where the issue of the item is; None without one, or if nothing is said there.

        Raises:
            StorageError: its origin cannot be read.
        """
        origin = self.origins.read(item)
        if origin is None or origin.number is None or origin.silent or item in self._silent:
            return None
        tracker = self.trackers.get(origin.source)
        if tracker is None:
            return None
        return Place(item=item, number=origin.number, origin=origin, tracker=tracker)

    def places(self, source: str) -> list[Place]:
        """Return where the issues of all items of a source are."""
        of_source = [name for name, one in self.origins.all().items() if one.source == source]
        return [place for name in of_source if (place := self.place(name)) is not None]

    def body(self, key: str, report: Report) -> str:
        """Return the body of a comment."""
        return with_marker(key, text_of(report, self._redact))

    def change(self, item: str, report: Report) -> None:
        """Record what the comment is to say."""
        self.origins.change(item, report=report.model_dump(mode="json"))
        self.changed.on_next(item)

    def silence(self, item: str, error: CugginoError) -> Event:
        """Say no more on the issue of an item; return the event that reports why.

        A deleted issue stays silent; another refusal is tried again by the next watch.
        """
        self._silent.add(item)
        url = ""
        try:
            if (origin := self.origins.read(item)) is not None:
                url = origin.url
                if isinstance(error, ForgeRefused) and error.status in (404, 410):
                    self.origins.change(item, silent=error.message)
        except StorageError:
            pass  # which is why it is silent, or is met again
        return WatchReportFailed(filename=item, url=url, message=error.message)
