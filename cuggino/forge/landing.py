"""The landing that the configuration selects."""

from __future__ import annotations

import shutil
from pathlib import Path

from cuggino.config import Config
from cuggino.errors import ConfigError
from cuggino.forge.api import INSTALLING, PROGRAMS
from cuggino.forge.finding import forge_of, remote_url
from cuggino.forge.model import Forge
from cuggino.forge.proposing import pull_requests
from cuggino.forge.redaction import Redaction
from cuggino.loops import Landing
from cuggino.storage import Origin, Origins, Workspace


def landing_of(
    config: Config, *, folder: Path, workspace: Workspace, redact: Redaction | None = None
) -> Landing | None:
    """Return the landing through pull requests; None if items land in another way.

    Raises:
        ConfigError: the remote, or the program of the forge, is missing.
    """
    if config.land_on != "pr":
        return None
    settings = config.pull_requests
    url = remote_url(folder, settings.remote)
    if url is None:
        raise ConfigError(
            f'"landOn": "pr" needs a git remote, and there is no {settings.remote}',
            hint=f"add one: git remote add {settings.remote} URL; "
            'or name another as "remote" of "pullRequests"',
        )
    forge = forge_of(settings, url, project=folder)
    program = PROGRAMS[forge.kind]
    if shutil.which(program) is None:
        raise ConfigError(
            f'"landOn": "pr" needs `{program}`, which is not installed', hint=INSTALLING[forge.kind]
        )
    origins = Origins(workspace)
    closing = {source.title for source in config.backlog_sources if source.close_issues}

    def closes(item: str) -> int | None:
        origin = origins.readable(item)
        if origin is None or origin.source not in closing or not _is_of(forge, origin):
            return None
        return origin.number

    def page(item: str) -> str:
        origin = origins.readable(item)
        return origin.url if origin is not None and origin.number is not None else ""

    return pull_requests(forge, settings, redact=redact, closes=closes, origin=page)


def _is_of(forge: Forge, origin: Origin) -> bool:
    """Return whether the item is an issue of the repository of the pull requests."""
    return origin.url.startswith(f"https://{forge.host}/{forge.repo}/")
