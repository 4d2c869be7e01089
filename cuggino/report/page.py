"""The page: one self-contained HTML file that cannot load anything else."""

from __future__ import annotations

import base64
import hashlib
import importlib
from collections.abc import Iterable
from datetime import timezone
from importlib.resources import files

from cuggino.errors import ConfigError
from cuggino.report import deliveries, results, sections
from cuggino.report.events_table import CATEGORIES, QUIET, EventsTable, events_table
from cuggino.report.markup import PLACE, Html, island, join, tag, to_json
from cuggino.report.model import RunReport
from cuggino.report.timeline import timeline
from cuggino.report.times import Times
from cuggino.report.wording import counted, first_line, number, standing

GENERATOR = "cuggino report"
"""The generator named in the head of every page."""


def chart_library() -> str:
    """Return the source of plotly.js.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        # By name: the package has no types, and is slow to import.
        plotly = importlib.import_module("plotly.offline")
    except ImportError as error:
        raise ConfigError(
            "a report needs Plotly for its charts, which is not installed",
            hint="pip install 'cuggino[report]'",
        ) from error
    source: str = plotly.get_plotlyjs()
    return source


def render_report(report: RunReport, *, zone: timezone, charts: str | None = None) -> str:
    """Render the report as one HTML page; see `render_parts`."""
    return b"".join(render_parts(report, zone=zone, charts=charts)).decode()


def render_parts(
    report: RunReport, *, zone: timezone, charts: str | None = None
) -> tuple[bytes, ...]:
    """Render the report as one HTML page in UTF-8, in parts, as it may be long.

    Its Content-Security-Policy allows only the page's own scripts, by digest, and no loading. All
    foreign text is escaped. Without a stage there is no chart, and no need for the chart library.

    Args:
        report: what to show.
        zone: the time zone of all times.
        charts: the source of plotly.js; default: that of the installed package.

    Raises:
        ConfigError: the chart library is not installed.
    """
    times = Times(zone, report.start, report.end)
    events = events_table(report, times)
    figure = timeline(report, times)
    scripts = [_asset("page.js")]
    if figure is not None:
        scripts.insert(0, chart_library() if charts is None else charts)
    if any("</script" in script.lower() for script in scripts):
        raise ValueError("a script would end its own element")
    subject = first_line(report.focus, 60) or standing(report) or report.run_id
    title = f"{subject} – cuggino"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(scripts)),
        tag("meta", name="generator", content=GENERATOR),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Html(_asset("page.css"))),
    )
    body = tag(
        "body",
        tag("noscript", tag("p", "The charts and the events need JavaScript.", class_="message")),
        tag("main", _main(report, times, events, drawn=figure is not None)),
        island("figure", to_json(figure)),
        tag("script", PLACE, type="application/json", id="events-data"),
        [tag("script", Html(script)) for script in scripts],
    )
    page = f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"
    before, _, after = page.partition(PLACE)
    return (before.encode("utf-8", "replace"), *events.parts, after.encode("utf-8", "replace"))


def _main(report: RunReport, times: Times, events: EventsTable, *, drawn: bool) -> Html:
    return join(
        sections.header(report, times),
        _timeline(report, times, drawn=drawn),
        deliveries.deliverables(report, times),
        deliveries.sessions(report, times),
        sections.notices(report, times),
        results.findings(report, times),
        results.commits(report, times),
        results.commands(report, times),
        results.tools(report),
        _events(report, events),
        tag("footer", f"Times are {times.name}. ", _torn(report)),
    )


def _torn(report: RunReport) -> str | None:
    if not report.torn:
        return None
    return "The journal ends in the middle of a line, which is left out."


def _timeline(report: RunReport, times: Times, *, drawn: bool) -> Html:
    if not drawn:
        empty = tag("p", "No stage has begun.", class_="note")
        return sections.section("Timeline", empty, name="timeline")
    hints = ["Drag to zoom, double-click to go back."]
    if any(stage.ending in ("repeated", "unfinished") for stage in report.stages):
        hints.append("Hatched stages were cut off.")
    if len(report.processes) > 1:
        hints.append("Nobody worked in the shaded times.")
    chart = tag("div", id="chart", role="img", aria_label="Stages, cost and tokens over time")
    return sections.section(
        "Timeline",
        chart,
        sections.stages(report, times),
        name="timeline",
        note=" ".join(hints),
    )


def _events(report: RunReport, events: EventsTable) -> Html:
    boxes = [
        tag(
            "label",
            tag(
                "input",
                type="checkbox",
                name="category",
                value=name,
                checked=name not in QUIET,
            ),
            f" {CATEGORIES[name]} ",
            tag("span", number(count), class_="quiet"),
        )
        for name, count in events.counts.items()
    ]
    missing = []
    if events.left_out:
        missing.append(f"The first {counted(events.left_out, 'event')} are left out here.")
    if events.cut:
        missing.append(f"Long texts are cut in {counted(events.cut, 'event')}.")
    if missing:
        missing.append(f"The journal {report.run_id}.jsonl has all.")
    return sections.section(
        "Events",
        tag(
            "form",
            tag(
                "input",
                type="search",
                id="filter",
                placeholder="Filter: all of these words",
                aria_label="Filter the events",
                autocomplete="off",
            ),
            tag("fieldset", boxes, aria_label="Categories"),
            id="controls",
        ),
        tag("p", id="status", role="status", class_="note"),
        tag(
            "div",
            tag("div", id="rows", role="presentation"),
            id="grid",
            role="listbox",
            aria_label="Events",
            tabindex="0",
        ),
        tag("div", id="detail", aria_live="polite", hidden=True),
        name="events",
        note=" ".join(missing) or None,
    )


def _policy(scripts: Iterable[str]) -> str:
    digests = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _asset(name: str) -> str:
    return (files("cuggino.report") / name).read_text(encoding="utf-8")
