"""Notifications through Apprise: a misbehaving fake and the real library on loopback."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest
from reactivex import operators as ops, timer
from reactivex.scheduler import VirtualTimeScheduler

from cuggino import run
from cuggino.errors import ConfigError, CugginoError, install_extra
from cuggino.events import NotificationFailed, WatchEvent, WatchSpecIssueWaiting
from cuggino.notify import AppriseNotifier, with_notifications
from cuggino.testing import no_leaks
from tests.limits import LIMIT
from tests.processes.subscribers import eventually

SECRET = "geheim"


class FakeApprise:
    """A fake of the module: `behave(url, title)` decides the result of a notification."""

    def __init__(self, behave: Callable[[str, str], bool]) -> None:
        self._behave = behave
        self.NotifyFormat = SimpleNamespace(TEXT="text")

    def AppriseAsset(self, **_options: Any) -> object:  # noqa: N802 - the library's name
        return object()

    def Apprise(self, *, asset: object) -> Any:  # noqa: N802 - the library's name
        urls: list[str] = []

        def add(url: str) -> bool:
            urls.append(url)
            return not url.startswith("unknown")

        def notify(*, title: str, body: str, body_format: str) -> Any:
            assert "text" == body_format
            return _Result(all(self._behave(url, title) for url in urls), SECRET)

        return SimpleNamespace(add=add, notify=notify)


class _Result:
    def __init__(self, good: bool, words: str) -> None:
        self._good = good
        self._words = words

    def __bool__(self) -> bool:
        return self._good

    def logs(self) -> list[Any]:
        return [SimpleNamespace(message=f"Failed to reach {self._words}: error=503.")]


Fake = Callable[[Callable[[str, str], bool]], None]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Return a function that replaces Apprise with a fake."""

    def install(behave: Callable[[str, str], bool]) -> None:
        monkeypatch.setitem(sys.modules, "apprise", FakeApprise(behave))

    return install


def senders() -> list[str]:
    """Return the names of the threads that are still sending."""
    names = (thread.name for thread in threading.enumerate())
    return [name for name in names if name.startswith("cuggino-notify-")]


class Server(ThreadingHTTPServer):
    """An HTTP server that records posts and answers with `status`, or hangs while `hang` is set."""

    daemon_threads = True

    def __init__(self) -> None:
        self.posted: list[dict[str, Any]] = []
        self.status = 200
        self.hang = threading.Event()
        self.leave = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"json://user:{SECRET}@127.0.0.1:{self.server_address[1]}/{SECRET}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        self.server.posted.append(json.loads(self.rfile.read(size)))
        if self.server.hang.is_set():
            self.server.leave.wait(LIMIT)
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    """Provide a server on 127.0.0.1 for Apprise."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.leave.set()
        server.shutdown()
        thread.join()


def refused(notifier: AppriseNotifier) -> str:
    """Return the message of the failing notification."""
    with pytest.raises(CugginoError) as caught:
        run(notifier.notify("title", "body"))
    assert SECRET not in str(caught.value)
    return caught.value.message


class TestConstruction:
    def test_apprise_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without the library, construction fails with the package to install."""
        monkeypatch.setitem(sys.modules, "apprise", None)
        with pytest.raises(ConfigError) as caught:
            AppriseNotifier([f"ntfy://{SECRET}"])
        assert install_extra("notify") == caught.value.hint
        assert SECRET not in caught.value.message

    @pytest.mark.parametrize("url", [f"nothing://{SECRET}", f"slack://{SECRET}", "json://"])
    def test_unusable_url(self, url: str, capfd: pytest.CaptureFixture[str]) -> None:
        """An unknown or incomplete URL is reported by its scheme alone."""
        with pytest.raises(ConfigError) as caught:
            AppriseNotifier([url])
        scheme = url.partition("://")[0]
        assert f'"notify": Apprise cannot use the {scheme}:// URL' in caught.value.message
        assert SECRET not in f"{caught.value.message}{caught.value.hint}{capfd.readouterr()}"


