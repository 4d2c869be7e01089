"""`notify`: its short and its long form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuggino.config import (
    OCCASIONS,
    Config,
    NotifySettings,
    changed_config,
    load_config,
    save_config,
)
from cuggino.errors import ConfigError


def loaded(folder: Path, notify: object) -> Config:
    """Return the configuration with this value."""
    (folder / ".cuggino.json").write_text(json.dumps({"notify": notify}))
    return load_config(folder)


@pytest.mark.parametrize("short", ["bell", "none", ["bell", "ntfy://topic"], []])
def test_short_form(short: str | list[str], tmp_path: Path) -> None:
    """A string or a list sets `to`; `on` defaults to the end and urgent occasions."""
    config = loaded(tmp_path, short)
    assert short == config.notify
    expected = NotifySettings(to=short)
    assert expected == config.notifications
    assert ["end", "failed", "spec_issue", "login"] == expected.on
    assert "07:00" == expected.at


def test_long_form(tmp_path: Path) -> None:
    """An object sets targets, command and occasions, and survives a change and a save."""
    given = {"to": ["bell"], "command": "mail me", "on": list(OCCASIONS), "at": None}
    config = changed_config(loaded(tmp_path, given), {"max_iterations": 3})
    assert given == config.notifications.model_dump()
    save_config(tmp_path, config)
    assert config == load_config(tmp_path)
    assert "bell" == loaded(tmp_path, {}).notifications.to


@pytest.mark.parametrize(
    ("notify", "message"),
    [
        ({"on": ["often"]}, '"notify.on[0]" is "often": must be "end", "failed", "spec_issue"'),
        ({"when": []}, 'unknown key "when" in "notify"'),
        (
            {"to": "tgram//x"},
            '"notify.to" is "tgram//x": must be "bell", "none", or an Apprise URL',
        ),
        ({"at": "soon"}, '"notify.at" is "soon": must be a time such as "07:00"'),
    ],
)
def test_invalid(notify: object, message: str, tmp_path: Path) -> None:
    """The error names the key of the object."""
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, notify)
    assert message in caught.value.message
