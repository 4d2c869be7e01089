"""Finding the forge of a project: by its settings, or by its git remote."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from cuggino.config import BacklogSource, ForgeKind, PullRequestSettings
from cuggino.errors import ConfigError, ProcessError
from cuggino.forge.api import Api
from cuggino.forge.github import GitHub
from cuggino.forge.gitlab import GitLab
from cuggino.forge.model import Forge
from cuggino.git import Git
from cuggino.sandbox import outside_environment

_SCP = re.compile(r"(?:[^@/\s]+@)?(?P<host>[A-Za-z0-9.-]+):(?!/)(?P<path>.+)")
_OTHER_HOSTS = {"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com"}
"""Hosts that only answer SSH, on the port of HTTPS."""
_PUBLIC: dict[ForgeKind, str] = {"github": "github.com", "gitlab": "gitlab.com"}


class Place(NamedTuple):
    """A repository of a forge."""

    host: str
    repo: str


def forge_of(
    settings: BacklogSource | PullRequestSettings, url: str | None, *, project: Path | None = None
) -> Forge:
    """Return the forge that the settings name; `url` of the git remote supplies what they omit.

    Its program is never one of the `project`.

    Raises:
        ConfigError: neither names a repository, or the remote is on another forge.
    """
    place = place_of(url) if url else None
    kind = settings.type
    assert kind != "command"
    named = settings.host or (place.host if place else None)
    if kind is None:
        kind = "gitlab" if named is not None and "gitlab" in named else "github"
    if settings.host is None and (place is None or _is_elsewhere(kind, place.host)):
        place, named = None, _PUBLIC[kind]
    host = named or _PUBLIC[kind]
    repo = settings.repo or (place.repo if place and place.host == host else None)
    if repo is None:
        raise ConfigError(
            f"no repository on {host} is known: the git remote "
            + (f"is {_shown(url)}" if url else "does not exist"),
            hint='set "repo" to `owner/name`, and "host" if it is another one',
        )
    if kind == "github" and repo.count("/") != 1:
        raise ConfigError(f"{repo} is not a repository on {host}", hint="write it as `owner/name`")
    make = GitHub if kind == "github" else GitLab
    env = None if project is None else outside_environment(project)
    api = Api(kind, host, env=env)
    if isinstance(settings, PullRequestSettings):
        return make(repo, host=host, api=api)
    return make(repo, host=host, trust=settings.trust, label=settings.label, api=api)


def remote_url(folder: Path, remote: str = "origin") -> str | None:
    """Return the URL of a git remote, or None if it does not exist."""
    try:
        done = Git(cwd=folder).now("remote", "get-url", "--", remote)
    except ProcessError:
        return None
    return done.output.decode("utf-8", "replace").strip() or None if not done.code else None


def place_of(url: str) -> Place | None:
    """Return the repository at the URL of a git remote; None for a local path.

    >>> place_of("git@github.com:owner/name.git")
    Place(host='github.com', repo='owner/name')
    """
    if "://" in url:
        try:
            parts = urlsplit(url)
            host, port, path = parts.hostname, parts.port, parts.path
        except ValueError:
            return None
        if parts.scheme not in ("https", "http", "ssh", "git", "git+ssh", "ssh+git") or not host:
            return None
        if port is not None and parts.scheme in ("https", "http"):  # the SSH port is not the API's
            host = f"{host}:{port}"
    elif found := _SCP.fullmatch(url):
        host, path = found["host"].lower(), found["path"]
    else:
        return None
    repo = path.strip("/").removesuffix(".git").strip("/")
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)+", repo, re.ASCII):
        return None
    return Place(_OTHER_HOSTS.get(host, host), repo)


def _is_elsewhere(kind: ForgeKind, host: str) -> bool:
    """Return whether the host is known to be another kind of forge."""
    if kind == "github":
        return "gitlab" in host
    return host == "github.com"


def _shown(url: str | None) -> str:
    """Return a URL without its password."""
    return re.sub(r"(?<=://)[^@/]*@", "", url or "")
