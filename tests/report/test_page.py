"""The page as text: its contents, and that nothing in it can run or load."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from datetime import UTC, datetime, timedelta, timezone
from html.parser import HTMLParser
from typing import Any

import pytest

from cuggino.errors import ConfigError
from cuggino.events import AgentMessage, CheckCommandOutput, CommitPerformed
from cuggino.report import RunReport, build_report, page, render_report, zone_at
from cuggino.report.markup import escape, island, tag, visible
from tests.report.hostile import BAD, hostile_report
from tests.report.journals import NAMES, begin, entries_of, report_of
from tests.vectors import each

CHARTS = "/* the chart library */"


class Page(HTMLParser):
    """A parsed page: elements, their attributes, scripts and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.words = ""
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "script":
            self.scripts[-1] += data
        else:
            self.words += data

    def island(self, name: str) -> Any:
        """Return the contents of the data element with that name."""
        elements = [attributes for tag, attributes in self.elements if tag == "script"]
        place = next(n for n, attributes in enumerate(elements) if attributes.get("id") == name)
        return json.loads(self.scripts[place])


def rendered(report: RunReport) -> str:
    """Return the page, with a small stand-in for the chart library."""
    return render_report(report, zone=UTC_ZONE, charts=CHARTS)


UTC_ZONE = timezone.utc  # noqa: UP017


@each("name", NAMES)
def test_each_event_has_a_row(name: str) -> None:
    """Every entry of a journal is a row, and the head shows the state."""
    report = report_of(name)
    shown = Page(rendered(report))
    assert [e.seq for e in report.entries] == [
        row[0] for row in shown.island("events-data")["rows"]
    ]
    assert report.run_id in shown.words
    assert (shown.island("figure") is None) == (not report.stages)


def test_sections() -> None:
    """Results and incidents of the run are listed."""
    words = Page(rendered(report_of("resumed", diffs={"1111111": None}))).words
    for said in (
        "stalled",
        "The same findings came back three times.",
        "$1.75",
        "2 processes, options",
        "cut off, done again later",
        "Waited for a usage limit",
        "1. No test for a wrong password.",
        "The repository does not have it any more.",
        "pushed to origin/main",
        "exit code 1",
        "Nobody worked in the shaded times.",
        "Times are UTC.",
    ):
        assert said in words


def test_torn_line_is_mentioned() -> None:
    """A partially written line is mentioned."""
    assert "ends in the middle of a line" in Page(rendered(report_of("killed"))).words
    assert "ends in the middle of a line" not in Page(rendered(report_of("finished"))).words


def test_nothing_breaks_out() -> None:
    """Agent text creates no element or attribute, in any field of any event."""
    report = hostile_report()
    shown = Page(rendered(report))
    kinds = [
        (attributes.get("type"), attributes.get("id"))
        for tag, attributes in shown.elements
        if tag == "script"
    ]
    assert [
        ("application/json", "figure"),
        ("application/json", "events-data"),
        (None, None),
        (None, None),
    ] == kinds
    assert not {"img", "a", "b", "iframe", "object", "svg"} & {tag for tag, _ in shown.elements}
    assert [] == [
        name for _, attributes in shown.elements for name in attributes if name.startswith("on")
    ]
    assert len(report.entries) == len(shown.island("events-data")["rows"])
    assert [CHARTS, page._asset("page.js")] == shown.scripts[2:]


def test_labels_of_charts_hold_no_markup() -> None:
    """The chart library renders HTML in labels; ours contain only bold and line breaks."""
    figure = Page(rendered(hostile_report())).island("figure")
    labels = [label for trace in figure["data"] for label in trace.get("customdata", [])]
    assert labels
    for label in labels:
        assert set() == set(re.findall(r"<[^>]*>?", label)) - {"<b>", "</b>", "<br>"}


def test_content_security_policy() -> None:
    """The page runs only its own two scripts and loads nothing."""
    shown = Page(rendered(report_of("finished")))
    (policy,) = (
        str(attributes["content"])
        for _, attributes in shown.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    digests = [hashlib.sha256(script.encode()).digest() for script in shown.scripts[2:]]
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    assert (
        "default-src 'none'; "
        f"script-src {allowed}; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    ) == policy
    linked = [
        attributes[name]
        for _, attributes in shown.elements
        for name in ("src", "href", "action", "srcset")
        if name in attributes
    ]
    assert ["data:,"] == linked
    assert "url(" not in page._asset("page.css")
    assert "@import" not in page._asset("page.css")


def test_library_with_an_end_tag_is_rejected() -> None:
    """A script that contains a script end tag cannot be embedded."""
    with pytest.raises(ValueError, match="end its own element"):
        render_report(report_of("finished"), zone=UTC_ZONE, charts="'</SCRIPT>'")


def test_without_the_chart_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Plotly the error explains how to install it; a run without stages needs none."""
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(ConfigError) as caught:
        render_report(report_of("finished"), zone=UTC_ZONE)
    assert "pip install 'cuggino[report]'" == caught.value.hint
    assert "No stage has begun." in render_report(report_of("started"), zone=UTC_ZONE)


def test_zone() -> None:
    """All times are in the requested time zone, which the page names."""
    zone = timezone(timedelta(hours=-3))
    shown = Page(render_report(report_of("finished"), zone=zone, charts=CHARTS))
    assert "18:00:00" in shown.words
    assert "Times are UTC-03:00." in shown.words
    assert "2026-11-20 18:00:00" in shown.island("figure")["data"][0]["base"][0]
    moment = datetime.fromtimestamp(shown.island("events-data")["rows"][0][1] / 1000, UTC)
    assert 18 == moment.hour
    assert zone_at(moment).utcoffset(None) == moment.astimezone().utcoffset()


def test_long_tables_are_cut() -> None:
    """With many commits and checks the page shows how many are left out."""
    commits = [
        CommitPerformed(iteration=1, commit_hash=f"{n:07x}", message="m") for n in range(1002)
    ]
    checks = [CheckCommandOutput(iteration=1, exit_code=0, output="x" * 30_000)] * 1001
    stages = [begin(f"planning#{n}") for n in range(1003)]
    text = rendered(build_report(entries_of(*commits, *checks, *stages)))
    for count in (1, 2, 3):
        assert f"{count} more are left out here" in text
    assert "x" * 20_001 not in text
    assert "Only the end of the output is here." in text


def test_long_focus() -> None:
    """A focus of several lines is shortened in the title and complete below it."""
    (started, *rest) = entries_of(AgentMessage(text="hello"))
    longer = started.event.model_copy(update={"focus": "Add login\n\nwith a password"})
    first = type(started)(seq=1, at=started.at, stage=None, event=longer)
    words = Page(rendered(build_report((first, *rest)))).words
    assert "Add login – cuggino" in words
    assert "Add login\n\nwith a password" in words


def test_markup() -> None:
    """Text is escaped as child and attribute; control characters are made visible."""
    assert '<p class="a" data-x="&quot;&lt;">&lt;b&gt;<br></p>' == tag(
        "p", "<b>", tag("br"), class_="a", data_x='"<', hidden=None
    )
    assert "<input checked>" == tag("input", checked=True, disabled=False)
    assert "␛[1m ␡ \\u{202e} \ufffd \n\t" == visible("\x1b[1m \x7f \u202e \ud800 \r\n\t")
    assert escape(BAD) == escape(visible(BAD))
    assert (
        '<script type="application/json" id="x">"\\u003c/script\\u003e\\u0026"</script>'
        == island("x", '"</script>&"')
    )
