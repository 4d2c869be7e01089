"""The notifier of a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from reactivex import Observable, concat, defer, empty, operators as ops, throw

from cuggino.config import Config
from cuggino.errors import CugginoError
from cuggino.notify.apprise import AppriseNotifier
from cuggino.notify.command import CommandNotifier
from cuggino.operators.merge_now import merge_now
from cuggino.sandbox import Views


class Notifier(Protocol):
    """A way to notify a person."""

    def notify(self, title: str, body: str) -> Observable[Any]:
        """Send; a cold stream that emits nothing and completes when the message was sent.

        It must use the scheduler given to `subscribe`. Errors: any; the error's message is shown.
        """


class SilentNotifier:
    """A notifier that does nothing."""

    def notify(self, title: str, body: str) -> Observable[Any]:
        return empty()


class SeveralNotifiers:
    """Several notifiers at the same time; a failing one does not block the others."""

    def __init__(self, *notifiers: Notifier) -> None:
        self._notifiers = notifiers

    def notify(self, title: str, body: str) -> Observable[Any]:
        """Send by all of them; fail with all failures together."""

        def send(_scheduler: object) -> Observable[Any]:
            problems: list[str] = []

            def note(error: Exception, _source: object) -> Observable[Any]:
                problems.append(str(error) or type(error).__name__)
                return empty()

            def failures(_scheduler: object) -> Observable[Any]:
                return throw(CugginoError("; ".join(problems))) if problems else empty()

            each = (one.notify(title, body).pipe(ops.catch(note)) for one in self._notifiers)
            return concat(merge_now(*each), defer(failures))

        return defer(send)


def make_notifier(
    config: Config, *, cwd: Path | None = None, views: Views | None = None
) -> Notifier:
    """Return the notifier of the configuration; the bell is the terminal's own (`rings`).

    The command runs in `cwd`, by default the working directory, in the view of commands if there
    are `views`.

    Raises:
        ConfigError: Apprise is required but not installed, or a URL is invalid.
    """
    settings = config.notifications
    ways = [settings.to] if isinstance(settings.to, str) else settings.to
    urls = [way for way in ways if way not in ("bell", "none")]
    made: list[Notifier] = [AppriseNotifier(urls)] if urls else []
    if settings.command is not None:
        made.append(CommandNotifier(settings.command, cwd=cwd or Path.cwd(), views=views))
    if len(made) == 1:
        return made[0]
    return SeveralNotifiers(*made) if made else SilentNotifier()


def rings(config: Config) -> bool:
    """Return whether the terminal's bell rings when a person is needed."""
    return config.rings
