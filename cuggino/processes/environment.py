"""The environment of this process."""

from __future__ import annotations

import os

_copied: tuple[dict[bytes, bytes], dict[str, str]] | None = None


def current_environment() -> dict[str, str]:
    """Return a copy of the environment, which is decoded again only after a change.

    `dict(os.environ)` decodes every variable, for each process that is started.
    """
    global _copied
    raw: dict[bytes, bytes] | None = getattr(os.environ, "_data", None)
    if raw is None:
        return dict(os.environ)
    if _copied is None or _copied[0] != raw:
        _copied = (dict(raw), dict(os.environ))
    return dict(_copied[1])
