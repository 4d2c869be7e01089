"""Claude Agent SDK sessions with misbehaving or unusual programs."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reactivex import just, never

import cuggino
from cuggino.agents.base.guard import make_guard
from cuggino.agents.base.stream import Program
from cuggino.agents.claude_sdk import stream as claude_sdk_stream
from cuggino.agents.claude_sdk.link import ClaudeSdkLink, Order
from cuggino.agents.claude_sdk.stream import sdk_session
from cuggino.errors import AgentFailed, AgentNotFound, GuardNotLive, QuotaExceeded
from cuggino.events import (
    AgentMessage,
    GuardDenied,
    RateLimited,
    SessionEnded,
    Steered,
    ToolResult,
)
from cuggino.guard.roles import role_policy
from cuggino.sources import process_lines
from cuggino.testing import no_leaks
from tests.agents.claude.fake_claude import RESULT
from tests.real_claude import needs_sdk

# The bodies below are separate programs: those that sleep for minutes must be terminated.
from tests.sources.subscribers import Recorder

PREAMBLE = f"""
import json, os, sys, time
RESULT = {RESULT!r}

def line(**fields):
    print(json.dumps(fields), flush=True)

def say(text):
    line(type="assistant", message={{"id": "m", "content": [{{"type": "text", "text": text}}]}})

def read():
    return json.loads(sys.stdin.readline())

def reply(asked, **response):
    response = {{"subtype": "success", "request_id": asked["request_id"], "response": response}}
    line(type="control_response", response=response)

def ask(callback, **given):
    request = {{"subtype": "hook_callback", "callback_id": callback, "input": given}}
    line(type="control_request", request_id=callback, request=request)
    return read()["response"]["response"]

def begin(**told):
    asked = read()
    reply(asked, **(told or {{"hook_on_failure_supported": True}}))
    return asked["request"]["hooks"]
