"""The page of a night: decisions for a person, the items, and the page of each run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timezone
from typing import Any, Final

from cuggino.domain import cost_of
from cuggino.report.charts import Span, Timeline, overview
from cuggino.report.night import NightReport
from cuggino.report.page import first_level, fitted, footer, render_page
from cuggino.report.rendering import View, macros_of, smaller, view
from cuggino.report.times import Times
from cuggino.report.wording import UNKNOWN, duration
from cuggino.runs.words import counted

_MOST_LANES: Final = 40


def render_night(night: NightReport, *, zone: timezone) -> str:
    """Render the report of a watch as one HTML page, as `render_report`."""
    times = Times(zone, night.start, night.end)
    watch = view(night.watch, zone=zone, prefix="w-")
    views: dict[str, View] = {}
    for number, item in enumerate(night.items, start=1):
        for place, run in enumerate(item.runs):
            name = prefix(number, place)
            views[name] = view(run, zone=zone, prefix=name)
    parts = macros_of("night.html")

    def body(limits: Mapping[str, Any]) -> str:
        shown = {name: smaller(one, **limits) for name, one in views.items()}
        return str(
            parts.night(
                night=night,
                title=title_of_night(night),
                times=times,
                watch=smaller(watch, **limits),
                views=shown,
                prefix=prefix,
                chart=None if night.slots else overview_of(night, times),
                listed=limits["listed"],
                payload=limits["payload"],
            )
        )

    text = fitted(body, first_level([watch, *views.values()]))
    return render_page(title_of_night(night), text, footer(night.watch, times.name))


def prefix(number: int, place: int) -> str:
    """Return the prefix of a run's ids: the number of its item, and its place there."""
    return f"r{number}-" if place == 0 else f"r{number}-{place + 1}-"


def title_of_night(night: NightReport) -> str:
    """Return the night in one line."""
    what = "item" if night.watch.kind == "watch" else "attempt"
    parts = [f"{len(night.done)} of {counted(len(night.items), what)} done"]
    parts += [f"{len(night.waiting)} waiting for you"] if night.waiting else []
    parts += [f"{len(night.given_up)} given up"] if night.given_up else []
    return ", ".join(parts)


def overview_of(night: NightReport, times: Times) -> Timeline | None:
    """Return the work on each item over time."""
    spans: list[Span] = []
    items = [item for item in night.items[:_MOST_LANES] if item.runs or item.item.end is not None]
    numbers = {item.item.name: n for n, item in enumerate(night.items, start=1)}
    for lane, item in enumerate(items):
        number = numbers[item.item.name]
        word, tone = item.outcome
        title = f"{item.title}\n{word}, {duration(item.seconds)}, {cost_of(item) or UNKNOWN}"
        if item.runs:
            spans += [
                Span(lane, process.start, process.end, tone, number, title)
                for run in item.runs
                for process in run.processes
            ]
        elif item.item.end is not None:
            spans.append(Span(lane, item.item.start, item.item.end, tone, number, title))
    names = [item.title for item in items]
    what = "item" if night.watch.kind == "watch" else "attempt"
    heading = f"{counted(len(night.items), what)} in {duration(night.watch.worked)}"
    return overview(names, spans, night.start, night.end, times, title=heading)
