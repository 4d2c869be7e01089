"""What `cuggino doctor` says of calling a person."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cuggino.config import Config, save_config
from cuggino_cli.finding import Finding
from cuggino_cli.main import main
from cuggino_cli.notify_checks import notifications

OR_BELL = 'or set "notify" to "bell" in .cuggino.json'


@pytest.fixture
def no_apprise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Apprise cannot be imported."""
    monkeypatch.setitem(sys.modules, "apprise", None)


@pytest.mark.parametrize("ways", ["bell", "none", [], ["bell", "none"]])
def test_without_urls(ways: str | list[str], no_apprise: None) -> None:
    """Where nothing is sent to, nothing is missing."""
    assert [] == list(notifications(Config(notify=ways)))


@pytest.mark.parametrize("ways", ["ntfy://topic", ["bell", "ntfy://user:geheim@host/topic"]])
def test_apprise_is_missing(ways: str | list[str], no_apprise: None) -> None:
    """URLs without Apprise are a problem, with what to install."""
    expected = Finding(
        "problem",
        'notifications: "notify" has Apprise URLs, but Apprise is not installed',
        f"for `cuggino watch`, pip install 'cuggino[notify]', {OR_BELL}",
    )
    assert [expected] == list(notifications(Config(notify=ways)))


def test_a_url_that_is_not_known() -> None:
    """A URL that Apprise cannot use is a problem, and no more of it is shown than its scheme."""
    pytest.importorskip("apprise")
    (found,) = notifications(Config(notify=["ntfy://topic", "nonsense://geheim"]))
    assert "problem" == found.status
    assert "Apprise cannot use the nonsense:// URL" in found.what
    assert "geheim" not in f"{found}"


def test_apprise_is_there() -> None:
    """URLs that it knows are told by their schemes, each once."""
    pytest.importorskip("apprise")
    urls = ["bell", "ntfy://topic", "json://user:geheim@host", "ntfy://other"]
    expected = Finding("ok", "notifications: by Apprise (ntfy, json)")
    assert [expected] == list(notifications(Config(notify=urls)))


def test_the_command(ready: Path, no_apprise: None, capsys: pytest.CaptureFixture[str]) -> None:
    """It is one of the problems that doctor counts."""
    save_config(ready, Config(agent="scripted:scenario.toml", notify="ntfy://topic"))
    assert 1 == main(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    assert 1 == sum(line.startswith("problem  notifications: ") for line in lines)
    assert "1 problem." == lines[-1]