"""


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    needs_sdk()
    cuggino.run(process_lines(["true"]))  # the guardian process stays and keeps a pipe
    with no_leaks():
        yield


def session(folder: Path, body: str, *, guarded: bool = False, **options: Any) -> Recorder:
    """Run a session with a program of this body."""
    order = Order(**{"prompt": "Go.", "env": {}, **options.pop("order", {})})
    argv = [sys.executable, "-IS", "-c", PREAMBLE + textwrap.dedent(body)]
    policy = role_policy("implementing", project=folder, level="roles")
    guard = make_guard(policy) if guarded else None
    program = Program(argv=options.pop("argv", argv), cwd=folder, env=dict(os.environ))
    link = options.pop("link", ClaudeSdkLink)
    return Recorder(sdk_session(program, order, guard=guard, link=link), **options)


def test_an_answer(tmp_path: Path) -> None:
    """The prompt is sent when the program is ready, and stdin closes when nothing is pending."""
    body = """
    assert begin() is None
    asked = read()
    say(asked["message"]["content"] + str(asked["client_composed"]))
    assert sys.stdin.read() == ""
    line(**RESULT)
    """
    done = session(tmp_path, body, order={"prompt": "/x è"}).wait()
    assert (None, True) == (done.error, done.completed)
    assert ["/x èTrue"] == [e.text for e in done.items if isinstance(e, AgentMessage)]
    assert isinstance(done.items[-1], SessionEnded)
    assert ("completed", 0.5) == (done.items[-1].outcome, done.items[-1].cost_usd)


def test_a_message_while_the_program_works(tmp_path: Path) -> None:
    """It reaches the program as the prompt does; the input ends after the result."""
    body = """
    begin()
    read()
    message = read()
    for state in ("queued", "started"):
        line(type="command_lifecycle", command_uuid=message["uuid"], state=state)
    line(type="stream_event", event={"type": "message_start", "message": {"id": "m"}})
    say(message["message"]["content"] + str(message["client_composed"]))
    line(**RESULT)
    say(str(len(sys.stdin.read())))
    """
    done = session(tmp_path, body, order={"messages": just("/clear è")}).wait()
    said = [e.text for e in done.items if isinstance(e, AgentMessage | Steered)]
    assert ["/clear è", "/clear èTrue", "0"] == said
    assert (None, "completed") == (done.error, done.items[-1].outcome)


def test_disposal_while_it_listens(tmp_path: Path) -> None:
    """A session that waits for messages leaves nothing behind."""
    body = """
    begin()
    say(read()["message"]["content"])
    time.sleep(600)
    """
    recorder = session(tmp_path, body, order={"messages": never()})
    recorder.wait_first()
    recorder.subscription.dispose()
    assert "SessionEnded" not in [event.tag for event in recorder.items]


def test_a_long_prompt_and_a_slow_reader(tmp_path: Path) -> None:
    """A prompt larger than the pipe waits for the program to read it."""
    body = """
    begin()
    time.sleep(0.3)  # the program lets the pipe fill up
    say(str(len(read()["message"]["content"])))
    line(**RESULT)
    """
    done = session(tmp_path, body, order={"prompt": "x" * 2_000_000}).wait()
    assert ["2000000"] == [e.text for e in done.items if isinstance(e, AgentMessage)]


def test_noise(tmp_path: Path) -> None:
    """Invalid lines and unknown messages are ignored."""
    body = r"""
    for noise in ("", "[]", "{", "[SandboxDebug] x", "null", '{"type": 3}', "\xff", "[" * 100000):
        print(noise, flush=True)
    begin()
    line(type="assistant", message={"content": [{"type": "text"}]})
    line(type="user")
    line(type="system")
    line(type="of a newer program", request_id=[])
    line(type="control_response", response={"request_id": "x"})
    line(type="control_request", request_id="y", request={"subtype": "new"})
    line(type="control_cancel_request", request_id="z")
    say("still here")
    line(**RESULT)
    """
    done = session(tmp_path, body).wait()
    assert (None, True) == (done.error, done.completed)
    assert ["still here"] == [e.text for e in done.items if isinstance(e, AgentMessage)]


def test_large_and_many_lines(tmp_path: Path) -> None:
    """Lines of many megabytes and thousands of lines at once are supported."""
    body = """
    begin()
    for number in range(1000):
        say(str(number))
    say("x" * 5_000_000)
    line(**RESULT)
    """
    done = session(tmp_path, body).wait()
    texts = [e.text for e in done.items if isinstance(e, AgentMessage)]
    assert ([str(number) for number in range(1000)], 5_000_000) == (texts[:-1], len(texts[-1]))
    assert done.completed


GUARDED = """
hooks = begin()
before = hooks["UserPromptSubmit"][0]["hookCallbackIds"][0]
tool = hooks["PreToolUse"][0]["hookCallbackIds"][0]
assert hooks["PreToolUse"][0]["onFailure"] == "block", hooks
read()
assert ask(before, hook_event_name="UserPromptSubmit") == {}
line(type="system", subtype="init", session_id="s")
call = {"tool_name": "Bash", "tool_input": {"command": "echo > .specs/a"}, "cwd": os.getcwd()}
said = ask(tool, hook_event_name="PreToolUse", tool_use_id="c", **call)
content = [{"type": "tool_result", "tool_use_id": "c", "content": "no", "is_error": True}]
line(type="user", message={"content": content})
assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
line(**RESULT)
"""


def test_a_verdict_comes_before_its_result(tmp_path: Path) -> None:
    """A denial is emitted before the program can report the result."""
    done = session(tmp_path, GUARDED, guarded=True).wait()
    assert (None, True) == (done.error, done.completed)
    seen = [e.tag for e in done.items if isinstance(e, GuardDenied | ToolResult)]
    assert ["GuardDenied", "ToolResult"] == seen


def test_a_program_that_does_not_ask(tmp_path: Path) -> None:
    """A guarded session ends before its start if the program did not call the hook."""
    body = 'begin(); read(); line(type="system", subtype="init"); time.sleep(600)'
    done = session(tmp_path, body, guarded=True).wait()
    assert isinstance(done.error, GuardNotLive)
    assert isinstance(done.items[-1], SessionEnded)


def test_a_program_that_is_too_old_to_be_guarded(tmp_path: Path) -> None:
    """A program that would run unanswered calls gets no prompt."""
    done = session(
        tmp_path, "begin(x=1); sys.stdin.readline(); time.sleep(600)", guarded=True
    ).wait()
    assert isinstance(done.error, GuardNotLive)
    assert "on_failure" in done.error.message
    assert ["SessionEnded"] == [event.tag for event in done.items]


def test_a_program_that_refuses(tmp_path: Path) -> None:
    """A refusal to start is reported."""
    body = """
    asked = read()
    response = {"subtype": "error", "request_id": asked["request_id"], "error": "not today"}
    line(type="control_response", response=response)
    time.sleep(600)
    """
    done = session(tmp_path, body).wait()
    assert isinstance(done.error, AgentFailed)
    assert ("crash", True) == (done.error.reason, "not today" in done.error.message)


@pytest.mark.parametrize("lives_on", [True, False])
def test_a_program_that_does_not_listen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lives_on: bool
) -> None:
    """A program that closes its input exits or is terminated soon; its own message counts."""
    monkeypatch.setattr(claude_sdk_stream, "LOST_SECONDS", 0.3 if lives_on else 60.0)
    # It stays until the lost link is detected, or exits shortly after.
    rest = "time.sleep(600)" if lives_on else "time.sleep(0.1); sys.exit('I am ill')"
    done = session(
        tmp_path, f"begin(); os.close(0); {rest}", order={"prompt": "x" * 2_000_000}
    ).wait()
    assert isinstance(done.error, AgentFailed)
    assert "crash" == done.error.reason
    assert ("Broken pipe" if lives_on else "I am ill") in done.error.message
    assert ["SessionEnded"] == [event.tag for event in done.items]


def test_a_link_that_fails_after_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the answer, a failure of the SDK does not fail the session, which ends soon."""

    class Failing(ClaudeSdkLink):
        def put(self, line: bytes) -> None:
            if b"result" in line:
                self._on_error(ValueError("too late"))

    monkeypatch.setattr(claude_sdk_stream, "LOST_SECONDS", 0.2)
    body = "read(); line(**RESULT); time.sleep(600)"
    done = session(tmp_path, body, link=Failing).wait()
    assert (None, True) == (done.error, done.completed)
    assert ["SessionEnded"] == [event.tag for event in done.items]


