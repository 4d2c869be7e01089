"""`cuggino doctor` on notifications."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cuggino.config import Config, save_config
from cuggino.doctor.result import CheckResult
from cuggino.errors import install_extra
from tests.cli.cli import Cli
from tests.cli.looking import look

OR_BELL = 'or set "notify" to "bell" in .cuggino.json'


@pytest.fixture
def no_apprise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make Apprise impossible to import."""
    monkeypatch.setitem(sys.modules, "apprise", None)


@pytest.mark.parametrize("ways", ["bell", "none", [], ["bell", "none"]])
def test_without_urls(ways: str | list[str], no_apprise: None) -> None:
    """Without URLs nothing is required."""
    assert [] == look("notifications", Path(), notify=ways)


@pytest.mark.parametrize("ways", ["ntfy://topic", ["bell", "ntfy://user:geheim@host/topic"]])
def test_apprise_is_missing(ways: str | list[str], no_apprise: None) -> None:
    """URLs without Apprise are a problem, with what to install."""
    expected = CheckResult(
        "problem",
        'notifications: "notify" has Apprise URLs, but Apprise is not installed',
        f"{install_extra('notify')}, {OR_BELL}",
    )
    assert [expected] == look("notifications", Path(), notify=ways)


def test_an_unknown_url() -> None:
    """A URL that Apprise rejects is a problem that shows only its scheme."""
    pytest.importorskip("apprise")
    (found,) = look("notifications", Path(), notify=["ntfy://topic", "nonsense://geheim"])
    assert "problem" == found.status
    assert "Apprise cannot use the nonsense:// URL" in found.what
    assert "geheim" not in f"{found}"


def test_apprise_is_installed() -> None:
    """Known URLs are listed by scheme, each once."""
    pytest.importorskip("apprise")
    urls = ["bell", "ntfy://topic", "json://user:geheim@host", "ntfy://other"]
    expected = CheckResult("ok", "notifications: by Apprise (ntfy, json)")
    assert [expected] == look("notifications", Path(), notify=urls)


def test_the_command(ready: Path, no_apprise: None, cli: Cli) -> None:
    """Problems with notifications count in the exit code of the command."""
    save_config(ready, Config(agent="scripted:scenario.toml", notify="ntfy://topic"))
    lines = cli("doctor", code=1).splitlines()
    assert 1 == sum(line.startswith("problem  notifications: ") for line in lines)
    assert "1 problem." == lines[-1]
