"""A watch that asks on a phone, and the project manager in a chat, against loopback servers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reactivex import operators as ops

import cuggino
from cuggino import Config, Runtime, events as ev
from cuggino.agents.scripted import ScriptedAgent
from cuggino.config import parse_config
from cuggino.errors import ConfigError
from cuggino_cli.main import main
from tests.chat.services import CHAT, TOKEN, TOPIC, ChatServer

SCENARIO = """
[[planning]]
[[planning.steps]]
say = "<SPEC_ISSUE># Which database?\\n\\n- PostgreSQL\\n- SQLite\\n</SPEC_ISSUE>"

[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan\\n\\n## Task 1: write invoice.txt\\n"
[[planning.steps]]
say = "<PLAN_COMPLETE>One task.</PLAN_COMPLETE>"

[[implementing]]
[[implementing.steps]]
run = "env > env.txt; cp .specs/decisions.md invoice.txt"
[[implementing.steps]]
say = "<DONE>Done</DONE>"

[[reviewing]]
[[reviewing.steps]]
say = "<APPROVED>As specified.</APPROVED>"

[[pm]]
[[pm.steps]]
say = "Which page?"
[[pm.resumed]]
run = "echo '# Login' > .specs/login.md"
[[pm.resumed]]
run = "true"
[[pm.resumed]]
say = "Written."
"""


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """Serve both services."""
    with ChatServer() as serving:
        yield serving


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with an item, and secrets in variables."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TELEGRAM_TOKEN", TOKEN)
    monkeypatch.setenv("NTFY_TOPIC", TOPIC)
    folder = tmp_path / "shop"
    (folder / ".cuggino/backlog").mkdir(parents=True)
    (folder / ".cuggino/backlog/1.md").write_text("# Invoices\n")
    (folder / ".specs").mkdir()
    (folder / ".specs/shop.md").write_text("# Shop\n")
    (folder / "scenario.toml").write_text(SCENARIO)
    return folder


def settings(server: ChatServer, *names: str, **more: Any) -> dict[str, Any]:
    """Return the configuration with these services."""
    services = {
        "telegram": {"token": "env:TELEGRAM_TOKEN", "chat": CHAT, "url": server.url},
        "ntfy": {"topic": "env:NTFY_TOPIC", "url": server.url},
    }
    chat = {name: services[name] for name in names}
    return {"agent": "scripted:scenario.toml", "chat": chat, "settleSeconds": 0.1, **more}


def watched(shop: Path, config: Config) -> list[ev.Event]:
    """Return the events of a watch until its item is done."""
    runtime = Runtime.live(cwd=shop, config=config, agent=ScriptedAgent(shop / "scenario.toml"))
    events: list[ev.Event] = []
    ends = ops.take_while(lambda one: not isinstance(one, ev.WatchBacklogWaiting), inclusive=True)
    cuggino.run(runtime.watch().pipe(ends), events.append)
    return events


@pytest.mark.real_agent
@pytest.mark.parametrize("name", ["telegram", "ntfy"])
def test_a_watch_asks_and_goes_on(name: str, shop: Path, server: ChatServer) -> None:
    """A question reaches the phone, its button answers it, and the item is finished by it."""

    def person() -> None:
        server.until(1)
        server.press(1, of=0)

    phone = threading.Thread(target=person)
    phone.start()
    events = watched(shop, parse_config(settings(server, name)))
    phone.join()
    (asked,) = [one for one in events if isinstance(one, ev.ChatAsked)]
    (answered,) = [one for one in events if isinstance(one, ev.ChatAnswered)]
    assert (name, "Which database?") == (asked.channel, asked.title)
    assert (asked.question, "SQLite") == (answered.question, answered.text)
    assert "SQLite" in (shop / "invoice.txt").read_text().split("> - SQLite")[1]
    assert "Recorded: Which database?: SQLite" in server.texts()
    assert not [text for text in server.texts() if "Spec issue" in text]
    secret = {"telegram": TOKEN, "ntfy": TOPIC}[name]
    texts = {path: path.read_bytes() for path in shop.rglob("*") if path.is_file()}
    assert [] == [path for path, text in texts.items() if secret.encode() in text]
    assert b"PATH=" in texts[shop / "env.txt"]
    assert any(b'"ChatAnswered"' in text for text in texts.values())


@pytest.mark.real_agent
def test_the_first_of_two_services_counts(shop: Path, server: ChatServer) -> None:
    """With two services both ask; an answer on one settles the question on the other."""

    def person() -> None:
        server.until(2)
        server.press(0, of=0)

    phone = threading.Thread(target=person)
    phone.start()
    events = watched(shop, parse_config(settings(server, "telegram", "ntfy")))
    phone.join()
    assert ["ntfy", "telegram"] == sorted(
        one.channel for one in events if isinstance(one, ev.ChatAsked)
    )
    assert 1 == sum(isinstance(one, ev.ChatAnswered) for one in events)


@pytest.mark.real_agent
def test_a_service_that_is_down_stops_nothing(shop: Path, server: ChatServer) -> None:
    """Without the service the question waits as ever, and is answered on the command line."""
    scenario = SCENARIO.partition("[[planning]]")[2].partition("[[planning]]")
    (shop / "scenario.toml").write_text("[[planning]]" + scenario[2])
    config = settings(server, "telegram")
    config["chat"]["telegram"]["url"] = "http://127.0.0.1:9"
    events = watched(shop, parse_config(config))
    failed = [one.message for one in events if isinstance(one, ev.NotificationFailed)]
    assert "telegram cannot be reached (ConnectError)" in failed
    assert any(isinstance(one, ev.WatchItemCompleted) for one in events)


def test_the_project_manager(
    shop: Path,
    server: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One session is resumed with each message; a message that looks like a command is none."""
    (shop / ".cuggino.json").write_text(json.dumps(settings(server, "telegram")))
    monkeypatch.chdir(shop)

    def person() -> None:
        server.say("/clear the login page")
        server.until(1)
        server.say("for admins")
        server.until(2)
        server.faults.append((401, {"description": "Unauthorized"}))
        server.faults.append((401, {"description": "Unauthorized"}))
        server.say("bye")

    phone = threading.Thread(target=person)
    phone.start()
    assert 1 == main(["plan", "--chat"])
    phone.join()
    assert ["Which page?", "Written.\n\nTools: Bash ×2"] == server.texts()[:2]
    assert "# Login\n" == (shop / ".specs/login.md").read_text()
    shown = capsys.readouterr()
    assert "Written." in shown.out
    assert "telegram has answered 401: Unauthorized; check `chat`" in shown.out + shown.err


@pytest.mark.parametrize("names", [(), ("ntfy",)])
def test_no_chat_for_the_project_manager(
    names: tuple[str, ...],
    shop: Path,
    server: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without a service that knows who writes, that is one sentence and exit code 2."""
    (shop / ".cuggino.json").write_text(json.dumps(settings(server, *names)))
    monkeypatch.chdir(shop)
    assert 2 == main(["plan", "--chat"])
    assert "no chat is configured whose service knows who writes" in capsys.readouterr().err


def test_an_agent_that_cannot_resume(shop: Path, server: ChatServer) -> None:
    """An agent that resumes no session cannot talk by chat."""

    class Forgetful(ScriptedAgent):
        capabilities = ScriptedAgent.capabilities.__class__()

    agent = Forgetful(shop / "scenario.toml")
    runtime = Runtime.live(cwd=shop, config=parse_config(settings(server, "telegram")), agent=agent)
    with pytest.raises(ConfigError, match="cannot resume a session"):
        cuggino.run(runtime.plan_by_chat())


PLANNED = SCENARIO[SCENARIO.index("[[planning]]", 10) :]


@pytest.mark.real_agent
@pytest.mark.parametrize("name", ["telegram", "ntfy"])
@pytest.mark.parametrize(("option", "approved"), [(0, True), (1, False)])
def test_a_run_waits_for_an_approval(
    name: str, option: int, approved: bool, shop: Path, server: ChatServer
) -> None:
    """The plan reaches the phone with two buttons; the press decides, and no session waits."""
    (shop / "scenario.toml").write_text(PLANNED.replace("cp .specs/decisions.md", "date >"))

    def person() -> None:
        server.until(1)
        server.press(option, of=0)

    phone = threading.Thread(target=person)
    phone.start()
    config = parse_config(settings(server, name, approve=["plan"], maxIterations=1))
    runtime = Runtime.live(cwd=shop, config=config, agent=ScriptedAgent(shop / "scenario.toml"))
    events: list[ev.Event] = []
    cuggino.run(runtime.run(focus="the invoice"), events.append)
    phone.join()
    assert "## Task 1: write invoice.txt" in server.texts()[0]
    (answered,) = [one for one in events if isinstance(one, ev.ChatAnswered)]
    assert answered.text == ("Approve" if approved else "Reject")
    started, ended = (
        next(n for n, one in enumerate(events) if isinstance(one, kind))
        for kind in (ev.WaitingStarted, ev.WaitingEnded)
    )
    assert not [one for one in events[started:ended] if isinstance(one, ev.SessionEnded)]
    assert approved is isinstance(events[-1], ev.LoopApproved)
    assert approved is (shop / "invoice.txt").exists()