class TestFake:
    def test_all_places_are_notified(self, fake: Fake) -> None:
        """A failing or raising place does not affect the others; both are named."""
        sent: list[str] = []

        def behave(url: str, title: str) -> bool:
            sent.append(url)
            if url.startswith("slack"):
                raise ValueError(url)
            return url.startswith("json")

        fake(behave)
        urls = [f"ntfy://{SECRET}", f"slack://{SECRET}", f"json://{SECRET}"]
        with no_leaks():
            message = refused(AppriseNotifier(urls))
        assert "not sent to ntfy (HTTP 503), slack (ValueError)" == message
        assert sorted(urls) == sorted(sent)

    def test_hanging_place_times_out(self, fake: Fake) -> None:
        """A hanging place is reported at the timeout; the others are notified without waiting."""
        leave, clock, failed = threading.Event(), VirtualTimeScheduler(), list[Exception]()
        fake(lambda url, _title: leave.wait(LIMIT) if url.startswith("slack") else True)
        with no_leaks():
            sending = AppriseNotifier(["slack://x", "json://x"], timeout=20).notify("title", "body")
            sending.subscribe(on_error=failed.append, scheduler=clock)
            assert eventually(lambda: ["cuggino-notify-slack"] == senders())
            clock.advance_to(60.0)
            leave.set()
        assert ["not sent to slack (no answer in 20 s)"] == [str(error) for error in failed]

    def test_timeout_uses_the_scheduler(self, fake: Fake) -> None:
        """The timeout runs on the scheduler given to `subscribe`, virtual or real."""
        leave = threading.Event()
        fake(lambda _url, _title: leave.wait(LIMIT))
        clock, failed = VirtualTimeScheduler(), list[float]()
        AppriseNotifier(["slack://x"]).notify("title", "body").subscribe(
            on_error=lambda _: failed.append(clock.clock), scheduler=clock
        )
        clock.advance_to(60.0)  # a clock that tracks threads would wait for this one
        leave.set()
        assert [30.0] == failed

    def test_disposal_waits_briefly(self, fake: Fake) -> None:
        """Disposal waits briefly, and the notification emits nothing more."""
        leave = threading.Event()
        fake(lambda _url, _title: leave.wait(LIMIT))
        with no_leaks():
            stream = AppriseNotifier(["slack://x"]).notify("title", "body")
            assert run(stream.pipe(ops.take_until(timer(0.1)))) is None
            assert ["cuggino-notify-slack"] == senders()
            leave.set()


class TestReal:
    def test_notification_arrives(self, server: Server) -> None:
        """Title and body are posted unchanged, and the library leaves nothing behind."""
        with no_leaks():
            assert run(AppriseNotifier([server.url]).notify("A <b>", "line 1\nline *2*")) is None
        posted = server.posted[0]
        assert ("A <b>", "line 1\nline *2*") == (posted["title"], posted["message"])

    def test_rejected_notification(self, server: Server, capfd: pytest.CaptureFixture[str]) -> None:
        """The HTTP status is reported; the URL is neither in the message nor on the terminal."""
        server.status = 403
        assert "not sent to json (HTTP 403)" == refused(AppriseNotifier([server.url]))
        assert SECRET not in "".join(capfd.readouterr())

    def test_missing_server(self) -> None:
        """A missing server is reported without its address."""
        url = f"json://user:{SECRET}@127.0.0.1:9/{SECRET}"
        assert "not sent to json (failed)" == refused(AppriseNotifier([url]))

    def test_watch_continues(self, server: Server) -> None:
        """A watch reports rejected notifications once, in its own stream."""
        server.status = 500
        waiting = WatchSpecIssueWaiting()
        source = timer(0, 0.3).pipe(ops.take(4), ops.map(lambda _: waiting))
        seen: list[WatchEvent] = []
        with no_leaks():
            run(source.pipe(with_notifications(AppriseNotifier([server.url]))), seen.append)
        assert 4 == seen.count(waiting)
        failed = [event for event in seen if event != waiting]
        assert [NotificationFailed(message="not sent to json (HTTP 500)")] == failed

    def test_hanging_server(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        """A hanging server does not delay events, and the end of a watch only briefly."""
        monkeypatch.setattr("cuggino.notify.operator.LAST_SECONDS", 0.2)
        server.hang.set()
        waiting = WatchSpecIssueWaiting()
        source = timer(0, 0.05).pipe(ops.take(10), ops.map(lambda _: waiting))
        seen: list[WatchEvent] = []
        with no_leaks():
            run(source.pipe(with_notifications(AppriseNotifier([server.url]))), seen.append)
            assert ["cuggino-notify-json"] == list(dict.fromkeys(senders()))
            assert [waiting] * 10 == seen
            server.leave.set()
