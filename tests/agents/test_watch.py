"""The rules of a guarded session, which hold for every provider."""

from __future__ import annotations

import asyncio
import json
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, strategies as st

from cuggino.agents.base.calls import Orders
from cuggino.agents.base.guard import make_guard
from cuggino.agents.base.watch import (
    Canary,
    Failed,
    Used,
    Verdict,
    VerdictLog,
    Watch,
    Watched,
    step,
)
from cuggino.agents.claude.guard import GuardWatch
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.agents.codex.guard import CodexWatch, make_codex_guard
from cuggino.agents.codex.hook import in_bash
from cuggino.agents.codex.wire import CodexSession
from cuggino.agents.copilot.guard import Gate
from cuggino.agents.gemini.guard import GeminiWatch
from cuggino.agents.gemini.wire import GeminiSession
from cuggino.agents.opencode.wire import OpenCodeSession
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied
from cuggino.guard import Policy, role_policy

TOKEN = "0123abcd"


class Session(ABC):
    """A session whose hook and program report what a test wants; each call is a command."""

    is_signed: ClassVar[bool] = True
    """Whether the token tells the hook's answers from others."""
    despite: ClassVar[str] = "despite its verdict"
    token = TOKEN
    reader: Any
    """Reads what the program prints."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack
        self.events: list[Any] = []
        self.open()

    @abstractmethod
    def open(self) -> None:
        """Set the reader."""

    @abstractmethod
    def answer(self, own: dict[str, Any], call: str) -> None:
        """Let the hook give this answer, on a call or at the start."""

    @abstractmethod
    def begin(self) -> None:
        """Let the program begin to work."""

    @abstractmethod
    def end(self, call: str, *, ran: bool) -> None:
        """Let the program report the end of the call."""

    def feed(self, *lines: dict[str, Any]) -> None:
        for line in lines:
            self.events += self.reader.feed(json.dumps(line).encode(), now=0.0)

    def canary(self, answer: str, token: str | None = None) -> None:
        self.answer({"token": token or self.token, "canary": answer}, "")

    def start(self) -> None:
        self.canary("live")
        self.begin()

    def verdict(self, call: str, decision: str, token: str | None = None) -> None:
        own = {"token": token or self.token, "tool_use_id": call, "tool": "Bash"}
        more = {} if decision == "allow" else {"part": "p", "reason": "r"}
        self.answer({**own, "decision": decision, **more}, call)

    @property
    def breach(self) -> str:
        """Return why the session must end, or ""."""
        error = self.reader.breach
        assert error is None or isinstance(error, GuardNotLive)
        return str(error or "")

    @property
    def denied(self) -> list[GuardDenied]:
        return [event for event in self.events if isinstance(event, GuardDenied)]


class Claude(Session):
    def open(self) -> None:
        self.reader = ClaudeSession(watch=GuardWatch(TOKEN))

    def answer(self, own: dict[str, Any], call: str) -> None:
        line = {"type": "system", "subtype": "hook_response", "hook_event": "PreToolUse"}
        self.feed({**line, "stdout": json.dumps({"cuggino": own}) + "\n"})

    def begin(self) -> None:
        self.feed({"type": "system", "subtype": "init", "session_id": "s"})

    def end(self, call: str, *, ran: bool) -> None:
        use = {"type": "tool_use", "id": call, "name": "Bash", "input": {}}
        done = {"type": "tool_result", "tool_use_id": call, "content": "", "is_error": not ran}
        self.feed(
            {"type": "assistant", "message": {"id": "m", "content": [use]}},
            {"type": "user", "message": {"content": [done]}},
            {"type": "result", "subtype": "success", "is_error": False, "result": "ok"},
        )


class Logged(Session):
    """A session whose hook logs its verdicts."""

    log: Path

    def write(self, own: dict[str, Any], **call: Any) -> None:
        with self.log.open("a") as file:
            file.write(json.dumps({**own, **call}) + "\n")


class Codex(Logged):
    despite = "without its verdict"
    """Codex reports no denied call, so a verdict that denies stands for no call that ran."""

    def open(self) -> None:
        policy = role_policy("implementing", project=self.folder, level="roles")
        self.guard = make_codex_guard(policy, {"PATH": "/usr/bin:/bin"}, self.stack)
        self.token, self.log = self.guard.guard.token, self.guard.log.path
        self.reader = CodexSession(watch=CodexWatch(self.guard))

    def answer(self, own: dict[str, Any], call: str) -> None:
        self.write(own, cwd=str(self.folder), input={"command": call})
        self.feed({"type": "turn.started"})

    def begin(self) -> None:
        message = {"id": "i", "type": "agent_message", "text": "hi"}
        self.feed({"type": "item.completed", "item": message})

    def end(self, call: str, *, ran: bool) -> None:
        command = shlex.join(["/bin/bash", "-lc", in_bash(call, self.guard.bash, str(self.folder))])
        item = {"id": call, "type": "command_execution", "command": command}
        self.feed({"type": "item.started", "item": item} if ran else {"type": "turn.started"})


class Gemini(Logged):
    def open(self) -> None:
        self.log = self.folder / "verdicts"
        self.log.touch()
        self.reader = GeminiSession(cwd="/p", watch=GeminiWatch(VerdictLog(self.log, TOKEN)))

    def answer(self, own: dict[str, Any], call: str) -> None:
        self.write(own, tool_use_id=None, name="run_shell_command", input={"command": call})

    def begin(self) -> None:
        self.feed({"type": "init", "session_id": "s"})

    def end(self, call: str, *, ran: bool) -> None:
        given = {"tool_name": "run_shell_command", "parameters": {"command": call}}
        self.feed(
            {"type": "tool_use", "tool_id": call, **given},
            {"type": "tool_result", "tool_id": call, "status": "success" if ran else "error"},
        )


class OpenCode(Session):
    is_signed = False
    """The plugin checks the token."""

    def open(self) -> None:
        self.reader = OpenCodeSession(watch=Watch())

    def _part(self, call: str, **state: Any) -> dict[str, Any]:
        return {"id": call, "type": "tool", "tool": "bash", "callID": call, "state": state}

    def answer(self, own: dict[str, Any], call: str) -> None:
        verdict = {"verdict": own, "call": self._part(call, input={})}
        self.feed({"type": "cuggino", **(own if "canary" in own else verdict)})

    def begin(self) -> None:
        self.feed({"type": "step_start", "part": {"type": "step-start"}})

    def end(self, call: str, *, ran: bool) -> None:
        status = "completed" if ran else "error"
        self.feed({"type": "tool_use", "part": self._part(call, status=status, input={})})


class Copilot(Session):
    """Its calls are judged in this process, which tries that out before the session."""

    is_signed = False

    def open(self) -> None:
        guard = make_guard(Policy(project=str(self.folder), level="roles"))
        self.reader = Gate(cwd=self.folder, unattended=True, guard=guard, tell=self.events.append)

    def _see(self, kind: str, call: str, **data: Any) -> None:
        self.reader.see({"type": f"tool.execution_{kind}", "data": {"toolCallId": call, **data}})

    def answer(self, own: dict[str, Any], call: str) -> None:
        given = {"command": call}
        self._see("start", call, toolName="bash", arguments=given)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Orders, "verdict", lambda *_given, **_named: own)
            asyncio.run(self.reader.before_tool({"toolName": "bash", "toolArgs": given}))

    def begin(self) -> None:
        pass

    def start(self) -> None:
        pass

    def end(self, call: str, *, ran: bool) -> None:
        self._see("complete", call, success=ran)


def provided(*kinds: type[Session]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("session", kinds, indirect=True, ids=lambda kind: kind.__name__)


PROVIDERS = (Claude, Codex, Gemini, OpenCode, Copilot)
STARTED = PROVIDERS[:4]
"""Providers whose hook is a program, which has to prove that it runs."""
LOGGED = (Codex, Gemini)


@pytest.fixture
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    with ExitStack() as stack:
        yield request.param(tmp_path, stack)


@provided(*PROVIDERS)
def test_a_judged_call(session: Session) -> None:
    """A call that ran with its verdict is no breach, and neither is a denied one that did not."""
    session.start()
    session.verdict("a", "allow")
    session.end("a", ran=True)
    session.verdict("b", "deny")
    session.end("b", ran=False)
    assert "" == session.breach


@provided(*PROVIDERS)
def test_a_denied_call(session: Session) -> None:
    """A denial is reported once, however often the hook gives it."""
    session.start()
    for _ in range(1 if isinstance(session, Gemini) else 2):  # Gemini's has no id
        session.verdict("a", "deny")
    session.end("a", ran=False)
    assert [GuardDenied(tool="Bash", tool_use_id="a", part="p", reason="r")] == session.denied


@provided(*PROVIDERS)
@pytest.mark.parametrize("verdicts", [[], [("b", "allow")], [("b", "deny")]])
def test_a_call_without_its_verdict(session: Session, verdicts: list[tuple[str, str]]) -> None:
    """A call that ran without a verdict ends the session; that on another call does not count."""
    session.start()
    for call, decision in verdicts:
        session.verdict(call, decision)
    if isinstance(session, Gemini) and verdicts == [("b", "allow")]:
        session.end("b", ran=True)  # a marked call may run with an input that was changed
    session.end("a", ran=True)
    assert "was used without its verdict" in session.breach


@provided(*PROVIDERS)
def test_a_call_despite_its_verdict(session: Session) -> None:
    """A call that ran although it was denied ends the session, whatever else the hook answers."""
    session.start()
    session.verdict("a", "deny")
    if session.despite.startswith("despite"):
        session.verdict("a", "allow")
    session.end("a", ran=True)
    assert f"was used {session.despite}" in session.breach


@provided(*STARTED)
def test_without_a_canary(session: Session) -> None:
    """A session whose hook did not answer at its start ends when it begins to work."""
    assert "" == session.breach
    session.begin()
    assert "did not run its hook" in session.breach or "at the start" in session.breach


@provided(*STARTED)
def test_a_failed_canary(session: Session) -> None:
    """The canary's message is why the session ends, and later breaches do not hide it."""
    session.canary("the parser is gone")
    session.begin()
    session.end("a", ran=True)
    assert "not live: the parser is gone" in session.breach


