"""The report in a real browser."""

from __future__ import annotations

import html
import re
from datetime import timezone
from pathlib import Path
from typing import Literal

import pytest

from cuggino.events import AgentMessage, SystemMessage
from cuggino.report import RunReport, build_report, render_report
from tests.cli.recorded_deliveries import deliver
from tests.report.browser import Browser, Shown, browser
from tests.report.hostile import hostile_report
from tests.report.journals import begin, entries_of, report_of

__all__ = ["browser"]

ZONE = timezone.utc  # noqa: UP017
POLICY = re.compile('<meta http-equiv="Content-Security-Policy"[^>]*>')


def write(folder: Path, report: RunReport, *, script: str = "") -> Path:
    """Write the page to a file; a script that acts as the user needs a page that allows it."""
    page = render_report(report, zone=ZONE)
    if script:
        page, taken = POLICY.subn("", page)
        assert 1 == taken
        page = page.replace("</body>", f"<script>{script}</script></body>")
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8", errors="replace")
    return path


def text_of(shown: Shown, pattern: str) -> list[str]:
    """Return the text of each element whose opening tag matches."""
    found = re.findall(rf"<\w+[^>]*{pattern}[^>]*>(.*?)</", shown.dom, re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]*>", "", text)) for text in found]


def status(shown: Shown) -> str:
    """Return the table's count of shown events."""
    (said,) = text_of(shown, 'id="status"')
    return said


def kinds(shown: Shown) -> list[str]:
    """Return the kinds of the table's rows, in order."""
    return text_of(shown, 'class="kind"')


def is_well(shown: Shown) -> bool:
    """Return True if everything was drawn without errors or blocked requests."""
    assert () == shown.console
    return 'data-state="ready"' in shown.dom


def test_console_errors_are_captured(browser: Browser, tmp_path: Path) -> None:
    """A blocked request and a script error appear on the console of these tests."""
    path = write(tmp_path, report_of("failed"))
    page = path.read_text(encoding="utf-8").replace(
        "<main>", '<main><img src="http://192.0.2.1/x.png"><script>alert(1)</script>'
    )
    path.write_text(page, encoding="utf-8")
    console = "\n".join(browser.show(path).console)
    assert "192.0.2.1/x.png" in console
    assert "inline script" in console
    thrown = write(tmp_path, report_of("failed"), script="throw new Error('heard')")
    assert "heard" in "".join(browser.show(thrown).console)


@pytest.mark.parametrize(("name", "bars", "lines"), [("finished", 9, 4), ("resumed", 12, 4)])
def test_charts(browser: Browser, tmp_path: Path, name: str, bars: int, lines: int) -> None:
    """Bars and lines are drawn with the names of the lanes, without errors."""
    shown = browser.show(write(tmp_path, report_of(name)))
    assert is_well(shown)
    drawn = re.findall(r'<g class="point"><path d="(M[^"]+)"', shown.dom)
    assert bars == len(drawn)
    # Cache reads are drawn after a click on their name.
    assert lines - 1 == len(re.findall('<g class="lines"><path class="js-line"', shown.dom))
    labels = text_of(shown, 'class="ytick"')
    for lane in ("planning", "implementing", "reviewing", "setup", "check", "commit"):
        assert lane in labels


def test_deliveries_are_drawn(browser: Browser, tmp_path: Path) -> None:
    """The sessions of the deliverables loop are bars in the lane of their kind."""
    report = build_report(deliver(tmp_path, verify=True).entries)
    shown = browser.show(write(tmp_path, report), fragment="filter=DeliverSession")
    assert is_well(shown)
    labels = text_of(shown, 'class="ytick"')
    assert {"initializer", "coding", "verify"} <= set(labels)
    drawn = re.findall(r'<g class="point"><path d="(M[^"]+)"', shown.dom)
    assert len(report.stages) == len(drawn)
    assert {"DeliverSessionStarted", "DeliverSessionEnded", "StageFinished"} <= set(kinds(shown))
    assert "2 of 3 deliverables passed" in shown.dom


@pytest.mark.parametrize("name", ["running", "killed", "failed", "started", "unicode"])
def test_page_of_any_run(browser: Browser, tmp_path: Path, name: str) -> None:
    """The page of every run is drawn with all events, for any outcome."""
    report = report_of(name)
    shown = browser.show(
        write(tmp_path, report), fragment="categories=sign,agent,tool,marker,loop,policy,journal"
    )
    assert is_well(shown)
    count = len(report.entries)
    assert f"{count} of {count} events" == status(shown)


