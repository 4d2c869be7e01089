"""The live page in a real browser: one stream, kills, other ports, and the security policy."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Page as Tab, expect

from tests.limits import LIMIT
from tests.ports import own_port
from tests.processes.subscribers import eventually
from tests.served_link import link_in
from tests.web.chromium import Chromium
from tests.web.journals import NOTE, Writer
from tests.web.server import Page

pytestmark = pytest.mark.usefixtures("plain")

NO_WORKER = "delete window.SharedWorker;"
_HIDE = """
Object.defineProperty(document, 'hidden', {value: %s, configurable: true});
document.dispatchEvent(new Event('visibilitychange'));
"""
"""Hides or shows a tab, as far as its page can tell."""


def _url(served: Page, run: Writer) -> str:
    site = served.server.app.site
    return served.origin + site.url("p", site.places[0].key, "runs", run.run_id)


def _tab(served: Page, run: Writer, chromium: Chromium, *, init: str = "") -> Tab:
    """Open the link, and then the page of a run in another tab."""
    chromium.tab(served.server.url).close()
    return chromium.tab(_url(served, run), init=init)


def _wait(tab: Tab, number: int) -> None:
    expect(tab.locator("#rows")).to_contain_text(f"note-{number}-")


def _notes(tab: Tab) -> list[int]:
    text = tab.locator("#rows").inner_text()
    return [int(number) for number in re.findall(NOTE, text)]


def test_twenty_tabs_share_one_stream(served: Page, run: Writer, chromium: Chromium) -> None:
    """A browser has six connections to a server: the seventh tab would hang without a worker."""
    run.note(0)
    chromium.tab(served.server.url).close()
    tabs = [chromium.tab(_url(served, run)) for _ in range(20)]
    hub = served.server.app.hub
    assert eventually(lambda: hub.streams == 1)
    for number in range(1, 4):
        run.note(number)
        for tab in tabs:
            _wait(tab, number)
    assert [[0, 1, 2, 3]] * 20 == [_notes(tab) for tab in tabs]
    assert eventually(lambda: hub.streams == 1)
    assert [] == [found for tab in tabs for found in chromium.violations(tab)]
    assert [] == chromium.console
    for tab in tabs:
        tab.close()
    assert eventually(lambda: hub.streams == 0)


def test_tabs_of_several_pages(served: Page, project: Path, chromium: Chromium) -> None:
    """Tabs of different runs and the overview share the stream, and get their own messages."""
    one, two = Writer(project), Writer(project)
    overview = chromium.tab(served.server.url)
    tabs = [chromium.tab(_url(served, run)) for run in (one, two)]
    one.note(1)
    two.note(2)
    _wait(tabs[0], 1)
    _wait(tabs[1], 2)
    assert [[1], [2]] == [_notes(tab) for tab in tabs]
    three = Writer(project)
    expect(overview.locator("#board li")).to_have_count(3)
    assert eventually(lambda: served.server.app.hub.streams == 1)
    for run in (one, two, three):
        run.close()


def test_late_tab_gets_what_lies_between(served: Page, run: Writer, chromium: Chromium) -> None:
    """Events that come between a tab's page and its script are not lost, nor shown twice."""
    early = _tab(served, run, chromium)
    run.note(1)
    _wait(early, 1)
    late = chromium.tab()

    def delay(route: object) -> None:
        run.note(2, 3)
        _wait(early, 3)
        route.continue_()  # type: ignore[attr-defined]

    late.route("**/live.js", delay)
    late.goto(_url(served, run))
    _wait(late, 3)
    run.note(4)
    for tab in (early, late):
        _wait(tab, 4)
        assert [1, 2, 3, 4] == _notes(tab)


def test_killed_and_resumed_run(served: Page, run: Writer, chromium: Chromium) -> None:
    """A run that is killed in the middle of a line and resumed has no gap and no double."""
    tab = _tab(served, run, chromium)
    run.note(1)
    _wait(tab, 1)
    resumed = run.killed()
    resumed.note(2, 3)
    _wait(tab, 3)
    assert [1, 2, 3] == _notes(tab)
    resumed.close()