@provided(*(kind for kind in PROVIDERS if kind.is_signed))
def test_another_token(session: Session) -> None:
    """An answer without the session's token is none: neither a verdict nor the canary."""
    session.start()
    session.verdict("a", "allow", token="other")
    session.end("a", ran=True)
    assert "was used without its verdict" in session.breach


@provided(*(kind for kind in STARTED if kind.is_signed))
def test_a_canary_with_another_token(session: Session) -> None:
    """A canary without the session's token does not count."""
    session.canary("live", token="other")
    session.begin()
    assert "at the start" in session.breach


@provided(*LOGGED)
def test_a_log_that_is_gone(session: Session) -> None:
    """A session whose verdicts cannot be read ends."""
    session.start()
    assert isinstance(session, Logged)
    session.log.unlink()
    session.end("a", ran=True)
    assert "the file of its verdicts is gone" in session.breach


def test_lines_of_a_growing_log(tmp_path: Path) -> None:
    """Each complete verdict is read once, an unfinished one when complete, and noise never."""
    log = VerdictLog(tmp_path / "log", "t")
    with pytest.raises(FileNotFoundError):
        log.read()
    log.path.write_bytes(b'{"token":"t","n":1}\nnoise\n\xff\n{"token":"other"}\n{"token":"t","n"')
    assert [1] == [own["n"] for own in log.read()]
    assert [] == log.read()
    with log.path.open("ab") as file:
        file.write(b':2}\n[]\n{"token":"t","n":3}\n')
    assert [2, 3] == [own["n"] for own in log.read()]


