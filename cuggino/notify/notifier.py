"""The notifier of a configuration."""

from __future__ import annotations

from typing import Any, Protocol

from reactivex import Observable, empty

from cuggino.config import Config
from cuggino.notify.apprise import AppriseNotifier


class Notifier(Protocol):
    """A way to notify a person."""

    def notify(self, title: str, body: str) -> Observable[Any]:
        """Send; a cold stream that emits nothing and completes when it was sent.

        It must use the scheduler given to `subscribe`. Errors: any; the message is shown.
        """


class SilentNotifier:
    """A notifier that does nothing."""

    def notify(self, title: str, body: str) -> Observable[Any]:
        """Complete at once."""
        return empty()


def make_notifier(config: Config) -> Notifier:
    """Return the notifier of the configuration; the bell is the terminal's own (`rings`).

    Raises:
        ConfigError: Apprise is required and not installed, or a URL is invalid.
    """
    urls = [way for way in _ways(config) if way not in ("bell", "none")]
    return AppriseNotifier(urls) if urls else SilentNotifier()


def rings(config: Config) -> bool:
    """Return whether the terminal's bell rings when a person is needed."""
    return "bell" in _ways(config)


def _ways(config: Config) -> list[str]:
    return [config.notify] if isinstance(config.notify, str) else config.notify
