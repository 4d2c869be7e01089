"""A real Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, BrowserContext, Page as Tab, expect, sync_playwright

from tests.limits import LIMIT

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""


@dataclass
class Chromium:
    """A browser with one profile, whose tabs share cookies and workers."""

    browser: Browser
    context: BrowserContext
    console: list[str] = field(default_factory=list)
    """Errors and warnings of all tabs."""

    def tab(self, url: str = "", *, init: str = "") -> Tab:
        """Open a tab, which records what its content security policy refuses."""
        tab = self.context.new_page()
        tab.add_init_script(_WATCH + init)
        tab.on("console", self._note)
        tab.on("pageerror", lambda error: self.console.append(str(error)))
        if url:
            tab.goto(url)
        return tab

    def _note(self, message: object) -> None:
        kind, text = getattr(message, "type", ""), getattr(message, "text", "")
        if kind in ("error", "warning"):
            self.console.append(text)

    @staticmethod
    def violations(tab: Tab) -> list[str]:
        """Return what the content security policy has refused in a tab."""
        found: list[str] = tab.evaluate("window.violations")
        return found


def program() -> str | None:
    """Return the machine's Chromium, if there is one."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


@pytest.fixture
def chromium() -> Iterator[Chromium]:
    """Start the machine's Chromium with a new profile; skip without one, but fail on CI."""
    if (path := program()) is None:
        if os.environ.get("CI") == "true":
            pytest.fail("the live page must be tested in a real browser on CI")
        pytest.skip("Chromium is not installed")
    options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    limit = LIMIT * 1000
    expect.set_options(timeout=limit)  # five seconds may be short on a busy machine
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=options, timeout=limit)
        try:
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            context.set_default_timeout(limit)
            yield Chromium(browser, context)
            context.close()
        finally:
            browser.close()
