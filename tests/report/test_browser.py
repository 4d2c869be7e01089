"""The report in a real browser."""

from __future__ import annotations

from datetime import timezone
from pathlib import Path
from typing import Literal

import pytest

from cuggino.report import RunReport, build_report, render_report
from tests.cli.recorded_deliveries import deliver
from tests.report.browser import PHONE, WIDE, Browser, browser
from tests.report.hostile import hostile_report
from tests.report.journals import report_of
from tests.type_sizes import SMALLEST

__all__ = ["browser"]

ZONE = timezone.utc  # noqa: UP017


def write(folder: Path, report: RunReport) -> Path:
    """Write the page to a file."""
    path = folder / "report.html"
    path.write_text(render_report(report, zone=ZONE), encoding="utf-8")
    return path


def test_console_errors_are_captured(browser: Browser, tmp_path: Path) -> None:
    """A blocked script and a blocked image appear on the console of these tests."""
    path = write(tmp_path, report_of("failed"))
    page = path.read_text(encoding="utf-8").replace(
        "<main", '<img src="http://192.0.2.1/x.png"><script>alert(1)</script><main'
    )
    path.write_text(page, encoding="utf-8")
    with browser.show(path) as shown:
        shown.page.title()  # what came before its answer has been heard
        console = "\n".join(shown.console)
    assert "192.0.2.1/x.png" in console
    assert "inline script" in console


@pytest.mark.parametrize("width", [WIDE, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page(
    browser: Browser, tmp_path: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    """The page fits its window, is drawn without errors, and follows the color scheme."""
    path = write(tmp_path, report_of("resumed"))
    with browser.show(path, width=width, scheme=scheme) as shown:
        assert [] == shown.console
        assert width == shown.number("document.documentElement.scrollWidth")
        assert 10 == shown.number("document.querySelectorAll('#timeline svg a rect').length")
        color = shown.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert {"light": "rgb(250, 250, 250)", "dark": "rgb(17, 20, 24)"}[scheme] == color
        lightest = shown.number(_CONTRAST)
        assert lightest >= 4.4, "text is hard to read"
        assert shown.number(SMALLEST) >= 11


_CONTRAST = """() => {
  const luminance = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((c) => c / 255)
      .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = getComputedStyle(one).backgroundColor;
      if (!/, 0\\)$/.test(color)) return color;
    }
    return "rgb(255, 255, 255)";
  };
  let least = 21;
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || element.closest("svg") || element.closest("title")) continue;
    const [a, b] = [luminance(getComputedStyle(element).color), luminance(behind(element))];
    least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return least;
}"""


def test_a_bar_leads_to_its_stage(browser: Browser, tmp_path: Path) -> None:
    """A bar unfolds the transcript of its stage, by mouse and keyboard."""
    with browser.show(write(tmp_path, report_of("finished"))) as shown:
        page = shown.page
        assert page.locator("#s3").is_hidden()
        page.locator("#timeline svg a").nth(3).click()
        page.locator("#s3").wait_for(state="visible")
        assert "pytest -q" in page.locator("#s3").inner_text()
        page.keyboard.press("Home")
        page.locator("#timeline svg a").nth(6).focus()
        page.keyboard.press("Enter")
        page.locator("#s6").wait_for(state="visible")
        assert [] == shown.console


def test_keyboard(browser: Browser, tmp_path: Path) -> None:
    """The first stop is the link to the report; folded parts open with Enter."""
    with browser.show(write(tmp_path, report_of("finished"))) as shown:
        page = shown.page
        page.keyboard.press("Tab")
        assert "#main" == page.evaluate("document.activeElement.getAttribute('href')")
        summary = page.locator("#stages summary").first
        summary.focus()
        page.keyboard.press("Enter")
        page.locator("#s0").wait_for(state="visible")
        assert "Read" in page.locator("#s0").inner_text()


def test_print(browser: Browser, tmp_path: Path) -> None:
    """On paper everything is unfolded, dark on white."""
    with browser.show(write(tmp_path, report_of("finished")), scheme="dark") as shown:
        shown.page.emulate_media(media="print")
        assert shown.page.locator("#s3").bounding_box()
        assert "rgb(255, 255, 255)" == shown.page.evaluate(
            "getComputedStyle(document.documentElement).backgroundColor"
        )


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_deliveries(browser: Browser, tmp_path: Path, width: int) -> None:
    """The sessions and deliverables of the deliverables loop fit into the page."""
    report = build_report(deliver(tmp_path, verify=True).entries)
    sessions = sum(stage.kind != "other" for stage in report.stages)
    with browser.show(write(tmp_path, report), width=width) as shown:
        assert [] == shown.console
        assert width == shown.number("document.documentElement.scrollWidth")
        assert sessions == shown.number("document.querySelectorAll('svg a').length")
        assert "2 of 3 deliverables passed" in shown.page.inner_text("h1")


@pytest.mark.parametrize("width", [WIDE, PHONE])
@pytest.mark.parametrize("kind", ["run", "deliver"])
def test_agent_text_is_inert(
    browser: Browser, tmp_path: Path, kind: Literal["run", "deliver"], width: int
) -> None:
    """Agent text creates no element, runs no script and loads nothing, also when unfolded."""
    with browser.show(write(tmp_path, hostile_report(kind=kind)), width=width) as shown:
        shown.page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
        assert [] == shown.console
        assert 0 == shown.number("document.querySelectorAll('script, img, iframe, form').length")
        assert shown.page.title().endswith("– cuggino")
        assert width == shown.number("document.documentElement.scrollWidth")
