"""The picture of the live page in the README: a real watch of scripted agents with three slots.

`make_page` plays it in a temporary folder and photographs the overview in the machine's Chromium.
Two items have landed, one is checked before it lands, three are at work, and one asks.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import FloatRect, Page, expect, sync_playwright
from reactivex import Observable

from cuggino.agents.base import SpawnOptions
from cuggino.agents.scripted import ScriptedAgent
from cuggino.events import LlmAgentEvent
from cuggino.storage import Workspace, attempt_of, served_page
from tests.endurance.place import Place
from tests.web.chromium import program

PAGE = "cuggino_cli/demo/page.png"

_WIDTH = 1100
_SECONDS = 60
_ITEMS = {
    "001-login": "Login page",
    "002-search": "Search in the catalog",
    "003-reset": "Password reset",
    "004-orders": "Order history",
    "005-invoices": "Invoices in PDF",
    "006-export": "Export orders as CSV",
    "007-limits": "Limit login attempts",
    "008-stock": "Show what is in stock",
    "009-mail": "Confirm orders by mail",
}
_MAKEFILE = """\
check:
	@if [ "$$CUGGINO_SLOT" = 0 ] && [ $$(ls *.py | wc -l) = 3 ]; then sleep 600; fi
test e2e routes:
	@sleep 600
"""
_SCENARIO = """
repeat = true
pause = 0.2

[[planning]]
cost_usd = 0.08
[[planning.steps]]
say = "I read the specification first."
%s
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan\\n\\n## Task 1: TITLE\\n"
[[planning.steps]]
say = "<PLAN_COMPLETE>One task.</PLAN_COMPLETE>"

[[implementing]]
cost_usd = 0.31
[[implementing.steps]]
say = "Now the code."
[[implementing.steps]]
write = "NAME.py"
text = "def page() -> str:\\n    return 'TITLE'\\n"
%s
[[implementing.steps]]
say = "<DONE>TITLE</DONE>"

[[reviewing]]
cost_usd = 0.12
%s
[[reviewing.steps]]
say = "<APPROVED>As specified.</APPROVED>"
"""
_LONG = '[[{role}.steps]]\nsay = "{say}"\n[[{role}.steps]]\nrun = "{run}"'
_AT_WORK = {
    "004-orders": ("", _LONG.format(role="implementing", say="Tests next.", run="make test"), ""),
    "005-invoices": (
        '[[planning.steps]]\nsay = "<SPEC_ISSUE># PDF, or no new dependency?</SPEC_ISSUE>"',
        "",
        "",
    ),
    "006-export": (
        "",
        "",
        _LONG.format(role="reviewing", say="I compare it with the specs.", run="make e2e"),
    ),
    "007-limits": (
        _LONG.format(role="planning", say="Which pages log in?", run="make routes"),
        "",
        "",
    ),
}


class ShopAgent(ScriptedAgent):
    """Plays the scenario of the item at work."""

    def __init__(self) -> None:
        self._work = Path(os.environ["SHOP"])
        super().__init__(self._work / "001-login.toml")
        self._agents: dict[str, ScriptedAgent] = {}

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Spawn a session of the scenario."""
        attempt = attempt_of(Workspace(options.cwd)).readable()
        item = attempt.item.rpartition(".md ")[0] if attempt is not None else ""
        if item not in self._agents:
            self._agents[item] = ScriptedAgent(self._work / f"{item}.toml")
        return self._agents[item].spawn(options)


def make_page() -> bytes:
    """Return the picture as PNG."""
    with (
        tempfile.TemporaryDirectory(prefix="cuggino-page-") as place,
        _watch(Path(place).resolve()) as url,
        _browser() as tab,
    ):
        tab.goto(url)
        expect.set_options(timeout=_SECONDS * 1000)
        expect(tab.locator(".column.done li")).to_have_count(2)
        expect(tab.locator(".column.landing li")).to_have_count(1)
        for text in ("Question of Invoices", "Tests next.", "I compare", "Which pages"):
            expect(tab.locator("body")).to_contain_text(text)
        board = tab.locator(".board").bounding_box()
        assert board is not None
        clip = FloatRect(x=0, y=0, width=_WIDTH, height=board["y"] + board["height"] + 12)
        return tab.screenshot(full_page=True, clip=clip)


@contextmanager
def _watch(root: Path) -> Iterator[str]:
    """Start the watch; yield the link of its page."""
    settings = {
        "checkCommand": "make check",
        "commit": True,
        "notify": "none",
        "sandbox": "off",
        "slots": 3,
        "settleSeconds": 0.1,
    }
    files = {
        ".specs/shop.md": "# Shop\n\nPages for customers.\n",
        "Makefile": _MAKEFILE,
        ".gitignore": ".cuggino\n",
        ".cuggino.json": json.dumps(settings),
    }
    shop, home = Place(root, files, name="shop"), root / "home"
    shop.env |= {"SHOP": str(home), "XDG_STATE_HOME": str(home / "state")}
    shop.workspace.backlog.mkdir(parents=True)
    for item, title in _ITEMS.items():
        scenario = _SCENARIO % _AT_WORK.get(item, ("", "", ""))
        scenario = scenario.replace("TITLE", title).replace("NAME", item[4:])
        (home / f"{item}.toml").write_text(scenario)
        (shop.workspace.backlog / f"{item}.md").write_text(f"# {title}\n")
    agent = f"{ShopAgent.__module__}:{ShopAgent.__qualname__}"
    with shop.start("watch", "--serve", "--agent", agent) as watch:
        state = home / "state" / "cuggino"
        watch.until(lambda: served_page(shop.folder, state=state) is not None)
        link = served_page(shop.folder, state=state)
        if link is None:
            raise RuntimeError(watch.errors)
        try:
            yield link
        finally:
            watch.interrupt()


@contextmanager
def _browser() -> Iterator[Page]:
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=program(), args=options)
        try:
            yield browser.new_context(
                viewport={"width": _WIDTH, "height": 900}, color_scheme="light"
            ).new_page()
        finally:
            browser.close()
