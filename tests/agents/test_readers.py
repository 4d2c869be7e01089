"""What every provider's reader makes of odd output: noise, repeated results, images, last words."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from cuggino import events as ev
from cuggino.agents.acp.guard import Judge
from cuggino.agents.acp.wire import AcpSession
from cuggino.agents.base import SpawnOptions
from cuggino.agents.base.failure import PlainLines
from cuggino.agents.base.reader import LineReader
from cuggino.agents.base.wire import Json, output_text, parse_json_line
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.agents.codex.wire import CodexSession
from cuggino.agents.copilot.wire import CopilotSession
from cuggino.agents.gemini.wire import GeminiSession
from cuggino.agents.opencode.wire import OpenCodeSession
from cuggino.errors import AgentFailed, LlmSessionError, QuotaExceeded
from tests.agents.acp.scripts import PROFILE
from tests.vectors import DATA

NOW = 1_795_289_780.0
PIXELS = base64.b64encode(b"\x89PNG" * 375_000).decode()
PNG = "[image/png, 1.5 MB]"
SAID = "<DONE>x</DONE>"
PART = {"type": "image", "data": PIXELS, "mimeType": "image/png"}
"""An image of the Model Context Protocol, and of the Agent Client Protocol."""
URL = f"data:image/png;base64,{PIXELS}"


@dataclass(frozen=True, kw_only=True)
class Program:
    """What a program prints in a session: its lines, and the index of those that carry usage."""

    reader: Callable[[], Any]
    lines: tuple[Json, ...]
    counts: tuple[int, ...]
    usage: ev.Usage
    image: Json
    """The line with the result of a tool that returned an image and the text "saved"."""
    before_image: tuple[Json, ...] = ()


def _anthropic(**fields: Any) -> Json:
    return {"parent_tool_use_id": None, "session_id": "s", **fields}


def _answer(*content: Json, **fields: Any) -> Json:
    return _anthropic(type="assistant", message={"id": "m", "content": list(content)}, **fields)


def _opencode(kind: str, **part: Any) -> Json:
    part = {"messageID": "m", "sessionID": "s", **part}
    return {"type": kind, "timestamp": 1, "sessionID": "s", "part": part}


def _acp(**update: Any) -> Json:
    params = {"sessionId": "s", "update": update}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def _copilot(kind: str, number: int, **data: Any) -> Json:
    return {"id": f"e{number}", "type": kind, "data": data}


def _acp_session() -> AcpSession:
    options = SpawnOptions(prompt="go", cwd=Path("/p"))
    judge = Judge(cwd=options.cwd, unattended=True)
    return AcpSession(replace(PROFILE, mode=None), options, judge.verdict)


CLAUDE = Program(
    reader=ClaudeSession,
    lines=(
        _anthropic(type="system", subtype="init", claude_code_version="2.1.329"),
        _answer({"type": "text", "text": SAID}),
        _anthropic(
            type="result",
            subtype="success",
            is_error=False,
            result="x",
            num_turns=1,
            total_cost_usd=0.5,
            usage={"input_tokens": 7, "output_tokens": 3},
            uuid="u1",
        ),
    ),
    counts=(2,),
    usage=ev.Usage(input_tokens=7, output_tokens=3),
    image=_anthropic(
        type="user",
        message={
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t",
                    "content": [
                        {"type": "text", "text": "saved"},
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": PIXELS},
                        },
                    ],
                }
            ]
        },
    ),
)
CODEX = Program(
    reader=CodexSession,
    lines=(
        {"type": "thread.started", "thread_id": "s"},
        {"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": SAID}},
        {"type": "turn.completed", "usage": {"input_tokens": 7, "output_tokens": 3}},
    ),
    counts=(2,),
    usage=ev.Usage(input_tokens=7, output_tokens=3),
    image={
        "type": "item.completed",
        "item": {
            "id": "t",
            "type": "mcp_tool_call",
            "server": "pw",
            "tool": "shot",
            "status": "completed",
            "result": {"content": [{"type": "text", "text": "saved"}, PART]},
        },
    },
)
GEMINI = Program(
    reader=GeminiSession,
    lines=(
        {"type": "init", "session_id": "s"},
        {"type": "message", "role": "assistant", "content": SAID, "delta": True},
        {
            "type": "result",
            "status": "success",
            "stats": {"total_tokens": 10, "input_tokens": 7, "output_tokens": 3},
        },
    ),
    counts=(2,),
    usage=ev.Usage(input_tokens=7, output_tokens=3),
    image={
        "type": "tool_result",
        "tool_id": "t",
        "status": "success",
        "output": [{"text": "saved"}, {"inlineData": {"mimeType": "image/png", "data": PIXELS}}],
    },
)
OPENCODE = Program(
    reader=OpenCodeSession,
    lines=(
        _opencode("text", id="p1", type="text", text=SAID, time={"start": 1, "end": 2}),
        _opencode(
            "step_finish",
            id="p2",
            type="step-finish",
            reason="stop",
            tokens={"input": 7, "output": 3, "reasoning": 0, "cache": {"read": 0, "write": 0}},
            cost=0.5,
        ),
    ),
    counts=(1,),
    usage=ev.Usage(input_tokens=7, output_tokens=3),
    image=_opencode(
        "tool_use",
        id="p3",
        type="tool",
        tool="webfetch",
        callID="t",
        state={
            "status": "completed",
            "input": {},
            "output": "saved",
            "attachments": [{"type": "file", "mime": "image/png", "url": URL}],
        },
    ),
)
ACP = Program(
    reader=_acp_session,
    lines=(
        {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1}},
        {"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}},
        _acp(sessionUpdate="agent_message_chunk", content={"type": "text", "text": SAID}),
        {
            "jsonrpc": "2.0",
            "id": 3,
            "result": {"stopReason": "end_turn", "usage": {"inputTokens": 7, "outputTokens": 3}},
        },
    ),
    counts=(3,),
    usage=ev.Usage(input_tokens=7, output_tokens=3),
    image=_acp(
        sessionUpdate="tool_call_update",
        toolCallId="t",
        status="completed",
        content=[
            {"type": "content", "content": {"type": "text", "text": "saved"}},
            {"type": "content", "content": PART},
        ],
    ),
)
COPILOT = Program(
    reader=CopilotSession,
    lines=(
        _copilot("session.start", 1, sessionId="s"),
        _copilot("user.message", 2, content="go"),
        _copilot("assistant.message", 3, content=SAID, messageId="m"),
        _copilot("assistant.usage", 4, inputTokens=7, outputTokens=3),
        _copilot("session.idle", 5),
    ),
    counts=(3,),
    usage=ev.Usage(input_tokens=7, output_tokens=3),
    image=_copilot(
        "tool.execution_complete",
        6,
        toolCallId="t",
        success=True,
        result={"content": "saved", "contents": [{"type": "text", "text": "saved"}, PART]},
    ),
)
PROGRAMS = {
    "claude": CLAUDE,
    "codex": CODEX,
    "gemini": GEMINI,
    "opencode": OPENCODE,
    "acp": ACP,
    "copilot": COPILOT,
}
PRINTING = [name for name in PROGRAMS if name != "copilot"]
"""Programs whose messages are lines; the messages of Copilot come from its SDK as objects."""
NOISE: dict[str, Callable[[bytes], bytes]] = {
    "modes and a title before": lambda line: b"\x1b[?2004h\x1b]0;agent\x07" + line,
    "a link before": lambda line: b"\x1b]8;;http://x\x1b\\\x1b]8;;\x1b\\" + line,
    "a title without an end": lambda line: b"\x1b]0;agent" + line,
    "a sequence that was cut off": lambda line: b"\x1b[38;5" + line,
    "a character set and a keypad": lambda line: b"\x1b(B\x1b=" + line,
    "sequences after": lambda line: line + b"\x1b[0m\x1b[?25h",
    "a byte order mark": lambda line: b"\xef\xbb\xbf" + line,
    "a carriage return": lambda line: line + b"\r",
    "carriage returns around": lambda line: b"\r" + line + b"\r\r",
    "a spinner": lambda line: b"\r\x1b[K\xe2\xa0\x8b Working {3}... " + line,
    "controls of 8 bits in UTF-8": lambda line: "\x9b31m\x9d0;title\x9c".encode() + line,
    "raw controls of 8 bits": lambda line: b"\x9b31m\x9d0;title\x9c" + line + b"\x9b0m",
    "words after": lambda line: line + b" done {x",
    "a bell and a null": lambda line: b"\x07" + line + b"\0",
}


def read(program: Program, lines: Iterable[Json | bytes]) -> tuple[list[ev.Event], ev.SessionEnded]:
    """Feed the lines, end the session without an error, and return its events and its end."""
    session = program.reader()
    events: list[ev.Event] = []
    is_text = program is not COPILOT
    for line in lines:
        fed = json.dumps(line).encode() if is_text and isinstance(line, dict) else line
        events += session.feed(fed, now=NOW)
    ended, error = session.end(duration=1.0, now=NOW)
    assert error is None
    return events, ended


def plain(program: Program) -> tuple[list[ev.Event], ev.SessionEnded]:
    events, ended = read(program, program.lines)
    said = "".join(event.text for event in events if isinstance(event, ev.AgentMessage))
    assert (SAID, "completed", program.usage) == (said, ended.outcome, ended.usage)
    return events, ended


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("name", PRINTING)
def test_noise_around_json(name: str, noise: str) -> None:
    """A session whose every line has noise around its JSON reads as without it."""
    program = PROGRAMS[name]
    noisy = [NOISE[noise](json.dumps(line).encode()) for line in program.lines]
    assert plain(program) == read(program, noisy)


@pytest.mark.parametrize("name", [name for name in PRINTING if name != "acp"])
def test_messages_on_one_line(name: str) -> None:
    """Messages without ends of line between them are all read."""
    program = PROGRAMS[name]
    glued = b" \x1b[0m".join(json.dumps(line).encode() for line in program.lines)
    assert plain(program) == read(program, [glued])


def test_another_session_in_between() -> None:
    """The beginning, the answer and the result of another session are not those of this one."""
    begin, answer, result = CLAUDE.lines
    other = {"session_id": "other"}
    failed = {**result, **other, "uuid": "u9", "is_error": True, "result": "boom"}
    lines = [begin, {**begin, **other}, {**answer, **other}, failed, answer, result]
    events, ended = read(CLAUDE, lines)
    said = [event.text for event in events if isinstance(event, ev.AgentMessage)]
    assert ([SAID], plain(CLAUDE)[1]) == (said, ended)


@pytest.mark.parametrize("name", PRINTING)
@pytest.mark.parametrize(
    "line",
    [
        *(b"nvm: using node 22", b'{"level":"info","msg":"up"}', b"[1]", b"", b"\x1b[2J", b"null"),
        *(b"{", b"\xff\xfe", b'{"type":"later.than.this"}', b'{"type":1}'),
    ],
)
def test_foreign_lines(name: str, line: bytes) -> None:
    """Lines of other programs, first and in between, change neither events nor outcome."""
    program = PROGRAMS[name]
    between = [one for own in program.lines for one in (line, json.dumps(own).encode())]
    events, ended = read(program, between)
    kept = [event for event in events if not isinstance(event, ev.PingEvent)]
    expected, end = plain(program)
    assert [event for event in expected if not isinstance(event, ev.PingEvent)] == kept
    assert end == ended


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_usage_that_is_reported_twice(name: str) -> None:
    """A line with usage that comes twice, at once and at the end, counts once."""
    program = PROGRAMS[name]
    twice = [
        x for n, line in enumerate(program.lines) for x in [line] * (1 + (n in program.counts))
    ]
    again = [program.lines[n] for n in program.counts]
    _, ended = read(program, [*twice, *again])
    assert plain(program)[1] == ended


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_image(name: str) -> None:
    """An image in a tool's result is named by its type and size, after the text beside it."""
    program = PROGRAMS[name]
    begin = program.lines[:2] if name == "acp" else ()
    session = program.reader()
    events: list[ev.Event] = []
    for line in (*begin, program.image):
        fed = line if name == "copilot" else json.dumps(line).encode()
        events += session.feed(fed, now=NOW)
    outputs = [event.output for event in events if isinstance(event, ev.ToolResult)]
    assert [f"saved\n{PNG}"] == outputs


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (PART, PNG),
        ({**PART, "type": "audio", "mimeType": "audio/wav"}, "[audio/wav, 1.5 MB]"),
        ({"type": "audio", "data": PIXELS}, "[audio, 1.5 MB]"),
        ({**PART, "data": "iVBORw0KGgo="}, "[image/png, 8 B]"),
        ({**PART, "data": "iVBORw0K\r\nGgo=\n"}, "[image/png, 8 B]"),
        (
            {"type": "resource", "resource": {"uri": "f", "mimeType": "font/otf", "blob": PIXELS}},
            "[font/otf, 1.5 MB]",
        ),
        ({"type": "resource", "resource": {"uri": "file:///a", "text": "words"}}, "words"),
        (
            {"type": "resource_link", "uri": "file:///a.png", "mimeType": "image/png"},
            "[image/png, file:///a.png]",
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "https://x/y"}},
            "[image, https://x/y]",
        ),
        (
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": PIXELS},
            },
            "[application/pdf, 1.5 MB]",
        ),
        ({"type": "document", "source": {"type": "text", "data": "words"}}, "words"),
        ({"type": "input_image", "image_url": URL}, PNG),
        ({"type": "image_url", "image_url": {"url": URL}}, PNG),
        ({"type": "text", "text": URL}, PNG),
        (URL, PNG),
        ({"type": "text", "text": f"![page]({URL})"}, f"![page]({PNG})"),
        (
            {"type": "text", "text": json.dumps({"data": PIXELS, "n": 1})},
            '{"data": "[base64, 1.5 MB]", "n": 1}',
        ),
        ({"type": "text", "text": "data:a/b;base64,R0 is short"}, "data:a/b;base64,R0 is short"),
        ({"x": {"data": PIXELS}}, '{"x":{"data":"[base64, 1.5 MB]"}}'),
        ({"source": {"bytes": "/9j/" + PIXELS}}, '{"source":{"bytes":"[image/jpeg, 1.5 MB]"}}'),
        ({"type": "text", "text": json.dumps({"shot": PIXELS})}, '{"shot": "[base64, 1.5 MB]"}'),
        (
            {"type": "image", "mimeType": "image/png", "byteLength": 2_000_000},
            "[image/png, 2.0 MB]",
        ),
        ({"shots": [{"url": URL}, URL], "n": 2}, f'{{"shots":["{PNG}","{PNG}"],"n":2}}'),
        ({"type": "image", "source": {"x": 1}}, '{"type":"image","source":{"x":1}}'),
        ({"data": "two words", "mimeType": "text/plain"}, None),
        ({"type": "tool_reference", "tool_name": "x"}, None),
        ("words", '"words"'),
    ],
)
def test_parts_of_results(part: Any, expected: str | None) -> None:
    """A part is its text, or its type and decoded size or address; other values stay JSON."""
    whole = expected or json.dumps(part, separators=(",", ":"))
    assert [f"a\n{whole}"] == [output_text([{"type": "text", "text": "a"}, part])]


