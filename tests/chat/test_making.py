"""The channels of a configuration: their secrets, and where these must not appear."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.base import SpawnOptions
from cuggino.chat import channels_of, secrets_of, withhold_secrets
from cuggino.config import Config, parse_config
from cuggino.doctor.project import chats
from cuggino.errors import ConfigError
from cuggino.sandbox import login_files
from tests.chat.services import TOKEN
from tests.cli.looking import look, place

TELEGRAM = {"token": "env:SHOP_BOT", "chat": 42}


def config(**chat: Any) -> Config:
    """Return the configuration with these channels."""
    return parse_config({"chat": chat})


def test_secrets_of_variables_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret is read from a variable or a file, without the newline at its end."""
    (tmp_path / "topic").write_text("shop-topic\n")
    monkeypatch.setenv("SHOP_BOT", TOKEN)
    settings = config(telegram=TELEGRAM, ntfy={"topic": f"file:{tmp_path}/topic"}).chat
    assert ["telegram", "ntfy"] == [channel.name for channel in channels_of(settings)]
    assert {TOKEN, "shop-topic"} == {*secrets_of(settings).values()}


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("env:SHOP_BOT", "env:SHOP_BOT, which is not set"),
        (
            "file:/nonexistent",
            "which cannot be read (No such file or directory)",
        ),
        ("file:/dev/null", "not a regular file"),
    ],
)
def test_missing_secrets(reference: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret that is not there is an error before a run starts, and a problem of the doctor."""
    monkeypatch.delenv("SHOP_BOT", raising=False)
    settings = config(telegram={**TELEGRAM, "token": reference})
    with pytest.raises(ConfigError, match="chat") as found:
        channels_of(settings.chat)
    assert words in found.value.message
    assert {} == secrets_of(settings.chat)
    (result,) = look("chat", Path(), chat=settings.chat)
    assert ("problem", True) == (result.status, words in result.what)
    assert [] == look("chat", Path())


def test_the_doctor_runs_no_code_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look makes the channels of cuggino; one of the project only after it was trusted."""
    monkeypatch.setenv("SHOP_BOT", TOKEN)
    chat = config(telegram=TELEGRAM, own={"channel": "nowhere:Channel"}).chat
    assert ["chat: by telegram"] == [one.what for one in look("chat", Path(), chat=chat)]
    trusted = chats(place(Path(), trusted=True, chat=chat))
    with pytest.raises(ConfigError, match="nowhere:Channel"):
        list(trusted)


def test_agents_do_not_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables are in no agent's environment, and the files are hidden by views."""
    monkeypatch.setenv("SHOP_BOT", TOKEN)
    settings = config(telegram=TELEGRAM, ntfy={"topic": "file:~/topic"}).chat
    withhold_secrets(settings)
    env = SpawnOptions(prompt="work", cwd=tmp_path).environment(dict(os.environ))
    assert TOKEN not in str(env)
    assert tmp_path / "topic" in login_files({}, tmp_path)


class Own:
    """A channel of a project; it fails with its token if there is no room."""

    name = "own"

    def __init__(self, *, token: str, room: int) -> None:
        if not room:
            raise ValueError(token)
        self.given = (token, room)
        self.send = self.replies = print


@pytest.mark.parametrize(
    ("channel", "room", "problem"),
    [
        ("tests.chat.test_making:Own", 3, None),
        ("tests.chat.test_making:Own", 0, "ValueError"),
        ("tests.chat.test_making:Nobody", 3, "AttributeError"),
        ("nowhere", 3, "ModuleNotFoundError"),
        ("builtins:dict", 3, "TypeError"),
    ],
)
def test_a_channel_of_ones_own(
    channel: str, room: int, problem: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import path names a channel, which gets its options with the secrets in place."""
    monkeypatch.setenv("SHOP_BOT", TOKEN)
    settings = config(own={"channel": channel, "options": {"token": "env:SHOP_BOT", "room": room}})
    if problem is None:
        (made,) = channels_of(settings.chat)
        assert isinstance(made, Own)
        assert (TOKEN, room) == made.given
        return
    with pytest.raises(ConfigError, match=f"cannot be made: {problem}") as found:
        channels_of(settings.chat)
    assert TOKEN not in f"{found.value.message} {found.value.hint}"
