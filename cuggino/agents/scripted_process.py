"""The program of the scripted agent. Run by path with nothing but the standard library.

Reads its orders as JSON from standard input and plays them on standard output as Claude Code
would: an init line, a line a message, a line a tool result, a result with the cost.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def main() -> int:
    """Play the orders; gives the exit code."""
    # Like Claude Code's Bash calls, the tools run in sessions of their own, and this program does
    # not end them: whoever runs it has to.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    orders = json.load(sys.stdin)
    said = ""
    _line(
        type="system",
        subtype="init",
        session_id=orders["session_id"],
        claude_code_version="scripted",
    )
    for number, step in enumerate(orders["steps"]):
        _line(type="stream_event", event={"type": "message_start"})
        time.sleep(orders["pause"])
        if "exit" in step:
            sys.stderr.write(step["text"])
            return int(step["exit"])
        said = _play(step, number) or said
    _line(
        type="result",
        subtype="success",
        is_error=False,
        terminal_reason="completed",
        result=said,
        num_turns=len(orders["steps"]),
        total_cost_usd=orders["cost_usd"],
        session_id=orders["session_id"],
    )
    return 0


def _play(step: dict[str, Any], number: int) -> str | None:
    if "say" in step:
        text = _expanded(step["say"])
        _message(number, {"type": "text", "text": text})
        return text
    if "think" in step:
        _message(number, {"type": "thinking", "thinking": step["think"]})
    elif "sleep" in step:
        time.sleep(step["sleep"])
    elif "raw" in step:
        sys.stdout.write(step["raw"] + "\n")
        sys.stdout.flush()
    else:
        _use_tool(step, number)
    return None


def _use_tool(step: dict[str, Any], number: int) -> None:
    kind = next(kind for kind in ("write", "append", "delete", "run") if kind in step)
    # A command is left to the shell, which knows the variables itself.
    target = step[kind] if kind == "run" else _expanded(step[kind])
    text = _expanded(step["text"]).removeprefix("\n")
    name, arguments = {
        "write": ("Write", {"file_path": target, "content": text}),
        "append": ("Edit", {"file_path": target, "old_string": "", "new_string": text}),
        "delete": ("Bash", {"command": f"rm {target}"}),
        "run": ("Bash", {"command": target}),
    }[kind]
    _message(number, {"type": "tool_use", "id": f"tool_{number}", "name": name, "input": arguments})
    output, failed = _do(kind, target, text)
    result = {
        "type": "tool_result",
        "tool_use_id": f"tool_{number}",
        "content": output,
        "is_error": failed,
    }
    _line(type="user", message={"role": "user", "content": [result]}, parent_tool_use_id=None)


def _do(kind: str, target: str, text: str) -> tuple[str, bool]:
    try:
        match kind:
            case "run":
                done = subprocess.run(
                    ["/bin/sh", "-c", target],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    check=False,
                )
                output = done.stdout.decode("utf-8", "replace").rstrip("\n")
                return output, done.returncode != 0
            case "delete":
                Path(target).unlink()
            case _:
                Path(target).parent.mkdir(parents=True, exist_ok=True)
                with Path(target).open("w" if kind == "write" else "a", encoding="utf-8") as file:
                    file.write(text)
    except OSError as error:
        return str(error), True
    return f"{target}: done", False


def _expanded(text: str) -> str:
    """`$CUGGINO_...` variables of the environment put in; other dollar signs are left alone."""
    for name, value in os.environ.items():
        if name.startswith("CUGGINO_"):
            text = text.replace(f"${name}", value)
    return text


def _message(number: int, block: dict[str, Any]) -> None:
    message = {"id": f"msg_{number}", "role": "assistant", "content": [block]}
    _line(type="assistant", message=message, parent_tool_use_id=None)


def _line(**fields: Any) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
