"""Pages that are plain lists, for tests of what brings them to a browser."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass, field

from cuggino.errors import StorageError
from cuggino.runs import RecordedRun, Runs
from cuggino.storage.journal import Entry
from cuggino.web.fragment import Fragment
from cuggino.web.site import OVERVIEW, Place, Site

BULK: frozenset[str] = frozenset()
"""Tags of events that a long journal is shown without, except for the last ones."""
_SHOWN = 200
_LONGEST = 400


@dataclass(slots=True)
class RunFold:
    """The last entries of a run."""

    place: Place
    run_id: str
    running: bool = False
    entries: list[Entry] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        """Add an entry."""
        self.entries = [*self.entries[-_SHOWN:], entry]


@dataclass(frozen=True, slots=True)
class Overview:
    """The runs of all workspaces."""

    runs: tuple[tuple[Place, tuple[RecordedRun, ...]], ...]


def load_overview(site: Site) -> Overview:
    """Read the runs of all workspaces."""
    found = []
    for place in site.places:
        try:
            runs = [run for run in Runs(place.folder).all() if isinstance(run, RecordedRun)]
        except StorageError:
            runs = []
        found.append((place, tuple(runs[:_SHOWN])))
    return Overview(tuple(found))


def overview_page(site: Site, overview: Overview, *, seq: int) -> str:
    """Return the overview."""
    (listed,) = overview_fragments(site, overview)
    return _page(site, OVERVIEW, seq, "cuggino", f'<ul id="board">{listed.html}</ul>')


def overview_fragments(site: Site, overview: Overview) -> list[Fragment]:
    """Return the parts of the overview that change."""
    rows = "".join(
        f'<li><a href="{site.url("p", place.key, "runs", run.id)}">'
        f"{html.escape(place.name)} {run.short_id} {run.state}</a></li>"
        for place, runs in overview.runs
        for run in runs
    )
    return [Fragment("board", "replace", rows)]


def run_page(site: Site, fold: RunFold, *, seq: int) -> str:
    """Return the page of a run."""
    channel = site.channel(fold.place, fold.run_id)
    body = f'<p id="head">{_head(fold)}</p><ol id="rows">{_rows(fold.entries)}</ol>'
    return _page(site, channel, seq, fold.place.name, body)


def run_fragments(site: Site, fold: RunFold, since: int, *, slow: bool) -> list[Fragment]:
    """Return the parts of a run's page that have changed after an entry."""
    new = [entry for entry in fold.entries if entry.seq > since]
    return [Fragment("head", "replace", _head(fold)), Fragment("rows", "append", _rows(new))]


def stage_fragment(site: Site, fold: RunFold, stage: str, entries: Iterable[Entry]) -> str:
    """Return the transcript of a stage."""
    return f"<ol>{_rows(entries)}</ol>"


def message_page(site: Site | None, *, title: str, text: str) -> str:
    """Return a page with a message."""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<h1>{html.escape(title)}</h1><p>{html.escape(text)}</p></html>"
    )


def _head(fold: RunFold) -> str:
    last = fold.entries[-1] if fold.entries else None
    state = "running" if fold.running else "not running"
    return f"{state}, {last.seq if last else 0} events"


def _rows(entries: Iterable[Entry]) -> str:
    return "".join(
        f'<li id="e{entry.seq}"><time>{entry.at:%H:%M:%S}</time> <b>{entry.event.tag}</b> '
        f"<code>{html.escape(repr(entry.event)[:_LONGEST])}</code></li>"
        for entry in entries
    )


def _page(site: Site, channel: str, seq: int, title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en" data-base="{site.base}" data-channel="{channel}" '
        f'data-seq="{seq}"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<title id="title">{html.escape(title)}</title>'
        f'<link rel="icon" href="{site.static("icon.svg")}">'
        f'<script src="{site.static("live.js")}" defer></script>'
        f'<h1>{html.escape(title)}</h1><p id="live" role="status"></p>{body}</html>'
    )


def load_templates() -> None:
    """There are none."""
