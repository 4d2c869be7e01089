"""What `cuggino doctor` says of calling a person."""

from __future__ import annotations

from collections.abc import Iterator

from cuggino.config import CONFIG_FILE, Config
from cuggino.errors import ConfigError
from cuggino_cli.finding import Finding


def notifications(config: Config) -> Iterator[Finding]:
    """Whether Apprise is there for the URLs of `notify`, and knows them; nothing is sent.

    A problem, as `cuggino watch` does not start then. Without URLs there is nothing to find: the
    bell is the terminal's own.
    """
    ways = [config.notify] if isinstance(config.notify, str) else config.notify
    # What stands behind the scheme may be a password.
    schemes = [way.partition("://")[0] for way in ways if "://" in way]
    if not schemes:
        return
    from cuggino.notify import make_notifier

    try:
        make_notifier(config)
    except ConfigError as error:
        hint = f'for `cuggino watch`, {error.hint}, or set "notify" to "bell" in {CONFIG_FILE}'
        yield Finding("problem", f"notifications: {error.message}", hint)
        return
    yield Finding("ok", f"notifications: by Apprise ({', '.join(dict.fromkeys(schemes))})")