@pytest.mark.parametrize(
    "line",
    [
        b'API Error: 429 {"type":"error","error":{"type":"rate_limit_error"}}',
        b'Debug: read config {"model":"x"}',
        b'Warning: {"type":"system"',
    ],
)
def test_json_within_a_sentence(line: bytes) -> None:
    """A sentence that quotes JSON is no message, and stays whole for the error."""
    lines = PlainLines()
    lines.add(line)
    assert parse_json_line(line) is None
    assert line.decode() == lines.after("")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"\x1b[1;31mnot enrolled\x1b[0m\r", "not enrolled"),
        (b"\x1b]0;title\x07 10 %\r\x1b[K 20 %\rnot enrolled", "not enrolled"),
        (b"\xef\xbb\xbfnot enrolled", "not enrolled"),
        (b"[error] not enrolled", "[error] not enrolled"),
        (b"[12:00:01] not enrolled", "[12:00:01] not enrolled"),
        (b'\x1b[0m{"type":"assistant","mess', ""),
        (b"[", ""),
        (b"\x1b[?25h", ""),
        (b"\x9b31mnot enrolled\x9b0m", "not enrolled"),
        (b'{"error":{"message":"not enrolled"}}', '{"error":{"message":"not enrolled"}}'),
        (b'{"error":"not enrolled"}', '{"error":"not enrolled"}'),
        (b'{"level":"info","error":null}', ""),
    ],
)
def test_plain_lines(line: bytes, expected: str) -> None:
    """Plain text is kept as a terminal shows it, without parts of JSON."""
    lines = PlainLines()
    lines.add(line)
    assert expected == lines.after("")


