"""The page of a run: one HTML file without scripts that loads nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import timezone
from types import MappingProxyType
from typing import Any, Final

from cuggino.report.model import RunReport
from cuggino.report.prose import markup
from cuggino.report.rendering import PARTS, View, render_all, smaller, stylesheet, template, view
from cuggino.report.wording import first_line, standing
from cuggino.runs.words import counted

GENERATOR: Final = "cuggino report"
"""The generator named in the head of every page."""

BUDGET: Final = 580_000
"""The approximate size of a page in bytes, however long its runs."""

LEVELS: Final[tuple[Mapping[str, int], ...]] = tuple(
    MappingProxyType(dict(zip(("payload", "rows", "listed", "patch"), level, strict=True)))
    for level in (
        (4_000, 300, 400, 20_000),
        (2_400, 300, 400, 12_000),
        (1_600, 300, 400, 8_000),
        (1_000, 300, 400, 6_000),
        (700, 300, 400, 4_000),
        (450, 240, 400, 3_000),
        (300, 200, 300, 2_000),
        (200, 120, 300, 1_500),
        (160, 80, 250, 1_200),
        (130, 50, 200, 1_000),
        (100, 30, 150, 600),
        (90, 20, 120, 400),
        (80, 14, 100, 300),
        (70, 9, 80, 200),
        (60, 6, 60, 0),
        (60, 4, 24, 0),
    )
)
"""The limits for texts and lists of a page, from generous to tight; see `View`."""

_ROW = 260
"""The bytes that a row of a transcript takes beside its texts."""


def render_report(report: RunReport, *, zone: timezone) -> str:
    """Render the report of a run as one HTML page.

    Its Content-Security-Policy allows only its style sheet, and no loading. Long texts are cut to
    head and tail, so that the page stays usable.

    Args:
        report: the report to render.
        zone: the time zone of all times.
    """
    whole = view(report, zone=zone)
    level = first_level([whole])
    body = fitted(lambda limits: render_all(smaller(whole, **limits)), level)
    subject = report.title or standing(report.delivery, is_sync=report.is_sync) or report.run_id
    return render_page(subject, body, footer(report, whole.times.name))


def footer(report: RunReport, zone: str) -> str:
    """Return the last line of a page."""
    torn = " The journal ends in the middle of a line, which is left out." if report.torn else ""
    return f"{counted(report.events, 'event')} in {report.run_id}.jsonl. Times are {zone}.{torn}"


def render_page(title: str, body: str, last: str) -> str:
    """Return the page with this body, which is HTML."""
    style = stylesheet()
    page = template("report.html").render(
        title=first_line(title, 80),
        generator=GENERATOR,
        policy=policy(style),
        style=markup(style),
        body=markup(body),
        footer=last,
    )
    return f"{page.strip()}\n"


def policy(style: str) -> str:
    """Return the Content-Security-Policy of a page with this style sheet."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def first_level(views: Iterable[View]) -> int:
    """Return the first of `LEVELS` at which the transcripts and diffs may fit into a page."""
    views = list(views)
    for number, level in enumerate(LEVELS):
        if sum(_estimate(one, level) for one in views) <= BUDGET * 1.2:
            return number
    return len(LEVELS) - 1


def _estimate(shown: View, level: Mapping[str, int]) -> int:
    """Estimate the bytes of the rows and diffs of a view."""
    payload, most, patch = level["payload"], level["rows"], level["patch"]
    size = 0
    for transcript in shown.report.transcripts:
        rows = transcript.rows
        share = min(1.0, most / max(len(rows), 1))
        texts = sum(
            _ROW
            + min(row.text.size, payload if row.kind == "tool" else 2 * payload + 300)
            + (min(row.output.size, payload) if row.output else 0)
            for row in rows
        )
        size += int(texts * share)
    for commit in shown.report.commits[: level["listed"]]:
        size += min(commit.diff.patch.size, patch) if commit.diff else 0
    return size


def fitted(render: Callable[[Mapping[str, Any]], str], level: int) -> str:
    """Render at the first level, from this one on, that fits into the budget."""
    for limits in LEVELS[level:]:
        body = render(limits)
        if len(body.encode("utf-8", "replace")) <= BUDGET - len(stylesheet()):
            break
    return body


__all__ = ["BUDGET", "GENERATOR", "PARTS", "render_page", "render_report"]
