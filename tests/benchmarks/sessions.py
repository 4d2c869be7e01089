"""Output of a coding agent: sessions in the format of Claude Code 2.1 with partial messages.

A turn has the lines of a real one, in their order and with their fields: thinking, text, two tool
calls, each with its deltas and its block as a whole, usage, and the results of the tools.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

TURN = 63
"""Lines of a turn; 38 of them are deltas."""

_SESSION = "b3b1fd3e-2d62-4ac4-95cb-6720e0ed0447"
_MODEL = "claude-opus-5-5"
_USAGE = {
    "input_tokens": 10,
    "output_tokens": 20,
    "cache_creation_input_tokens": 400,
    "cache_read_input_tokens": 12_000,
}


class _Printer:
    """The lines of one session, numbered as the program does it."""

    def __init__(self) -> None:
        self._count = 0

    def uuid(self) -> str:
        self._count += 1
        return f"{self._count:08x}-7000-4000-8000-2d5b9c1e7f30"

    def system(self, subtype: str, **fields: object) -> bytes:
        return _line(
            type="system", subtype=subtype, **fields, session_id=_SESSION, uuid=self.uuid()
        )

    def event(self, event: dict[str, object], **more: object) -> bytes:
        return _line(
            type="stream_event",
            event=event,
            session_id=_SESSION,
            parent_tool_use_id=None,
            uuid=self.uuid(),
            **more,
        )

    def delta(self, index: int, kind: str, field: str, text: str) -> bytes:
        delta = {"type": kind, field: text}
        return self.event({"type": "content_block_delta", "index": index, "delta": delta})

    def block(self, index: int, message_id: str, block: Mapping[str, object]) -> Iterator[bytes]:
        """Yield the two lines after the deltas of a block: the block as a whole, and its end."""
        message = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": _MODEL,
            "content": [block],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _USAGE,
            "context_management": None,
        }
        yield self._message("assistant", message, request_id=f"req_{self._count}")
        yield self.event({"type": "content_block_stop", "index": index})

    def begin(self, index: int, block: Mapping[str, object]) -> bytes:
        event = {"type": "content_block_start", "index": index, "content_block": block}
        return self.event(event)

    def result(self, call: str, output: str) -> bytes:
        content = {"tool_use_id": call, "type": "tool_result", "content": output, "is_error": False}
        decision = {"decision": "accept", "source": "config", "reason_type": "mode"}
        return self._message(
            "user",
            {"role": "user", "content": [content]},
            tool_use_result={"stdout": output, "stderr": "", "interrupted": False},
            tool_result_meta=[{"id": call, "permission_decision": decision}],
        )

    def _message(self, kind: str, message: object, **more: object) -> bytes:
        return _line(
            type=kind,
            message=message,
            parent_tool_use_id=None,
            session_id=_SESSION,
            uuid=self.uuid(),
            timestamp="2026-11-21T02:23:43.890Z",
            **more,
        )


def _line(**fields: object) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _turn(printer: _Printer, number: int) -> Iterator[bytes]:
    message_id = f"msg_{number:05}"
    start: dict[str, object] = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": _MODEL,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _USAGE,
    }
    yield printer.system("status", status="requesting")
    yield printer.event({"type": "message_start", "message": start}, api_message_id=message_id)

    yield printer.begin(0, {"type": "thinking", "thinking": "", "signature": ""})
    thoughts = [f"Part {number}, step {step}: what does it need? " for step in range(6)]
    for step, thought in enumerate(thoughts):
        yield printer.system("thinking_tokens", estimated_tokens=step * 5, estimated_tokens_delta=5)
        yield printer.delta(0, "thinking_delta", "thinking", thought)
    signature = "c2lnbmF0dXJl" * 20
    yield printer.delta(0, "signature_delta", "signature", signature)
    thinking = {"type": "thinking", "thinking": "".join(thoughts), "signature": signature}
    yield from printer.block(0, message_id, thinking)

    yield printer.begin(1, {"type": "text", "text": ""})
    words = [f"and then {number * 24 + part} more words of it, " for part in range(24)]
    for text in words:
        yield printer.delta(1, "text_delta", "text", text)
    yield from printer.block(1, message_id, {"type": "text", "text": "".join(words)})

    calls = [f"toolu_{number}_{call}" for call in range(2)]
    for index, call in enumerate(calls, 2):
        yield printer.begin(index, {"type": "tool_use", "id": call, "name": "Bash", "input": {}})
        given = {"command": f"sed -n '{index},40p' src/module_{number}.py", "description": "Look"}
        text = json.dumps(given)
        for at in range(0, 4 * 20, 20):
            piece = text[at : at + 20] if at < 60 else text[at:]
            yield printer.delta(index, "input_json_delta", "partial_json", piece)
        tool = {"type": "tool_use", "id": call, "name": "Bash", "input": given}
        yield from printer.block(index, message_id, tool)
    stop = {"stop_reason": "tool_use", "stop_sequence": None}
    yield printer.event({"type": "message_delta", "delta": stop, "usage": _USAGE})
    yield printer.event({"type": "message_stop"})
    output = "".join(f"    value_{line} = compute({line})\n" for line in range(25))
    for call in calls:
        yield printer.result(call, output)


def _opening(printer: _Printer) -> bytes:
    return printer.system(
        "init", cwd="/project", tools=["Bash", "Read"], model=_MODEL, claude_code_version="2.1.329"
    )


def _ending(printer: _Printer, text: str) -> Iterator[bytes]:
    yield from printer.block(0, "msg_last", {"type": "text", "text": text})
    yield _line(
        type="result",
        subtype="success",
        is_error=False,
        terminal_reason="completed",
        result=text,
        num_turns=1,
        total_cost_usd=0.01,
        usage=_USAGE,
        session_id=_SESSION,
        uuid=printer.uuid(),
    )


SPEC_ISSUE = "<SPEC_ISSUE>That is all.</SPEC_ISSUE>"
"""The last message of a session with which `cuggino run` ends."""


def session(turns: int = 0, *, ending: str = SPEC_ISSUE) -> Iterator[bytes]:
    """Yield the lines of a session: an opening, `turns` turns, and three lines with the ending."""
    printer = _Printer()
    yield _opening(printer)
    for number in range(turns):
        yield from _turn(printer, number)
    yield from _ending(printer, ending)


def talk(turns: int) -> Iterator[bytes]:
    """Yield a session that is nearly only text: 200 parts a turn, of one word each, not ASCII."""
    printer = _Printer()
    yield _opening(printer)
    for number in range(turns):
        message_id = f"msg_{number:05}"
        words = [f"più {part}€ ♥ " for part in range(200)]
        yield printer.begin(0, {"type": "text", "text": ""})
        for word in words:
            yield printer.delta(0, "text_delta", "text", word)
        yield from printer.block(0, message_id, {"type": "text", "text": "".join(words)})
    yield from _ending(printer, SPEC_ISSUE)


def whole_messages(turns: int) -> Iterator[bytes]:
    """Yield a session without partial messages: a line for each message, call and result."""
    partial = (b'{"type":"stream_event"', b'{"type":"system","subtype":"thinking_tokens"')
    return (line for line in session(turns) if not line.startswith(partial))


def long_lines(length: int, *, size: int) -> Iterator[bytes]:
    """Yield a session with tool results of `length` bytes a line, `size` bytes altogether."""
    printer = _Printer()
    yield _opening(printer)
    bare = len(printer.result("toolu_1", "")) + len("x" * 3)
    row = "    value = compute()  # with words\n"
    shown = len(json.dumps(row)) - 2
    rows = max((length - bare) // (2 * shown), 1)  # the output is in a line twice
    for _ in range(max(size // length, 1)):
        yield printer.result("toolu_1", row * rows)
    yield from _ending(printer, SPEC_ISSUE)


def write_session(path: Path, lines: Iterable[bytes]) -> int:
    """Write the lines and return their size in bytes."""
    with path.open("wb") as file:
        file.writelines(lines)
    return path.stat().st_size


def write_large(path: Path, *, size: int) -> int:
    """Write a session of at least `size` bytes without holding it; return its size in bytes."""
    printer = _Printer()
    turns = b"".join(line for number in range(20) for line in _turn(printer, number))
    with path.open("wb") as file:
        file.write(_opening(printer))
        while file.tell() < size:
            file.write(turns)
        file.writelines(_ending(printer, SPEC_ISSUE))
    return path.stat().st_size
