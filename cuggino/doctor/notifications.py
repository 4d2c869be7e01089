"""Check of the notifications."""

from __future__ import annotations

from collections.abc import Iterator

from cuggino.config import CONFIG_FILE, Config
from cuggino.doctor.result import CheckResult
from cuggino.errors import ConfigError
from cuggino.notify import make_notifier


def notifications(config: Config) -> Iterator[CheckResult]:
    """Check that Apprise is installed and accepts the URLs of `notify`; nothing is sent.

    A failure is a problem because no loop starts then. Without URLs there is
    nothing to check.
    """
    given = config.notifications.to
    ways = [given] if isinstance(given, str) else given
    # What follows the scheme may be a password.
    schemes = [way.partition("://")[0] for way in ways if "://" in way]
    if not schemes:
        return

    try:
        make_notifier(config)
    except ConfigError as error:
        hint = f'{error.hint}, or set "notify" to "bell" in {CONFIG_FILE}'
        yield CheckResult("problem", f"notifications: {error.message}", hint)
        return
    yield CheckResult("ok", f"notifications: by Apprise ({', '.join(dict.fromkeys(schemes))})")