def test_filter(browser: Browser, tmp_path: Path) -> None:
    """The filter keeps events with all of its words, in any case and field."""
    path = write(tmp_path, report_of("resumed"))
    assert "64 of 67 events" == status(browser.show(path))
    shown = browser.show(path, fragment="filter=PYTEST+toolcall")
    assert (["ToolCall"] * 2, "2 of 67 events") == (kinds(shown), status(shown))
    shown = browser.show(path, fragment="filter=implementing%236&categories=policy")
    assert "6 of 67 events" == status(shown)
    assert {"QuotaWaiting", "QuotaLifted", "AgentRetry", "AgentNudged"} == set(kinds(shown))
    shown = browser.show(path, fragment="filter=nowhere")
    assert ([], "0 of 67 events") == (kinds(shown), status(shown))
    assert is_well(shown)


def test_late_event_is_scrolled_into_view(browser: Browser, tmp_path: Path) -> None:
    """A selected event is scrolled into view."""
    report = report_of("resumed")
    shown = browser.show(write(tmp_path, report), fragment=f"event={len(report.entries)}")
    assert is_well(shown)
    assert 1 == len(re.findall('<div [^>]*aria-selected="true"', shown.dom))
    assert "RunEnded" == kinds(shown)[-1]


def test_selected_event_shows_all_fields(browser: Browser, tmp_path: Path) -> None:
    """A selected event shows each of its fields."""
    report = report_of("unicode")
    (message,) = (entry for entry in report.entries if isinstance(entry.event, AgentMessage))
    shown = browser.show(write(tmp_path, report), fragment=f"event={message.seq}")
    assert is_well(shown)
    (detail,) = re.findall('<div id="detail"[^>]*>(.*?)</div>', shown.dom, re.DOTALL)
    assert "<dd>AgentMessage</dd>" in detail
    assert "Zażółć gęślą jaźń ✓\nمرحبا" in detail
    assert 1 == len(re.findall('<div [^>]*aria-selected="true"', shown.dom))


PERSON = """
const press = (key) => document.getElementById("grid").dispatchEvent(
  new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
window.addEventListener("load", () => setTimeout(() => {
  const search = document.getElementById("filter");
  search.value = "bash";
  search.dispatchEvent(new Event("input"));
  document.querySelector('input[value="journal"]').click();
  setTimeout(() => {
    document.querySelector("#rows > div").click();
    press("ArrowDown");
    Plotly.Fx.hover("chart", [{ curveNumber: 0, pointNumber: 0 }]);
    document.title = location.hash;
  }, 1000);
}, 1000));
"""


def test_user_input(browser: Browser, tmp_path: Path) -> None:
    """Typing, clicking, arrow keys and hovering work, and the URL follows the view."""
    shown = browser.show(write(tmp_path, report_of("resumed"), script=PERSON))
    assert is_well(shown)
    assert "3 of 67 events" == status(shown)
    assert ["ToolCall", "ToolCall", "AgentNudged"] == kinds(shown)
    (row,) = re.findall('<div[^>]*aria-selected="true".*?</div>', shown.dom)
    assert "pytest -q" in row
    (title,) = re.findall("<title>(.*?)</title>", shown.dom.partition("</head>")[0])
    assert "filter=bash" in title
    assert "categories=agent%2Ctool%2Cmarker%2Cloop%2Cpolicy" in title
    hovered = shown.dom.partition('class="hoverlayer"')[2]
    assert "planning#1" in hovered


def test_color_scheme(browser: Browser, tmp_path: Path) -> None:
    """The charts use the system's color scheme."""
    path = write(tmp_path, report_of("finished"))
    light, dark = browser.show(path), browser.show(path, dark=True)
    assert is_well(light)
    assert is_well(dark)
    assert "rgb(63, 111, 181)" in light.dom
    assert "rgb(111, 155, 224)" in dark.dom
    assert "rgb(63, 111, 181)" not in dark.dom


@pytest.mark.parametrize("kind", ["run", "deliver"])
def test_agent_text_is_inert(
    browser: Browser, tmp_path: Path, kind: Literal["run", "deliver"]
) -> None:
    """Agent text creates no element and runs no script."""
    report = hostile_report(kind=kind)
    shown = browser.show(write(tmp_path, report), fragment="event=5")
    assert is_well(shown)
    assert f"of {len(report.entries)} events" in status(shown)
    assert "<title>owned</title>" not in shown.dom
    assert not re.search(r"<(img|iframe)\b", shown.dom)
    assert not re.search(r"<[a-z]+ [^<>]*\son(error|mouseover)=", shown.dom)
    assert not re.search(r'<a [^>]*href="javascript', shown.dom)


def test_large_run(browser: Browser, tmp_path: Path) -> None:
    """Only the visible rows of 100,000 events are in the page, and the filter finds all."""
    many = [("planning#1", AgentMessage(text=f"message {n} " + "x" * 300)) for n in range(99_997)]
    report = build_report(entries_of(begin("planning#1"), *many, SystemMessage(text="the last")))
    assert 100_000 == len(report.entries)
    path = write(tmp_path, report)
    assert path.stat().st_size < 50_000_000
    shown = browser.show(path, fragment="filter=XXX+message")
    assert is_well(shown)
    assert "99,997 of 100,000 events" == status(shown)
    assert 10 < len(kinds(shown)) < 100
