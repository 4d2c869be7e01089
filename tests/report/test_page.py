"""The page of a report as text: contents, prose, charts, and nothing that runs or loads."""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import UTC, timedelta, timezone
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from cuggino.events import (
    AgentMessage,
    CheckCommandOutput,
    CommitPerformed,
    QuotaUsed,
    RunContinued,
    RunEnded,
    StageFinished,
    Usage,
    UsageUpdate,
)
from cuggino.inert import inert
from cuggino.report import (
    RunReport,
    build_report,
    markdown,
    render_part,
    render_report,
    stylesheet,
    zone_at,
)
from cuggino.report.as_json import report_json
from cuggino.report.charts import (
    LineChart,
    Span,
    Timeline,
    cost_chart,
    overview,
    timeline,
    token_chart,
)
from cuggino.report.cutting import Cut, cut
from cuggino.report.prose import MOST
from cuggino.report.times import Times
from cuggino.report.wording import state_of
from tests.report.hostile import MARKDOWN, hostile_report
from tests.report.journals import NAMES, START, after, begin, entries_of, report_of
from tests.vectors import each

UTC_ZONE = timezone.utc  # noqa: UP017


class Page(HTMLParser):
    """A parsed page: elements, their attributes, and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.styles = ""
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "style":
            self.styles += data
        else:
            self.words += data


def rendered(report: RunReport) -> str:
    """Return the page of a report."""
    return render_report(report, zone=UTC_ZONE)


_ACTIVE = {
    *("script", "img", "iframe", "object", "embed", "form", "input", "button", "base", "audio"),
    *("video", "source", "template", "noscript", "math", "foreignobject", "animate", "set", "use"),
}
_LINK = re.compile(r"#[a-z0-9-]+|https?://\S+|data:,")
_NAME = re.compile(r"[a-zA-Z0-9 -]*")


def intruders(page: str) -> list[str]:
    """Return what no report may contain: active elements, foreign names, links to elsewhere."""
    found = []
    for tag, attributes in Page(page).elements:
        if tag in _ACTIVE:
            found.append(f"<{tag}>")
        for name, value in attributes.items():
            if name.startswith("on") or name in ("style", "src", "srcset", "action", "data"):
                found.append(f"{tag} {name}={value}")
            if name == "href" and not _LINK.fullmatch(value or ""):
                found.append(f"{tag} href={value}")
            if name in ("id", "class", "role", "rel") and not _NAME.fullmatch(value or ""):
                found.append(f"{tag} {name}={value}")
    return found


@each("name", NAMES)
def test_every_run_has_a_page(name: str) -> None:
    """The page shows run and state, and each agent's stage has its bar and its transcript."""
    report = report_of(name)
    page = rendered(report)
    shown = Page(page)
    assert report.run_id in shown.words
    assert state_of(report.state)[0] in shown.words
    assert [] == intruders(page)
    ids = [attributes["id"] for _, attributes in shown.elements if "id" in attributes]
    assert len(ids) == len({*ids})
    links = {str(a["href"])[1:] for t, a in shown.elements if str(a.get("href")).startswith("#")}
    shown_stages = {f"s{n}" for n, stage in enumerate(report.stages) if stage.kind != "other"}
    assert shown_stages <= links
    assert shown_stages <= {*ids}