def test_noisy_halves_of_a_character() -> None:
    """A surrogate pair in two noisy lines is joined, as in clean ones."""
    session = ClaudeSession()

    def fed(**event: Any) -> list[ev.LlmAgentEvent]:
        line = json.dumps(_anthropic(type="stream_event", event=event)).encode()
        return session.feed(b"\x1b[?2004h" + line + b"\r", now=NOW)

    fed(type="message_start", message={"id": "m"})
    deltas = [
        event.text
        for half in ("\ud83d", "\ude00")
        for event in fed(
            type="content_block_delta", index=0, delta={"type": "text_delta", "text": half}
        )
        if isinstance(event, ev.MessageDelta)
    ]
    assert ["\U0001f600"] == deltas


def test_results_of_one_run() -> None:
    """Two results of a run count both, as background tasks add their own."""
    first = CLAUDE.lines[2]
    lines = [*CLAUDE.lines, {**first, "uuid": "u2"}, first, {**first, "uuid": "u2"}]
    _, ended = read(CLAUDE, lines)
    assert (2, ev.Usage(input_tokens=14, output_tokens=6)) == (ended.num_turns, ended.usage)
    unnamed = {name: value for name, value in first.items() if name != "uuid"}
    lines = [*CLAUDE.lines[:2], unnamed, unnamed, {**unnamed, "num_turns": 2}]
    _, ended = read(CLAUDE, lines)
    assert (3, ev.Usage(input_tokens=14, output_tokens=6)) == (ended.num_turns, ended.usage)


