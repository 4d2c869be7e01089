"""GitHub Copilot sessions with a fake SDK: order, outcomes and cleanup."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, just
from reactivex.subject import Subject

import cuggino
from cuggino.agents.base.stream import Program
from cuggino.agents.copilot import stream as copilot_stream
from cuggino.agents.copilot.guard import Gate
from cuggino.agents.copilot.link import Order
from cuggino.agents.copilot.stream import copilot_session
from cuggino.errors import AgentFailed, AgentNotFound, GuardNotLive, QuotaExceeded
from cuggino.events import Event, GuardDenied, LlmAgentEvent, SessionEnded
from cuggino.operators import LoopScheduler
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


def test_an_error_of_the_session(tmp_path: Path) -> None:
    """The error follows the final event."""
    bad = {"type": "session.error", "data": {"errorType": "authentication", "message": "no"}}
    done = Session(tmp_path, FakeLink(*BEGUN, bad, IDLE))
    assert isinstance(done.error, AgentFailed)
    assert "auth" == done.error.reason
    assert "SessionEnded" == done.tags[-1]


def test_a_usage_limit(tmp_path: Path) -> None:
    """A usage limit is emitted before the final event."""
    bad = {
        "type": "session.error",
        "data": {"errorType": "quota", "message": "Try again in 1 hour."},
    }
    done = Session(tmp_path, FakeLink(*BEGUN, bad, IDLE))
    assert isinstance(done.error, QuotaExceeded)
    assert done.error.resets_at is not None
    assert ["RateLimited", "SessionEnded"] == done.tags[-2:]


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


def test_a_missing_program(tmp_path: Path) -> None:
    """If nothing could be started, only the error is emitted."""
    program = Program(argv=[str(tmp_path / "nothing")], cwd=tmp_path, env={})
    order, gate = Order(prompt="Go.", cwd=tmp_path, token="t"), Gate(cwd=tmp_path, unattended=True)
    events: list[Event] = []
    with pytest.raises(AgentNotFound):
        cuggino.run(copilot_session(program, order, gate, link=FakeLink()), events.append)
    assert [] == events


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


def test_a_subscriber_that_raises(tmp_path: Path) -> None:
    """An exception in `on_next` reaches `on_error` after link and program have ended."""
    link = FakeLink(*BEGUN, SAID, ends=False)
    errors: list[Exception] = []
    ended = threading.Event()

    def refuse(_event: Event) -> None:
        raise ValueError("no")

    def fail(error: Exception) -> None:
        errors.append(error)
        assert link.closed.is_set()
        ended.set()

    lane = LoopScheduler()
    stream(tmp_path, link).subscribe(refuse, fail, scheduler=lane)
    assert ended.wait(LIMIT)
    lane.close()
    assert ["no"] == [str(error) for error in errors]


def test_all_on_one_thread(tmp_path: Path) -> None:
    """Every event is emitted on the given scheduler."""
    threads: set[int] = set()
    cuggino.run(
        stream(tmp_path, FakeLink(*BEGUN, *[SAID] * 200, IDLE)),
        lambda _event: threads.add(threading.get_ident()),
    )
    assert 1 == len(threads)