NAMES = st.sampled_from(["a", "b"])
VERDICTS = st.builds(
    Verdict,
    tool=NAMES,
    is_allowed=st.booleans(),
    call=st.none() | NAMES,
    keys=st.lists(NAMES, max_size=2).map(tuple),
)
SEEN = st.one_of(
    VERDICTS,
    st.builds(Canary, st.sampled_from(["live", "broken"])),
    st.builds(Used, VERDICTS, NAMES),
    st.builds(Failed, st.just("gone")),
)


@given(st.lists(SEEN, max_size=8))
def test_steps(steps: list[Any]) -> None:
    """The first breach stays, an approval denies nothing, and a verdict is used up once."""
    state = Watched()
    for seen in steps:
        after, denied = step(state, seen)
        assert state.breach in ("", after.breach)
        match seen:
            case Canary() | Failed():
                assert after.breach or after.is_live
            case Used(verdict=verdict):
                left = max(0, state.verdicts.count(verdict) - 1)
                assert left == after.verdicts.count(verdict)
                assert (not verdict.is_allowed) == bool(denied)
            case Verdict():
                assert after.verdicts.count(seen) - state.verdicts.count(seen) == bool(seen.keys)
                assert not (denied and (seen.is_allowed or seen.call in state.reported))
            case _:
                raise AssertionError(seen)
        state = after


def test_a_denial_comes_first() -> None:
    """Of several verdicts on one call, one that denies counts."""
    watch = Watch()
    for is_allowed in (True, False, True):
        watch.see(Verdict(tool="Bash", is_allowed=is_allowed, keys=("a", "b")))
    for keys in (("a",), ("c", "b")):
        found = watch.find(*keys)
        assert found is not None
        assert not found.is_allowed
    assert watch.find("c") is None
