"""The forge of a project, by its settings and its git remote."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from cuggino.config import BacklogSource, PullRequestSettings
from cuggino.errors import ConfigError
from cuggino.forge.finding import forge_of, place_of, remote_url


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://github.com/o/r.git", ("github.com", "o/r")),
        ("https://github.com/o/r", ("github.com", "o/r")),
        ("https://github.com/o/r/", ("github.com", "o/r")),
        ("https://user:secret@github.com/o/r.git", ("github.com", "o/r")),
        ("https://git.example.com:8443/o/r.git", ("git.example.com:8443", "o/r")),
        ("http://localhost:3000/o/r.git", ("localhost:3000", "o/r")),
        ("git@github.com:o/r.git", ("github.com", "o/r")),
        ("github.com:o/r", ("github.com", "o/r")),
        ("ssh://git@github.com/o/r.git", ("github.com", "o/r")),
        ("ssh://git@git.example.com:2222/o/r.git", ("git.example.com", "o/r")),
        ("ssh://git@ssh.github.com:443/o/r.git", ("github.com", "o/r")),
        ("git@altssh.gitlab.com:group/sub/r.git", ("gitlab.com", "group/sub/r")),
        ("https://gitlab.com/group/sub/r.git", ("gitlab.com", "group/sub/r")),
        ("git://github.com/o/r.git", ("github.com", "o/r")),
        ("https://GitHub.com/o/r.name.git", ("github.com", "o/r.name")),
    ],
)
def test_the_address_of_a_remote_names_a_repository(url: str, place: tuple[str, str]) -> None:
    assert place_of(url) == place


@pytest.mark.parametrize(
    "url",
    [
        *("/srv/git/r.git", "../r.git", "file:///srv/git/r.git", "https://github.com/"),
        *("https://github.com/o", "https://[github.com/o/r", "git@host:", "https:///o/r"),
        "git@github.com:o/r;rm",
    ],
)
def test_a_local_or_strange_address_names_none(url: str) -> None:
    assert place_of(url) is None


def source(**more: Any) -> BacklogSource:
    return BacklogSource(**{"type": "github", "label": "agent", **more})


@pytest.mark.parametrize(
    ("settings", "url", "found"),
    [
        (PullRequestSettings(), "git@github.com:o/r.git", ("github", "github.com", "o/r")),
        (PullRequestSettings(), "git@gitlab.com:g/s/r.git", ("gitlab", "gitlab.com", "g/s/r")),
        (
            PullRequestSettings(),
            "https://gitlab.example.com/o/r",
            ("gitlab", "gitlab.example.com", "o/r"),
        ),
        (PullRequestSettings(), "git@git.example.com:o/r", ("github", "git.example.com", "o/r")),
        (
            PullRequestSettings(type="gitlab"),
            "git@git.example.com:o/r",
            ("gitlab", "git.example.com", "o/r"),
        ),
        (PullRequestSettings(repo="a/b"), "/srv/r.git", ("github", "github.com", "a/b")),
        (
            PullRequestSettings(repo="a/b", host="ghe.example.com"),
            None,
            ("github", "ghe.example.com", "a/b"),
        ),
        (source(), "git@github.com:o/r.git", ("github", "github.com", "o/r")),
        (source(repo="a/b"), "git@gitlab.com:o/r.git", ("github", "github.com", "a/b")),
        (
            source(type="gitlab", repo="a/b"),
            "git@github.com:o/r",
            ("gitlab", "gitlab.com", "a/b"),
        ),
        (source(host="github.com"), "git@github.com:o/r.git", ("github", "github.com", "o/r")),
    ],
)
def test_settings_come_before_the_remote(
    settings: Any, url: str | None, found: tuple[str, str, str]
) -> None:
    forge = forge_of(settings, url)
    assert (forge.kind, forge.host, forge.repo) == found


@pytest.mark.parametrize(
    ("settings", "url", "message"),
    [
        (source(), None, "no repository on github.com is known: the git remote does not exist"),
        (source(), "/srv/r.git", "no repository on github.com is known: the git remote is /srv"),
        (source(type="gitlab"), "git@github.com:o/r", "no repository on gitlab.com is known"),
        (source(host="ghe.example.com"), "git@github.com:o/r", "no repository on ghe.example.com"),
        (source(repo="a/b/c"), None, "a/b/c is not a repository on github.com"),
    ],
)
def test_an_unknown_repository_is_a_configuration_error(
    settings: Any, url: str | None, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        forge_of(settings, url)


def test_a_password_in_the_remote_is_not_shown() -> None:
    with pytest.raises(ConfigError) as raised:
        forge_of(source(type="gitlab"), "https://me:secret@github.com/o/r.git")
    assert "secret" not in raised.value.message


def test_the_remote_is_read_from_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert remote_url(tmp_path) is None
    for words in (
        ("remote", "add", "origin", "gh:o/r.git"),
        ("config", "url.git@github.com:.insteadOf", "gh:"),
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    assert remote_url(tmp_path) == "git@github.com:o/r.git"
    assert remote_url(tmp_path, "upstream") is None