TOLD_AT = datetime(2026, 10, 6, 12, tzinfo=UTC)
LIMIT_WORDS = "You've hit your limit · resets 2pm (Europe/Lisbon)"

READERS = (ClaudeSession, CodexSession, GeminiSession, OpenCodeSession)
Reader = Callable[..., LineReader]


def error_of(kind: Reader, *lines: str, stderr: str = "") -> LlmSessionError | None:
    reader = kind(zone=lambda: ZoneInfo("Europe/Rome"))
    for line in lines:
        list(reader.feed(line.encode(), now=TOLD_AT.timestamp()))
    return reader.end(exit_code=1, stderr_tail=stderr, duration=1.0, now=TOLD_AT.timestamp())[1]


@pytest.mark.parametrize("kind", READERS)
def test_a_reason_on_either_pipe(kind: Reader) -> None:
    """The error has the plain lines of the output and of standard error, and no event."""
    said = "corp-wrapper: this host is not enrolled"
    for lines, stderr in (([said, '{"unknown": "event"}'], ""), ([], f"{said}\n")):
        error = error_of(kind, *lines, stderr=stderr)
        assert isinstance(error, AgentFailed)
        assert said in error.message
        assert "event" not in error.message
    both = error_of(kind, said, stderr="a warning\n")
    assert both is not None
    assert f"a warning\n{said}" in both.message