def test_page_without_shared_workers(served: Page, run: Writer, chromium: Chromium) -> None:
    """Without shared workers a tab has its own stream, and none while it is hidden."""
    tab = _tab(served, run, chromium, init=NO_WORKER)
    hub = served.server.app.hub
    run.note(1)
    _wait(tab, 1)
    tab.evaluate(_HIDE % "true")
    assert eventually(lambda: hub.streams == 0)
    run.note(2)
    tab.evaluate(_HIDE % "false")
    _wait(tab, 2)
    assert [1, 2] == _notes(tab)
    assert [] == chromium.violations(tab)


def test_page_that_is_far_behind_reloads(served: Page, run: Writer, chromium: Chromium) -> None:
    """Thousands of events at once are not sent; the page is loaded again."""
    tab = _tab(served, run, chromium, init=NO_WORKER)
    run.note(1)
    _wait(tab, 1)
    tab.evaluate(_HIDE % "true")
    assert eventually(lambda: served.server.app.hub.streams == 0)
    run.note(*range(2, 3000))
    tab.evaluate("window.same = true")
    tab.evaluate(_HIDE % "false")
    _wait(tab, 2999)
    assert tab.evaluate("window.same") is None
    run.note(3000)
    _wait(tab, 3000)
    assert _notes(tab) == list(range(_notes(tab)[0], 3001))


def test_removed_journal_is_said(served: Page, run: Writer, chromium: Chromium) -> None:
    """A journal that is removed under its page is a sentence on it."""
    run.close()
    tab = _tab(served, run, chromium)
    expect(tab.locator("#live")).to_have_attribute("data-state", "live")
    run.path.unlink()
    expect(tab.locator("#live")).to_have_attribute("data-state", "gone")
    expect(tab.locator("#live")).to_contain_text("removed")


VECTORS = (
    "<script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "<svg onload=window.hit=1>",
    "</template><script>window.hit=1</script>",
    "</code></li></ol><img src=x onerror=window.hit=1>",
    '"><iframe srcdoc="<script>parent.hit=1</script>">',
    "<template><script>window.hit=1</script></template>",
    "<a href=javascript:window.hit=1>x</a>",
    "[x](javascript:window.hit=1)",
    "![x](x onerror=window.hit=1)",
    "\n\nevent: reload\ndata: r.shop\n\n",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<style>*{display:none}</style>",
    "<form action=//evil.example><input name=a autofocus onfocus=window.hit=1>",
    "\x00<\x00script>window.hit=1</script>",
    "&lt;script&gt;window.hit=1&lt;/script&gt;",
    "<math><mtext></template><img src=x onerror=window.hit=1>",
)


def test_text_of_agents_is_never_markup(served: Page, run: Writer, chromium: Chromium) -> None:
    """Scripts in a text neither run on a loaded page nor in a streamed fragment."""
    run.write(*VECTORS)
    tab = _tab(served, run, chromium)
    run.note(1)
    _wait(tab, 1)
    run.write(*VECTORS)
    run.note(2)
    _wait(tab, 2)
    tab.reload()
    assert tab.evaluate("window.hit") is None
    assert [] == chromium.violations(tab)
    assert 0 == tab.locator("#rows :is(script, img, svg, iframe, a, form, style, base)").count()
    assert [] == chromium.console


