"""A headless Chromium that shows a page as a person's browser would."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from tests.limits import LIMIT

if TYPE_CHECKING:
    from playwright.sync_api import Page, Playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_ON_MAC = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
_TIMEOUT = LIMIT * 1000

WIDE, PHONE = 1280, 390
"""The widths, in pixels, in which pages are looked at."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A page that is open."""

    page: Page
    console: list[str]
    """Console output, script errors and blocked requests."""

    def texts(self, selector: str) -> list[str]:
        """Return the text of each element."""
        return self.page.locator(selector).all_inner_texts()

    def number(self, script: str) -> float:
        """Return a number by a script of the test, which the page's own policy does not bind."""
        return float(self.page.evaluate(script))


@dataclass(frozen=True, slots=True)
class Browser:
    """Chromium of the machine; each page has its own profile."""

    playwright: Playwright
    program: str

    @contextmanager
    def show(
        self, path: Path, *, width: int = WIDE, scheme: Literal["light", "dark"] = "light"
    ) -> Iterator[Shown]:
        """Open the file, without a network."""
        browser = self.playwright.chromium.launch(
            executable_path=self.program,
            args=["--no-sandbox", "--disable-dev-shm-usage"],  # root, containers
            timeout=_TIMEOUT,
        )
        try:
            context = browser.new_context(
                viewport={"width": width, "height": 844}, color_scheme=scheme, offline=True
            )
            page = context.new_page()
            page.set_default_timeout(_TIMEOUT)
            console: list[str] = []
            page.on("console", lambda message: console.append(message.text))
            page.on("pageerror", lambda error: console.append(str(error)))
            page.on("requestfailed", lambda request: console.append(request.url))
            page.goto(path.resolve().as_uri())
            yield Shown(page, console)
        finally:
            browser.close()


def find_browser() -> str | None:
    """Return the installed Chromium-like browser, if any."""
    found = (shutil.which(name) for name in _NAMES)
    on_mac = (path for path in _ON_MAC if Path(path).exists())
    return next((path for path in (*found, *on_mac) if path), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return the browser; skip without one, but fail on CI, which requires it."""
    sync_api = pytest.importorskip("playwright.sync_api")
    program = find_browser()
    if program is None:
        reason = "no Chromium or Chrome is installed"
        if os.environ.get("CI") == "true":
            pytest.fail(f"the report must be looked at on CI: {reason}")
        pytest.skip(reason)
    with sync_api.sync_playwright() as playwright:
        yield Browser(playwright, program)
