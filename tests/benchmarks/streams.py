"""A large stream of Claude Code, and a fake `claude` program that prints it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

_SESSION = "0193b2c1-0000-7000-8000-000000000000"


def _line(**fields: object) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _delta(number: int) -> bytes:
    text = f"and then {number} more words of it, "
    return _line(
        type="stream_event",
        event={
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": text},
        },
        session_id=_SESSION,
        parent_tool_use_id=None,
        uuid=f"{number:032}",
    )


def _round(number: int) -> Iterator[bytes]:
    """Yield thirty lines: twenty deltas, then messages, calls and results."""
    message = {"id": f"msg_{number}", "role": "assistant", "model": "m", "type": "message"}
    usage = {"input_tokens": 10, "output_tokens": 100, "cache_read_input_tokens": 1000}
    for part in range(20):
        yield _delta(number * 20 + part)
    text = f"I look at part {number} of it now. " * 30
    yield _line(
        type="assistant",
        message={**message, "content": [{"type": "text", "text": text}], "usage": usage},
        session_id=_SESSION,
        parent_tool_use_id=None,
    )
    for call in range(4):
        name = f"toolu_{number}_{call}"
        given = {"command": f"sed -n '{call},40p' src/module_{number}.py"}
        block = {"type": "tool_use", "id": name, "name": "Bash", "input": given}
        yield _line(
            type="assistant",
            message={**message, "content": [block], "usage": usage},
            session_id=_SESSION,
            parent_tool_use_id=None,
        )
        output = "".join(f"    value_{line} = compute({line})\n" for line in range(25))
        yield _line(
            type="user",
            message={
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": name, "content": output}],
            },
            session_id=_SESSION,
            parent_tool_use_id=None,
        )
    yield _line(type="system", subtype="status", session_id=_SESSION)


def lines(rounds: int) -> Iterator[bytes]:
    """Yield the lines of one session: thirty a round, with its start and end."""
    yield _line(
        type="system", subtype="init", session_id=_SESSION, claude_code_version="2.1.329", model="m"
    )
    for number in range(rounds):
        yield from _round(number)
    content = [{"type": "text", "text": "<SPEC_ISSUE>That is all.</SPEC_ISSUE>"}]
    yield _line(
        type="assistant",
        message={"id": "msg_last", "role": "assistant", "content": content},
        session_id=_SESSION,
        parent_tool_use_id=None,
    )
    yield _line(
        type="result",
        subtype="success",
        is_error=False,
        terminal_reason="completed",
        result="That is all.",
        num_turns=rounds,
        total_cost_usd=1.0,
        session_id=_SESSION,
    )


def write_stream(path: Path, *, rounds: int) -> int:
    """Write the session and return its size in bytes."""
    with path.open("wb") as file:
        for line in lines(rounds):
            file.write(line)
    return path.stat().st_size


def write_large(path: Path, *, size: int) -> int:
    """Write a session of at least this size without holding it; return its size in bytes."""
    with path.open("wb") as file:
        last: list[bytes] = []
        for number, line in enumerate(lines(sys.maxsize)):
            file.write(line)
            if number % 1000 == 0 and file.tell() >= size:
                break
        last.extend(list(lines(0))[1:])
        file.writelines(last)
    return path.stat().st_size


def write_program(path: Path, stream: Path) -> Path:
    """Write a `claude` that prints the stream for any prompt, and supports `--version`."""
    path.write_text(
        "#!/bin/sh\n"
        'case "$1" in --version) echo "2.1.329 (Claude Code)"; exit;; esac\n'
        f"exec cat '{stream}'\n"
    )
    path.chmod(0o755)
    return path
