"""A way to call a person."""

from __future__ import annotations

from typing import Any, Protocol

from reactivex import Observable, empty


class Notifier(Protocol):
    """A way to call a person."""

    def notify(self, title: str, body: str) -> Observable[Any]:
        """Send; a cold stream that emits nothing and completes when it was sent.

        It must be on the scheduler given to `subscribe`. Errors: any; the message is shown.
        """


class SilentNotifier:
    """Calls nobody."""

    def notify(self, title: str, body: str) -> Observable[Any]:
        """Complete at once."""
        return empty()
