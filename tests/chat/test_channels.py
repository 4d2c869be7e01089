"""The channels of a configuration, their secrets, and Telegram and ntfy on loopback."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, operators as ops

from cuggino import iterate, run
from cuggino.agents.base import SpawnOptions
from cuggino.chat import (
    Button,
    Channel,
    NtfyChannel,
    Post,
    Reply,
    TelegramChannel,
    channels_of,
    secrets_of,
    withhold_secrets,
)
from cuggino.config import Config, parse_config
from cuggino.doctor.project import chats
from cuggino.errors import ChatError, ConfigError
from cuggino.sandbox import login_files
from cuggino.testing import no_leaks
from tests.chat.services import CHAT, TOKEN, TOPIC, ChatServer
from tests.cli.looking import look, place
from tests.limits import LIMIT

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
            "file:/proc/none",
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
        ("tests.chat.test_channels:Own", 3, None),
        ("tests.chat.test_channels:Own", 0, "ValueError"),
        ("tests.chat.test_channels:Nobody", 3, "AttributeError"),
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


BUTTONS = (Button(label="Yes", reply="aaaaaaaa #1"), Button(label="No", reply="aaaaaaaa #2"))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """Serve both services."""
    with no_leaks(), ChatServer() as serving:
        yield serving


def telegram(server: ChatServer, **given: Any) -> TelegramChannel:
    """Return the chat of the server."""
    return TelegramChannel(**{"token": TOKEN, "chat": CHAT, "url": server.url, **given})


def ntfy(server: ChatServer) -> NtfyChannel:
    """Return the topic of the server."""
    return NtfyChannel(topic=TOPIC, token="tk_secret", url=server.url)


EACH = pytest.mark.parametrize("make", [telegram, ntfy])
Make = Callable[[ChatServer], Channel]


def heard(stream: Observable[Reply]) -> list[Reply]:
    """Return the replies of one call."""
    return list(iterate(stream.pipe(ops.timeout(LIMIT))))


@EACH
def test_a_button(make: Make, server: ChatServer) -> None:
    """A pressed button comes back as the reply that it stands for."""
    channel = make(server)
    run(channel.send(Post(text="Ready?", buttons=BUTTONS)))
    assert ["Ready?"] == server.texts()
    server.press(1)
    (reply,) = heard(channel.replies(""))
    assert "aaaaaaaa #2" == reply.text
    server.press(0)
    (reply,) = heard(channel.replies(reply.id))
    assert "aaaaaaaa #1" == reply.text


@EACH
def test_waiting_for_a_reply(make: Make, server: ChatServer) -> None:
    """A reply that is not there yet is waited for; disposal ends the wait at once."""
    channel = make(server)
    threads: list[Reply] = []
    waiting = channel.replies("").subscribe(threads.append)
    waiting.dispose()
    replies = iterate(channel.replies(""))
    run(channel.send(Post(text="Ready?", buttons=BUTTONS)))
    server.press(0)
    assert "aaaaaaaa #1" == next(replies).text
    replies.close()
    assert [] == threads


@EACH
def test_a_long_text(make: Make, server: ChatServer) -> None:
    """A text above the limit is sent in parts; the last one has the buttons."""
    text = "\n\n".join(letter * 3000 for letter in "ab")
    run(make(server).send(Post(text=text, buttons=BUTTONS)))
    assert text == "\n\n".join(server.texts())
    first, last = server.sent
    assert not (first.get("reply_markup") or first.get("actions"))
    assert last.get("reply_markup") or last["actions"]


@EACH
@pytest.mark.parametrize(
    ("status", "answer", "transient", "retry_in"),
    [
        (401, {"ok": False, "description": "Unauthorized"}, False, None),
        (400, {"ok": False, "description": "chat\x00 not found"}, False, None),
        (429, {"ok": False, "parameters": {"retry_after": 7}}, True, 7),
        (409, {"description": "Conflict: terminated by other getUpdates request"}, True, None),
        (502, {}, True, None),
        (302, {}, False, None),
    ],
)
def test_failures(
    make: Make,
    server: ChatServer,
    status: int,
    answer: dict[str, Any],
    transient: bool,
    retry_in: float | None,
) -> None:
    """What may succeed later is transient; no message has a URL or a token."""
    server.faults.append((status, answer))
    channel = make(server)
    with pytest.raises(ChatError) as found:
        run(channel.send(Post(text="Ready?")))
    assert (transient, retry_in) == (found.value.transient, found.value.retry_in)
    assert found.value.message.startswith(f"{channel.name} has answered {status}")
    assert found.value.message.isprintable()


@EACH
def test_no_connection(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """A service that is down is a transient failure; its error and all logs are free of secrets."""
    caplog.set_level(logging.DEBUG)
    with ChatServer() as server:
        channel = make(server)
        run(channel.send(Post(text="Ready?")))
    with pytest.raises(ChatError) as found:
        run(channel.send(Post(text="Ready?")))
    assert found.value.transient
    assert "cannot be reached (ConnectError)" in found.value.message
    chain = [found.value, found.value.__cause__, found.value.__context__]
    for secret in (TOKEN, TOPIC, "tk_secret"):
        assert secret not in f"{chain} {caplog.text}"


def test_only_the_chat_counts(server: ChatServer) -> None:
    """Messages and buttons of other chats are dropped, and confirmed: they do not return."""
    channel = telegram(server, wait=0)
    run(channel.send(Post(text="Ready?", buttons=BUTTONS)))
    server.say("let me in", chat=7)
    server.press(0, chat=7)
    assert [] == heard(channel.replies(""))
    server.say("yes", to=0)
    (reply,) = heard(channel.replies(""))
    assert ("yes", "Ready?", "Ada") == (reply.text, reply.quoted, reply.sender)
    assert [] == heard(channel.replies(reply.id))


def test_ids_that_begin_anew(server: ChatServer) -> None:
    """Telegram may number updates anew after a quiet week: they are heard nevertheless."""
    channel = telegram(server, wait=0)
    server.say("one")
    (reply,) = heard(channel.replies(""))
    assert [] == heard(channel.replies(reply.id))
    server.updates.clear()
    server.first = 5
    server.say("two")
    assert ["two"] == [one.text for one in heard(channel.replies(reply.id))]


@pytest.mark.parametrize("is_late", [False, True])
def test_a_button_is_acknowledged(is_late: bool, server: ChatServer) -> None:
    """A pressed button gets a short notice and a message; one that is too old, the message only."""
    channel = telegram(server)
    run(channel.send(Post(text="Ready?", buttons=BUTTONS)))
    server.press(0)
    (reply,) = heard(channel.replies(""))
    if is_late:
        server.faults.append((400, {"description": "query is too old"}))
    run(channel.send(Post(text="Recorded: Ready?: Yes", to=reply)))
    assert "Recorded: Ready?: Yes" == server.texts()[-1]
    assert ([] if is_late else ["Recorded: Ready?: Yes"]) == server.toasts


def test_answers_while_nobody_listened(server: ChatServer) -> None:
    """ntfy keeps answers; those after the last one that was dealt with are heard, one by one."""
    for number in range(3):
        server.answer(f"answer {number}")
    channel = ntfy(server)
    assert ["answer 0"] == [one.text for one in heard(channel.replies(""))]
    assert ["answer 2"] == [one.text for one in heard(channel.replies("m1"))]
    assert server.calls[-1].startswith(f"/{TOPIC}-answers/json?since=m1")


def test_buttons_of_ntfy(server: ChatServer) -> None:
    """The phone posts to the topic for answers, without the token; ntfy takes three buttons."""
    buttons = tuple(Button(label=str(n), reply=f"aaaaaaaa #{n}") for n in range(5))
    run(ntfy(server).send(Post(text="Which?", buttons=buttons)))
    (sent,) = server.sent
    assert 3 == len(sent["actions"])
    assert {f"{server.url}/{TOPIC}-answers"} == {one["url"] for one in sent["actions"]}
    assert "tk_secret" not in str(sent)
