"""GitHub Copilot sessions with a fake link, and the link with a fake SDK."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from reactivex import Observable, just
from reactivex.subject import Subject

import cuggino
from cuggino.agents.base.guard import make_guard
from cuggino.agents.base.stream import Program
from cuggino.agents.copilot import stream as copilot_stream
from cuggino.agents.copilot.guard import Gate
from cuggino.agents.copilot.link import CopilotLink, Order
from cuggino.agents.copilot.stream import copilot_session
from cuggino.errors import AgentFailed, GuardNotLive
from cuggino.events import Event, GuardDenied, LlmAgentEvent, SessionEnded
from cuggino.guard.roles import role_policy
from cuggino.operators import LoopScheduler
from cuggino.testing import no_leaks
from tests.limits import LIMIT

pytestmark = pytest.mark.usefixtures("nothing_is_left")

Raw = dict[str, Any]
LISTENS = (
    r"echo noise; printf 'CLI server listening on \033[1mport \033[32m4711\033[0m\r\n'; "
    "exec sleep 600"
)
BEGUN: list[Raw] = [
    {"type": "session.start", "data": {"sessionId": "s1"}},
    {"type": "user.message", "data": {"content": "Go."}},
]
SAID: Raw = {"type": "assistant.message", "data": {"content": "Hello.", "messageId": "m"}}
TOLD: Raw = {"type": "user.message", "data": {"content": "use tabs", "delivery": "steering"}}
IDLE: Raw = {"type": "session.idle", "data": {}}


class FakeLink:
    """A link that plays events on its own thread, like the real one."""

    def __init__(self, *events: Raw | Exception, ends: bool = True) -> None:
        self._script = events
        self._ends = ends
        self.ports: list[int] = []
        self.closed = threading.Event()
        self.finished = threading.Event()
        self.said: list[str] = []
        self.was_told = threading.Event()

    def __call__(
        self,
        order: Order,
        gate: Gate,
        *,
        port: int,
        on_event: Callable[[Raw], None],
        on_end: Callable[[Exception | None], None],
    ) -> Any:
        self.order, self.gate, self._on_event, self._on_end = order, gate, on_event, on_end
        self.ports.append(port)
        self._thread = threading.Thread(target=self._play, name="fake-link")
        return self

    def start(self) -> None:
        self._thread.start()

    def say(self, text: str) -> None:
        """Keep a person's message."""
        self.said.append(text)
        self.was_told.set()

    def _play(self) -> None:
        for event in self._script:
            if isinstance(event, Exception):
                self._on_end(event)
                return
            if event is TOLD:
                assert self.was_told.wait(LIMIT)
            self.gate.see(event)
            self._on_event(event)
        if self._ends:
            self.finished.wait(LIMIT)
            self._on_end(None)

    def finish(self) -> None:
        self.finished.set()

    def close(self) -> None:
        self.finished.set()
        self.closed.set()
        self._thread.join()


class Session:
    """A finished session: its events and outcome."""

    def __init__(self, folder: Path, link: FakeLink, **options: Any) -> None:
        self.events: list[LlmAgentEvent] = []
        self.error: Exception | None = None
        try:
            cuggino.run(stream(folder, link, **options), self._keep)
        except Exception as error:
            self.error = error

    def _keep(self, event: Event) -> None:
        assert isinstance(event, LlmAgentEvent)
        self.events.append(event)

    @property
    def tags(self) -> list[str]:
        return [event.tag for event in self.events]


def stream(
    folder: Path,
    link: FakeLink,
    *,
    script: str = LISTENS,
    gate: Gate | None = None,
    messages: Observable[str] | None = None,
) -> Any:
    program = Program(argv=["sh", "-c", script], cwd=folder, env=dict(os.environ))
    order = Order(prompt="Go.", cwd=folder, token="t", messages=messages)
    gate = gate or Gate(cwd=folder, unattended=True)
    return copilot_session(program, order, gate, link=link)


def test_a_session(tmp_path: Path) -> None:
    """Events are in order; the final one follows the end of link and program."""
    link = FakeLink(*BEGUN, SAID, IDLE)
    done = Session(tmp_path, link)
    assert done.error is None
    assert ["SystemMessage", "AgentMessage", "SessionEnded"] == done.tags
    assert [4711] == link.ports
    assert link.closed.is_set()
    last = done.events[-1]
    assert isinstance(last, SessionEnded)
    assert ("completed", "s1") == (last.outcome, last.session_id)


def test_messages(tmp_path: Path) -> None:
    """One reaches the link, even before there is one, and is announced in its place."""
    link = FakeLink(*BEGUN, TOLD, SAID, IDLE)
    done = Session(tmp_path, link, messages=just("use tabs"))
    assert (None, ["use tabs"]) == (done.error, link.said)
    assert ["SystemMessage", "Steered", "AgentMessage", "SessionEnded"] == done.tags


def test_a_message_that_comes_too_late(tmp_path: Path) -> None:
    """A session that is over takes none."""
    messages: Subject[str] = Subject()
    link = FakeLink(*BEGUN, SAID, IDLE)

    def keep(event: Event) -> None:
        if isinstance(event, SessionEnded):
            messages.on_next("too late")

    cuggino.run(stream(tmp_path, link, messages=messages), keep)
    assert [] == link.said
    assert [] == messages.observers