@pytest.mark.parametrize("kind", READERS)
def test_braces_around_a_reason(kind: Reader) -> None:
    """Only the beginning of an object is taken for JSON."""
    error = error_of(kind, "{this host is not enrolled}", "{", '{"a": 1}')
    assert isinstance(error, AgentFailed)
    assert error.message.endswith(": {this host is not enrolled}")


def test_a_usage_limit_on_the_output() -> None:
    """Claude Code prints its limit as plain text, with the time of the reset."""
    error = error_of(ClaudeSession, LIMIT_WORDS)
    assert isinstance(error, QuotaExceeded)
    assert datetime(2026, 10, 6, 13, tzinfo=UTC) == error.resets_at


@pytest.mark.parametrize(
    ("kind", "name", "exit_code", "outcome", "reason"),
    [
        (CodexSession, "codex/err-400", 1, "failed", "bad_request"),
        (CodexSession, "codex/err-401", 1, "failed", "auth"),
        (CodexSession, "codex/err-429", 1, "failed", "rate_limit"),
        (CodexSession, "codex/err-500-noretry", 1, "failed", "server"),
        (CodexSession, "codex/drop", 1, "failed", "connection"),
        (CodexSession, "codex/connrefused-bounded0", 1, "failed", "connection"),
        (GeminiSession, "gemini/err-400", 144, "failed", "bad_request"),
        (GeminiSession, "gemini/err-401", 145, "failed", "auth"),
        (GeminiSession, "gemini/err-429-max2", 173, "failed", "rate_limit"),
        (GeminiSession, "gemini/connrefused-max2", 1, "failed", "connection"),
        (GeminiSession, "gemini/drop", 0, "failed", "connection"),
        (GeminiSession, "gemini/kill-SIGTERM-sleep-norelaunch", 0, "failed", "crash"),
        (GeminiSession, "gemini/kill-SIGTERM-sleep-norelaunch", 130, "interrupted", "aborted"),
        (OpenCodeSession, "opencode/err-401", 1, "failed", "auth"),
        (OpenCodeSession, "opencode/err-429", 1, "failed", "rate_limit"),
        (OpenCodeSession, "opencode/connrefused", 1, "failed", "connection"),
    ],
)
def test_recorded_failures(
    kind: Reader, name: str, exit_code: int, outcome: str, reason: str
) -> None:
    """A recorded failure has its reason, and each message of the program is emitted once."""
    session = kind(zone=lambda: UTC)
    events: list[ev.LlmAgentEvent] = []
    for line in (DATA / f"{name}.jsonl").read_bytes().splitlines():
        events += session.feed(line, now=NOW)
    ended, error = session.end(exit_code=exit_code, duration=1.0, now=NOW)
    assert isinstance(error, AgentFailed)
    assert (outcome, reason) == (ended.outcome, error.reason)
    told = [event.text for event in events if isinstance(event, ev.SystemMessage)]
    assert kind is not CodexSession or len(told) == len(set(told)) > 1
    assert kind is not CodexSession or "{" not in error.message