def test_a_crash(tmp_path: Path) -> None:
    """A program that ends without a result has crashed; the error shows the end of stderr."""
    done = session(tmp_path, "begin(); print('ouch', file=sys.stderr); sys.exit(3)").wait()
    assert isinstance(done.error, AgentFailed)
    assert ("crash", "claude exited with code 3: ouch") == (done.error.reason, done.error.message)


def test_a_usage_limit(tmp_path: Path) -> None:
    """A limit recognized by its message is emitted before the end."""
    body = """
    begin()
    line(**{**RESULT, "is_error": True, "result": "You've hit your usage limit."})
    sys.exit(1)
    """
    done = session(tmp_path, body).wait()
    assert isinstance(done.error, QuotaExceeded)
    assert [RateLimited(status="rejected")] == done.items[-2:-1]


def test_a_missing_program(tmp_path: Path) -> None:
    """A missing program is the only thing reported."""
    done = session(tmp_path, "", argv=[str(tmp_path / "nothing")]).wait()
    assert (True, []) == (isinstance(done.error, AgentNotFound), done.items)


def test_a_broken_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An SDK that cannot be imported ends the session with the reason."""
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    done = session(tmp_path, "time.sleep(600)").wait()
    assert isinstance(done.error, AgentFailed)
    assert "the Claude Agent SDK failed: import of claude_agent_sdk" in done.error.message