def test_policy_refuses_other_markup_and_scripts(served: Page, chromium: Chromium) -> None:
    """Even our own scripts can put no string into the page but through the one policy."""
    tab = chromium.tab(served.server.url)
    expect(tab.locator("#live")).to_have_attribute("data-state", "live")
    refused = tab.evaluate(
        """() => [
          () => { document.body.innerHTML = "<b>x</b>"; },
          () => { document.write("x"); },
          () => { trustedTypes.createPolicy("other", {createHTML: (text) => text}); },
          () => { trustedTypes.createPolicy("cuggino-live", {createHTML: (text) => text}); },
          () => { new SharedWorker("data:,1"); },
        ].filter((act) => { try { act(); return false; } catch { return true; } }).length"""
    )
    assert 5 == refused
    tab.evaluate(
        """() => { const style = document.createElement("style");
          style.textContent = "h1 {color: red}"; document.head.append(style); }"""
    )
    assert "rgb(255, 0, 0)" != tab.evaluate("getComputedStyle(document.querySelector('h1')).color")


_SUBMIT = """(url) => {
  const form = document.createElement("form");
  form.method = "post";
  form.action = url;
  document.body.append(form);
  form.submit();
}"""


class _Other(BaseHTTPRequestHandler):
    """A server of an agent, on another port of this machine."""

    def do_GET(self) -> None:
        self.server.seen.append(dict(self.headers))  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>other</title>")

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def _other_port() -> Iterator[tuple[str, list[dict[str, str]]]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Other)
    server.seen = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.seen  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_other_ports_get_neither_cookie_nor_way_in(served: Page, chromium: Chromium) -> None:
    """A server of an agent on another port gets no cookie, and its page can send us nothing."""
    entered = chromium.tab(served.server.url)
    with _other_port() as (url, seen):
        tab = chromium.tab(url)
        assert not [headers for headers in seen if "Cookie" in headers]
        target = served.origin + served.base
        answers = tab.evaluate(
            """async (url) => {
              const ask = (path, more) => fetch(url + path, {mode: "no-cors",
                credentials: "include", ...more}).then(() => "answered", () => "blocked");
              return [await ask("/"), await ask("/p/shop/control",
                {method: "POST", body: new URLSearchParams("a=b")})];
            }""",
            target,
        )
        assert ["blocked", "blocked"] == answers
        with tab.expect_navigation() as loaded:
            tab.evaluate(_SUBMIT, f"{target}/p/shop/control")
        assert 403 == loaded.value.status
        entered.goto(url)
        assert not [headers for headers in seen if served.base in str(headers)]


def test_form_of_our_page_is_accepted(served: Page, chromium: Chromium) -> None:
    """With the referrer policy of the page a browser sends the `Origin` that forms need."""
    tab = chromium.tab(served.server.url)
    with tab.expect_navigation() as loaded:
        tab.evaluate(_SUBMIT, f"{served.base}/no-such-action")
    assert 404 == loaded.value.status


def test_link_on_another_site(served: Page, chromium: Chromium) -> None:
    """The link also works where a person finds it in a chat or in a mail."""
    with _other_port() as (url, _):
        tab = chromium.tab(url)
        tab.evaluate("(url) => { location.href = url; }", served.server.url)
        expect(tab.locator("#live")).to_have_attribute("data-state", "live")
        assert f"{served.origin}{served.base}/" == tab.url


@contextlib.contextmanager
def _process(project: Path, state: Path, *args: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "cuggino_cli", "serve", *args],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "XDG_STATE_HOME": str(state)},
    )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            link = link_in(line)
            assert link is not None, line + process.stdout.read()
            yield process, link
        finally:
            process.kill()


def test_killed_server(project: Path, tmp_path: Path, chromium: Chromium) -> None:
    """Open pages show that their server was killed; the next one on its port rejects them."""
    Writer(project).close()
    port = str(own_port())
    with _process(project, tmp_path / "state", "--port", port) as (process, url):
        tab = chromium.tab(url)
        live = tab.locator("#live")
        expect(live).to_have_attribute("data-state", "live")
        process.send_signal(signal.SIGKILL)
        process.wait(LIMIT)
        expect(live).to_have_attribute("data-state", "waiting")
    with _process(project, tmp_path / "state", "--port", port) as (_, new):
        expect(live).to_have_attribute("data-state", "ended")
        expect(live).to_contain_text("open the link")
        tab.goto(new)
        expect(live).to_have_attribute("data-state", "live")
