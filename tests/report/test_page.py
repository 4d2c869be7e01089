"""The page as text: its contents, and that nothing in it can run or load."""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import UTC, timedelta, timezone
from html.parser import HTMLParser

from cuggino.events import AgentMessage, CheckCommandOutput, CommitPerformed, QuotaUsed, RunEnded
from cuggino.inert import inert
from cuggino.report import (
    RunReport,
    build_report,
    render_report,
    stylesheet,
    zone_at,
)
from cuggino.report.as_json import report_json
from cuggino.report.cutting import Cut, cut
from cuggino.report.rendering import render_part
from cuggino.report.wording import state_of
from tests.report.hostile import hostile_report
from tests.report.journals import NAMES, START, begin, entries_of, report_of
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
