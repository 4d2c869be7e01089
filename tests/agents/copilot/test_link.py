"""The bridge to the GitHub Copilot SDK, with a fake SDK: requests and outcomes."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cuggino.agents.base.guard import make_guard
from cuggino.agents.copilot.guard import Gate
from cuggino.agents.copilot.link import CopilotLink, Order
from cuggino.guard.roles import role_policy
from cuggino.testing import no_leaks
from tests.limits import LIMIT

Raw = dict[str, Any]


class Event:
    def __init__(self, raw: Raw) -> None:
        self.raw = raw

    def to_dict(self) -> Raw:
        return self.raw


class Sdk:
    """A fake SDK that records its calls; `on_send` reacts to the prompt."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.options: Raw = {}
        self.on_send: Callable[[Raw], Any] = lambda _options: None
        self.on_start: Callable[[], Any] = lambda: None

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Replace the library, whether it is installed or not."""
        sdk, top, rpc = self, ModuleType("copilot"), ModuleType("copilot.rpc")

        class Session:
            async def send(self, prompt: str) -> None:
                sdk.asked.append(("send", prompt))
                await _maybe(sdk.on_send(sdk.options))

            async def disconnect(self) -> None:
                sdk.asked.append(("disconnect", None))

        class Client:
            def __init__(self, *, connection: Any) -> None:
                sdk.asked.append(("connect", connection))

            async def start(self) -> None:
                await _maybe(sdk.on_start())

            async def create_session(self, **options: Any) -> Session:
                sdk.asked.append(("create", options.pop("session_id")))
                sdk.options = options
                return Session()

            async def resume_session(self, session_id: str, **options: Any) -> Session:
                sdk.asked.append(("resume", session_id))
                sdk.options = options
                return Session()

            async def force_stop(self) -> None:
                sdk.asked.append(("force_stop", None))

        class Connection:
            @staticmethod
            def for_uri(url: str, *, connection_token: str) -> tuple[str, str]:
                return url, connection_token

        vars(top).update(CopilotClient=Client, RuntimeConnection=Connection)
        vars(rpc).update(
            PermissionDecisionApproveOnce=lambda: "yes",
            PermissionDecisionReject=lambda *, feedback: f"no: {feedback}",
        )
        monkeypatch.setitem(sys.modules, "copilot", top)
        monkeypatch.setitem(sys.modules, "copilot.rpc", rpc)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.asked]


async def _maybe(result: Any) -> None:
    if asyncio.iscoroutine(result):
        await result


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sdk]:
    made = Sdk()
    made.install(monkeypatch)
    with no_leaks():
        yield made


class Linked:
    """A link, its events and its outcome."""

    def __init__(self, folder: Path, *, guarded: bool = False, **order: Any) -> None:
        self.events: list[Raw] = []
        self.ends: list[Exception | None] = []
        self.ended = threading.Event()
        policy = role_policy("implementing", project=folder, level="roles")
        guard = make_guard(policy) if guarded else None
        self.link = CopilotLink(
            Order(**{"prompt": "Go.", "cwd": folder, "token": "t", **order}),
            Gate(cwd=folder, unattended=True, guard=guard),
            port=4711,
            on_event=self.events.append,
            on_end=self._end,
        )

    def _end(self, error: Exception | None) -> None:
        self.ends.append(error)
        self.ended.set()

    def run(self) -> Exception | None:
        """Run to the end."""
        self.link.start()
        assert self.ended.wait(LIMIT)
        self.link.close()
        return self.ends[0]


def test_a_session(sdk: Sdk, tmp_path: Path) -> None:
    """The link connects with the token, creates the session, sends the prompt and disconnects."""
    linked = Linked(
        tmp_path,
        session_id="s",
        system_prompt="Be kind.",
        model="gpt",
        provider={"type": "openai"},
        mcp_servers={"f": {"command": "x"}, "g": {"type": "http", "url": "u"}, "h": 7},
    )

    def answer(options: Raw) -> None:
        options["on_event"](Event({"type": "session.idle"}))
        linked.link.finish()

    sdk.on_send = answer
    assert linked.run() is None
    assert [
        ("connect", ("127.0.0.1:4711", "t")),
        ("create", "s"),
        ("send", "Go."),
        ("disconnect", None),
        ("force_stop", None),
    ] == sdk.asked
    assert [{"type": "session.idle"}] == linked.events
    given = {name: value for name, value in sdk.options.items() if not name.startswith("on_")}
    assert {
        "working_directory": str(tmp_path),
        "streaming": True,
        "system_message": {"mode": "append", "content": "Be kind."},
        "model": "gpt",
        "provider": {"type": "openai"},
        "mcp_servers": {
            "f": {"tools": ["*"], "type": "local", "command": "x"},
            "g": {"tools": ["*"], "type": "http", "url": "u"},
            "h": 7,
        },
    } == given
    assert sdk.options["on_user_input_request"] is None


def test_a_session_is_resumed(sdk: Sdk, tmp_path: Path) -> None:
    """An existing session is resumed instead of creating one."""
    linked = Linked(tmp_path, resume_session_id="old", session_id="new")
    sdk.on_send = lambda _options: linked.link.finish()
    assert linked.run() is None
    assert ("resume", "old") in sdk.asked
    assert "create" not in sdk.names


def test_the_guard_is_connected(sdk: Sdk, tmp_path: Path) -> None:
    """Hook and permission handler call the gate, and hooks of the repository are disabled."""
    said: list[Any] = []
    linked = Linked(tmp_path, guarded=True)

    async def answer(options: Raw) -> None:
        before = options["hooks"]["on_pre_tool_use"]
        for command in ("ls", "rm -rf .git"):
            said.append(await before({"toolName": "bash", "toolArgs": {"command": command}}, {}))
        for command in ("ls", "rm -rf .git"):
            request = SimpleNamespace(
                to_dict=lambda c=command: {"kind": "shell", "fullCommandText": c}
            )
            said.append(await options["on_permission_request"](request, {}))
        assert options["enable_file_hooks"] is False
        linked.link.finish()

    sdk.on_send = answer
    assert linked.run() is None
    assert (None, "deny") == (said[0], said[1]["permissionDecision"])
    assert "yes" == said[2]
    assert said[3].startswith("no: ")


@pytest.mark.parametrize("where", ["on_start", "on_send"])
def test_an_error(sdk: Sdk, tmp_path: Path, where: str) -> None:
    """An exception of the SDK ends the session, and the connection is closed."""

    def fail(*_given: Any) -> None:
        raise OSError("refused")

    setattr(sdk, where, fail)
    error = Linked(tmp_path).run()
    assert isinstance(error, OSError)
    assert "force_stop" == sdk.names[-1]


@pytest.mark.parametrize("where", ["on_start", "on_send"])
def test_closing_at_any_step(sdk: Sdk, tmp_path: Path, where: str) -> None:
    """Closing interrupts any wait and ends the connection and the thread."""
    waiting = threading.Event()

    async def wait(*_given: Any) -> None:
        waiting.set()
        await asyncio.sleep(3600)

    setattr(sdk, where, wait)
    linked = Linked(tmp_path)
    linked.link.start()
    assert waiting.wait(LIMIT)
    linked.link.close()
    linked.link.close()
    assert [None] == linked.ends
    assert "force_stop" == sdk.names[-1]


def test_closing_before_it_begins(sdk: Sdk, tmp_path: Path) -> None:
    """A link closed before its thread starts connects to nothing."""
    linked = Linked(tmp_path)
    linked.link.close()
    linked.link.start()
    assert linked.ended.wait(LIMIT)
    linked.link.close()
    assert [] == sdk.asked
    linked.link.finish()


def _later(error: Exception) -> None:
    def fail() -> None:
        raise error

    asyncio.get_running_loop().call_soon(fail)


def test_an_unreadable_permission_request(sdk: Sdk, tmp_path: Path) -> None:
    """An unknown permission request, which would block its tool indefinitely, ends the session."""
    sdk.on_send = lambda _o: _later(ValueError("Unknown PermissionRequest kind: 'new'"))
    linked = Linked(tmp_path)
    linked.link.start()
    assert linked.ended.wait(LIMIT)
    linked.link.close()
    assert "Unknown PermissionRequest" in str(linked.ends[0])


def test_an_unreadable_event(sdk: Sdk, tmp_path: Path) -> None:
    """Any other event that the SDK cannot parse is reported, and the session continues."""
    linked = Linked(tmp_path)

    def answer(options: Raw) -> None:
        _later(AssertionError("no text"))
        later = lambda: options["on_event"](Event({"type": "session.idle"}))  # noqa: E731
        asyncio.get_running_loop().call_later(0.05, later)
        asyncio.get_running_loop().call_later(0.1, linked.link.finish)

    sdk.on_send = answer
    assert linked.run() is None
    assert ["sdk.unreadable", "session.idle"] == [raw["type"] for raw in linked.events]