def test_a_connection_that_is_refused(tmp_path: Path) -> None:
    """An exception of the SDK becomes the session's error."""
    done = Session(tmp_path, FakeLink(OSError("ECONNREFUSED")))
    assert isinstance(done.error, AgentFailed)
    assert ("connection", ["SessionEnded"]) == (done.error.reason, done.tags)


class ProcessExitedError(Exception):
    """An error with the same name as the SDK's."""


def test_a_program_that_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error reports the exit code and stderr of the program, not the broken connection."""
    monkeypatch.setattr(copilot_stream, "LOST_SECONDS", LIMIT)
    script = "echo listening on port 1; sleep 0.1; echo it broke >&2; exit 3"
    done = Session(tmp_path, FakeLink(*BEGUN, ProcessExitedError("gone")), script=script)
    assert isinstance(done.error, AgentFailed)
    assert ("crash", "copilot exited with code 3: it broke") == (
        done.error.reason,
        done.error.message,
    )
    ended = done.events[-1]
    assert isinstance(ended, SessionEnded)
    assert ("failed", "s1") == (ended.outcome, ended.session_id)


def test_a_program_that_outlives_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost connection ends the session even if the program keeps running."""
    monkeypatch.setattr(copilot_stream, "LOST_SECONDS", 0.1)
    done = Session(tmp_path, FakeLink(*BEGUN, ProcessExitedError("the connection is gone")))
    assert isinstance(done.error, AgentFailed)
    assert "the connection is gone" in done.error.message


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 0", "copilot ended without a result"),
        ("echo not enrolled; exit 0", "copilot ended without a result: not enrolled"),
        (
            "echo not enrolled; echo a warning >&2; exit 3",
            "copilot exited with code 3: a warning\nnot enrolled",
        ),
        ("echo unknown option >&2; exit 1", "copilot exited with code 1: unknown option"),
        ("kill -9 $$", "copilot was ended by SIGKILL"),
    ],
)
def test_a_program_that_does_not_listen(tmp_path: Path, script: str, message: str) -> None:
    """A program that exits before it listens has crashed, and no link is created."""
    link = FakeLink()
    done = Session(tmp_path, link, script=script)
    assert isinstance(done.error, AgentFailed)
    assert (message, "crash", []) == (done.error.message, done.error.reason, link.ports)


def test_a_program_that_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that does not listen in time is terminated."""
    monkeypatch.setattr(copilot_stream, "START_SECONDS", 0.2)
    done = Session(tmp_path, FakeLink(), script="exec sleep 600")
    assert isinstance(done.error, AgentFailed)
    assert "did not listen" in done.error.message


def test_a_breach(tmp_path: Path) -> None:
    """A breach terminates program and link immediately and is the session's error."""

    class Open(Gate):
        def see(self, raw: Raw) -> None:
            if raw is SAID:
                self._watch.fail("it is gone")

    gate = Open(cwd=tmp_path, unattended=True)
    done = Session(tmp_path, FakeLink(*BEGUN, SAID, ends=False), gate=gate)
    assert isinstance(done.error, GuardNotLive)
    assert ["AgentMessage", "SessionEnded"] == done.tags[-2:]


def test_denials_are_in_order(tmp_path: Path) -> None:
    """A denial is emitted in its place among the events."""
    denied = GuardDenied(tool="Bash", tool_use_id="c", part="p", reason="r")

    class Denies(Gate):
        def see(self, raw: Raw) -> None:
            if raw is SAID:
                self.tell(denied)

    gate = Denies(cwd=tmp_path, unattended=True)
    done = Session(tmp_path, FakeLink(*BEGUN, SAID, IDLE), gate=gate)
    assert done.error is None
    assert ["SystemMessage", "GuardDenied", "AgentMessage"] == done.tags[:3]


def test_disposal(tmp_path: Path) -> None:
    """Disposal closes the link and terminates the program; nothing more is emitted."""
    link = FakeLink(*BEGUN, SAID, ends=False)
    lane = LoopScheduler()
    seen: list[Event] = []
    told = threading.Event()

    def keep(event: Event) -> None:
        seen.append(event)
        if len(seen) == 2:
            told.set()

    held = stream(tmp_path, link).subscribe(keep, scheduler=lane)
    assert told.wait(LIMIT)
    held.dispose()
    held.dispose()
    assert link.closed.is_set()
    lane.close()
    assert ["SystemMessage", "AgentMessage"] == [event.tag for event in seen]


class SdkEvent:
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


def test_a_linked_session(sdk: Sdk, tmp_path: Path) -> None:
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
        options["on_event"](SdkEvent({"type": "session.idle"}))
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
        later = lambda: options["on_event"](SdkEvent({"type": "session.idle"}))  # noqa: E731
        asyncio.get_running_loop().call_later(0.05, later)
        asyncio.get_running_loop().call_later(0.1, linked.link.finish)

    sdk.on_send = answer
    assert linked.run() is None
    assert ["sdk.unreadable", "session.idle"] == [raw["type"] for raw in linked.events]