def test_sections() -> None:
    """Results and incidents of the run are listed."""
    words = Page(rendered(report_of("resumed", diffs={"1111111": None}))).words
    for said in (
        "stalled",
        "The same findings came back three times.",
        "$1.75",
        "2 processes, focus and options",
        "cut off, done again later",
        "Waiting for the usage limit, 3m 0s left: resets 11pm",
        "No test for a wrong password.",
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


@each("kind", ["run", "deliver"])
def test_nothing_breaks_out(kind: str) -> None:
    """Agent text creates no element, attribute, id or class, in any field of any event."""
    page = rendered(hostile_report(kind="deliver" if kind == "deliver" else "run"))
    assert [] == intruders(page)
    assert "document.title=" in page
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_intruders_are_found() -> None:
    """The check of the other tests finds each kind of intruder."""
    bad = "<img src=x><p onclick=x style=y class='&quot;'></p><a href=/stop></a><script></script>"
    kinds = ["<img>", "img src=x", "p onclick=x", "p style=y", 'p class="', "a href=/stop"]
    assert [*kinds, "<script>"] == intruders(bad)


def test_content_security_policy() -> None:
    """The page has no script, and its policy allows only its own style sheet."""
    page = rendered(report_of("finished"))
    shown = Page(page)
    (policy,) = (
        str(attributes["content"])
        for _, attributes in shown.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    digest = base64.b64encode(hashlib.sha256(shown.styles.encode()).digest()).decode()
    assert (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    ) == policy
    assert stylesheet() == shown.styles
    assert "url(" not in stylesheet()
    assert "@import" not in stylesheet()
    assert "<script" not in page


def test_zone() -> None:
    """All times are in the requested time zone, which the page names."""
    zone = timezone(timedelta(hours=-3))
    shown = Page(render_report(report_of("finished"), zone=zone))
    assert "18:00:00" in shown.words
    assert "Times are UTC-03:00." in shown.words
    assert "21:00:00" not in shown.words
    assert zone_at(START).utcoffset(None) == START.astimezone().utcoffset()


def test_long_tables_are_cut() -> None:
    """With many commits and checks the page shows how many are left out."""
    commits = [
        CommitPerformed(iteration=1, commit_hash=f"{n:07x}", message="m") for n in range(402)
    ]
    checks = [CheckCommandOutput(iteration=1, exit_code=0, output="x" * 30_000)] * 401
    stages = [begin(f"planning#{n}") for n in range(403)]
    text = rendered(build_report(entries_of(*commits, *checks, *stages)))
    assert re.search(r"\d+ commits more are left out here", text)
    assert re.search(r"The first \d+ stages are left out here", text)
    assert "Only the end of the output is here" in text
    assert len(text) < 600_000


def test_long_focus() -> None:
    """A focus of several lines is shortened in the title and complete below it."""
    (started, *rest) = entries_of(AgentMessage(text="hello"))
    longer = started.event.model_copy(update={"focus": "Add login\n\nwith a password"})
    first = type(started)(seq=1, at=started.at, stage=None, event=longer)
    words = Page(rendered(build_report((first, *rest)))).words
    assert "Add login – cuggino" in words
    assert "with a password" in words


def test_visible() -> None:
    """Control characters are made visible."""
    assert "␛[1m ␡ \\u{202e} \ufffd \n\t" == inert("\x1b[1m \x7f \u202e \ud800 \r\n\t")


def test_cut() -> None:
    """A long text keeps head and tail, and counts the rest; cutting it again counts all."""
    text = "".join(chr(ord("a") + n % 26) for n in range(100))
    assert Cut(text) == cut(text, 100)
    once = cut(text, 40)
    assert (text[:30], 60, text[-10:]) == once
    assert (text[:15], 80, text[-5:]) == once.fit(20) == cut(text, 20)
    assert (text[:1], 99, "") == cut(text, 1)


def test_usage_windows() -> None:
    """The windows at the end of the run are listed with their resets."""
    reports = [
        QuotaUsed(
            window=window, used=used, agent="claude", resets_at=START + timedelta(hours=hours)
        )
        for window, used, hours in (("five_hour", 0.5, 5), ("five_hour", 0.62, 5), ("old", 1.0, 0))
    ]
    report = build_report(entries_of(*reports, RunEnded(state="approved")))
    assert ["five_hour"] == [one.window for one in report.windows]
    section = render_part("spending", report, zone=UTC)
    assert "claude: five_hour 62 % used, resets 2026-11-21 02:00" in section
    assert ["five_hour"] == [one["window"] for one in report_json(report)["windows"]]


@each("vector", MARKDOWN)
def test_vectors(vector: str) -> None:
    """No Markdown becomes active, loads something, or looks like a part of the page."""
    shown = str(markdown(vector))
    assert [] == intruders(shown)
    allowed = {"href", "rel", "start"}
    assert {name for _, attributes in Page(shown).elements for name in attributes} <= allowed
    links = [a["href"] for tag, a in Page(shown).elements if tag == "a"]
    assert all(
        str(link).startswith(("https://a.example", "https://evil.example")) for link in links
    )


def test_there_are_forty_vectors() -> None:
    """The list of vectors does not shrink."""
    assert len({*MARKDOWN}) >= 40


def test_formatting() -> None:
    """Headings, lists, code, tables and links are rendered."""
    shown = str(
        markdown(
            "# Title\n\nSome `code` and **bold**, [docs](https://a.example/x?y=1&z=2).\n\n"
            "- one\n- two\n\n3. three\n\n```python\nprint(1 < 2)\n```"
            "\n\n| a | b |\n|:-|-|\n| 1 | 2 |\n"
        )
    )
    for part in (
        "<h4>Title</h4>",
        "<code>code</code>",
        "<strong>bold</strong>",
        '<a href="https://a.example/x?y=1&amp;z=2" rel="noreferrer nofollow">docs</a>',
        "<li>one</li>",
        '<ol start="3">',
        "<pre><code>print(1 &lt; 2)\n</code></pre>",
        "<th>a</th>",
        "<td>1</td>",
    ):
        assert part in shown


def test_markers_are_text() -> None:
    """An agent's marker is shown as it was written."""
    assert "&lt;DONE&gt;Add it&lt;/DONE&gt;" in markdown("<DONE>Add it</DONE>")


@pytest.mark.parametrize(
    "text", ["[" * 20_000, ">" * 20_000, "[a](" * 20_000, "*a " * 30_000, "x" * 5_000_000, "\n" * 9]
)
def test_pathological(text: str) -> None:
    """Deep nesting and long texts are rendered, and cut with their head and tail."""
    shown = markdown(text)
    assert len(shown) < 12 * MOST
    assert (len(text) > MOST) == ("characters left out" in shown)


ZONE = UTC


def times_of(report: RunReport) -> Times:
    """Return the times of a report in UTC."""
    return Times(ZONE, report.start, report.end)


def drawn(report: RunReport) -> Timeline:
    """Return the timeline of a report."""
    found = timeline(report, times_of(report))
    assert found is not None
    return found


def costs(report: RunReport) -> LineChart:
    """Return the chart of the costs of a report."""
    found = cost_chart(report, times_of(report))
    assert found is not None
    return found


def test_bars() -> None:
    """Each attempt at a stage is a bar of its duration in the lane of its kind."""
    report = report_of("resumed")
    chart = drawn(report)
    lanes = {lane.y - 12: lane.text for lane in chart.lanes}
    stages = [(n, stage) for n, stage in enumerate(report.stages) if stage.kind != "other"]
    assert [stage.kind for _, stage in stages] == [lanes[bar.y] for bar in chart.bars]
    assert [n for n, _ in stages] == [bar.target for bar in chart.bars]
    idle = 3600.0  # squeezed
    scale = (1000 - chart.left - 4 - 90) / ((report.end - report.start).total_seconds() - idle)
    for bar, (_, stage) in zip(chart.bars, stages, strict=True):
        assert bar.width == pytest.approx(max(stage.seconds * scale, 1.0), abs=0.06)
    (cut_off,) = (bar for bar in chart.bars if bar.is_cut_off)
    assert "cut off, done again later" in cut_off.title
    again = next(bar.title for bar in chart.bars if "try 2" in bar.title)
    assert "implementing#6, try 2" in again
    assert "$0.60, 31,800 tokens" in again
    assert "Done: Task 2" in again


def test_lanes() -> None:
    """Each kind with a stage has a lane, from the top in the order of an iteration."""
    names = ["planning", "implementing", "reviewing", "setup", "check", "commit", "push", "notices"]
    assert names == [lane.text for lane in drawn(report_of("resumed")).lanes]


def test_failed_command() -> None:
    """The bar of a failed check has the color of failures."""
    looks = [bar.look for bar in drawn(report_of("finished")).bars]
    assert 1 == looks.count("failed")


def test_gaps() -> None:
    """The time without a running process is shaded, and labeled if there is space."""
    (gap,) = drawn(report_of("resumed")).gaps
    assert gap.x < gap.y
    assert "stopped 1 h" == gap.text
    assert gap.y - gap.x == pytest.approx(90, abs=1)  # most of the time, but not of the width
    assert () == drawn(report_of("finished")).gaps
    stages = [begin(f"a#{n}") for n in range(50)]
    (short,) = drawn(build_report(entries_of(*stages, RunContinued(), begin("b#51")))).gaps
    assert "" == short.text


def test_idle_times_are_squeezed() -> None:
    """Two minutes of work around a night of waiting take most of the width."""
    night = 8 * 3600
    spans = [
        Span(0, START, after(60), "good", 1, "a"),
        Span(0, after(night), after(night + 60), "good", 2, "b"),
    ]
    end = after(night + 60)
    chart = overview(["a"], spans, START, end, Times(ZONE, START, end), title="")
    assert chart is not None
    (gap,) = chart.gaps
    assert "idle 7 h 59 m" == gap.text
    assert all(bar.width > 300 for bar in chart.bars)
    texts = [tick.text for tick in chart.ticks]
    assert {"21:00:30", "05:00:30"} <= {*texts}
    places = [tick.x for tick in chart.ticks]
    assert all(b - a >= 60 for a, b in pairwise(places))


def test_notices_are_marks() -> None:
    """A notice is a mark, and a wait has its width."""
    marks = drawn(report_of("resumed")).marks
    assert len(report_of("resumed").notices) == len(marks)
    assert any(mark.width > 0 for mark in marks)


def test_narrow_neighbors_are_one_bar() -> None:
    """Thousands of stages are a bounded number of bars, which cover the same time."""
    many = [
        pair
        for n in range(4000)
        for pair in (begin(f"check#{n}"), (f"check#{n}", StageFinished(outcome={"value": n})))
    ]
    chart = drawn(build_report(entries_of(*many)))
    assert len(chart.bars) < 1000
    assert any("stages" in bar.title for bar in chart.bars)
    assert chart.bars[-1].x + chart.bars[-1].width == pytest.approx(996, abs=2)


@pytest.mark.parametrize(
    ("seconds", "label"),
    [(0.5, ""), (20, "21:00:05"), (1700, "21:05"), (30_000, "22:00"), (900_000, "11-22")],
)
def test_ticks(seconds: float, label: str) -> None:
    """There are at most nine ticks at round times."""
    report = build_report(entries_of(begin("a#1"), ("a#1", StageFinished()), every=seconds / 2))
    ticks = drawn(report).ticks
    assert len(ticks) <= 9
    assert not label or label in [tick.text for tick in ticks]


def test_lines() -> None:
    """Cost and tokens are steps from zero at the start to their total at the end."""
    report = report_of("finished")
    chart = costs(report)
    (line,) = chart.lines
    assert line.path.startswith("M104 110H")
    assert line.path.endswith("V6.0H996.0")
    assert "$1.65" == line.total
    tokens = token_chart(report, times_of(report))
    assert tokens is not None
    assert ["output", "input"] == [line.name for line in tokens.lines]


def test_cache_reads_alone() -> None:
    """Cache reads are drawn where they flatten nothing."""
    update = ("a#1", UsageUpdate(usage=Usage(input_tokens=1, cache_read_tokens=4)))
    report = build_report(entries_of(begin("a#1"), update))
    tokens = token_chart(report, times_of(report))
    assert tokens is not None
    assert ["input", "cache read"] == [line.name for line in tokens.lines]


def test_no_cost() -> None:
    """Without costs or stages, their charts are left out."""
    report = build_report(entries_of(begin("a#1")))
    assert cost_chart(report, times_of(report)) is None
    assert token_chart(report, times_of(report)) is None
    started = report_of("started")
    assert timeline(started, times_of(started)) is None


def test_points_are_limited() -> None:
    """A line is reduced to a limited number of points and keeps the last one."""
    many = [("a#1", UsageUpdate(usage=Usage(input_tokens=n), cost_usd=n)) for n in range(1, 9000)]
    chart = costs(build_report(entries_of(begin("a#1"), *many)))
    assert chart.lines[0].path.count("V") <= 401
    assert chart.lines[0].path.endswith("V6.0H996.0")
    assert "$8,999.00" == chart.most


def test_overview() -> None:
    """Work on items is bars in a lane for each item."""
    end = START + timedelta(hours=2)
    spans = [
        Span(0, START, after(3600), "good", 1, "Login: done"),
        Span(1, after(3600), end, "bad", 2, "Logout: parked", is_cut_off=True),
    ]
    chart = overview(["Login", "L" * 90], spans, START, end, Times(ZONE, START, end), title="2")
    assert chart is not None
    assert [220.0, 608.0] == [bar.x for bar in chart.bars]
    assert [388.0, 388.0] == [bar.width for bar in chart.bars]
    assert all(len(lane.text) <= 34 for lane in chart.lanes)
    assert overview([], [], START, end, Times(ZONE, START, end), title="") is None
