"""Which ways of calling a person a configuration asks for."""

from __future__ import annotations

from cuggino.config import Config
from cuggino.notify.apprise import AppriseNotifier
from cuggino.notify.notifier import Notifier, SilentNotifier


def make_notifier(config: Config) -> Notifier:
    """The notifier that the configuration asks for; the bell is the terminal's own (`rings`).

    Raises:
        ConfigError: Apprise is needed and not installed, or does not know a URL.
    """
    urls = [way for way in _ways(config) if way not in ("bell", "none")]
    return AppriseNotifier(urls) if urls else SilentNotifier()


def rings(config: Config) -> bool:
    """Whether the terminal's bell rings when a person is needed."""
    return "bell" in _ways(config)


def _ways(config: Config) -> list[str]:
    return [config.notify] if isinstance(config.notify, str) else config.notify
