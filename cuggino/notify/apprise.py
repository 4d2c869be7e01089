"""Notifications through the Apprise library."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SerialDisposable
from reactivex.internal.exceptions import DisposedException

from cuggino.config import CONFIG_FILE
from cuggino.errors import ConfigError, CugginoError, install_extra
from cuggino.operators.scheduler import serial

TIMEOUT = 30.0
"""Seconds that sending one notification may take."""

JOIN_LIMIT = 0.5
"""Seconds that a disposal waits for notifications being sent."""

Send = Callable[[str, str], str | None]
"""Send title and body on the calling thread; return the error, or None."""


class AppriseNotifier:
    """A notifier for Apprise URLs (desktop, ntfy, Slack, mail, ...), all of them at once.

    Each URL has its own helper thread for at most `timeout` seconds: one that hangs does not block
    the others and is abandoned (a daemon thread). Errors of `notify`: `CugginoError`, naming the
    schemes that failed.

    Raises:
        ConfigError: Apprise is not installed, or a URL is invalid.
    """

    def __init__(self, urls: Iterable[str], *, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._sends = [(_scheme(url), _apprise(url)) for url in urls]

    def notify(self, title: str, body: str) -> Observable[Any]:
        """Send to all URLs; complete when all succeed, or fail with those that did not."""

        def subscribe(
            observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            sending = _Sending(self._sends, observer, serial(scheduler))
            sending.begin(title, body, self._timeout)
            return Disposable(sending.dispose)

        return Observable(subscribe)


class _Sending:
    """One notification being sent: one thread per URL, one lane for the outcome."""

    def __init__(
        self,
        sends: Iterable[tuple[str, Send]],
        observer: abc.ObserverBase[Any],
        lane: abc.SchedulerBase,
    ) -> None:
        self._sends = list(sends)
        self._observer = observer
        self._lane = lane
        self._outcomes: dict[int, str | None] = {}
        self._threads: list[threading.Thread] = []
        self._alarm = SerialDisposable()
        self._ended = False

    def begin(self, title: str, body: str, timeout: float) -> None:
        late = f"no answer in {timeout:g} s"

        def alarm(*_: Any) -> None:
            for number in range(len(self._sends)):
                self._outcomes.setdefault(number, late)
            self._finish()

        self._alarm.disposable = self._lane.schedule_relative(timeout, alarm)
        for number, (scheme, send) in enumerate(self._sends):
            thread = threading.Thread(
                target=self._work,
                args=(number, send, title, body),
                name=f"cuggino-notify-{scheme}",
                daemon=True,
            )
            self._threads.append(thread)
            thread.start()

    def dispose(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._alarm.dispose()
        deadline = time.monotonic() + JOIN_LIMIT
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self, number: int, send: Send, title: str, body: str) -> None:
        """Send on a helper thread, and post the outcome."""
        try:
            problem = send(title, body)
        except Exception as error:  # its message may contain the URL
            problem = type(error).__name__

        def told(*_: Any) -> None:
            self._outcomes.setdefault(number, problem)
            if len(self._outcomes) == len(self._sends):
                self._finish()

        with suppress(DisposedException):  # the lane has ended
            self._lane.schedule(told)

    def _finish(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._alarm.dispose()
        problems = [
            f"{scheme} ({problem})"
            for number, (scheme, _) in enumerate(self._sends)
            if (problem := self._outcomes[number]) is not None
        ]
        if problems:
            self._observer.on_error(CugginoError(f"not sent to {', '.join(problems)}"))
        else:
            self._observer.on_completed()


def _scheme(url: str) -> str:
    """Return the only part of a URL that may be shown; the rest may be a password."""
    return url.partition("://")[0]


def _apprise(url: str) -> Send:
    """Return the function that sends to the URL.

    Raises:
        ConfigError: Apprise is not installed, or the URL is invalid.
    """
    try:
        import apprise
    except ImportError as error:
        raise ConfigError(
            '"notify" has Apprise URLs, but Apprise is not installed',
            hint=install_extra("notify"),
        ) from error
    # Run on our thread: Apprise's own threads would keep the interpreter from exiting.
    asset = apprise.AppriseAsset(async_mode=False, service_timeout=0)
    place = apprise.Apprise(asset=asset)
    if not place.add(url):
        raise ConfigError(
            f'{CONFIG_FILE}: "notify": Apprise cannot use the {_scheme(url)}:// URL',
            hint="see https://appriseit.com for the URLs of services",
        )

    def send(title: str, body: str) -> str | None:
        result = place.notify(title=title, body=body, body_format=apprise.NotifyFormat.TEXT)
        return None if result else _reason(result.logs())

    return send


def _reason(logs: Iterable[Any]) -> str:
    """Return only the number of an HTTP error; a service's message may contain its URL."""
    found = re.search(r"\berror=(\d{3})\b", " ".join(str(entry.message) for entry in logs))
    return f"HTTP {found[1]}" if found else "failed"
