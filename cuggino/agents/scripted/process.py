"""The program of the scripted agent. Run by path with nothing but the standard library.

It reads its orders as a line of JSON from standard input, and later a person's messages in steps
that listen. It prints what Claude Code would: an init line, a line per message and per tool result,
and a result with the cost. A `step` line, which only the agent uses, reports which step starts.
With a guard in its orders it checks each tool call, and prints the verdict as Claude Code does for
its hooks. Tools of MCP servers are really called; the servers end with the session.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":  # the package is located relative to this file
    sys.path.append(str(Path(__file__).parents[3]))

from cuggino.agents.base.calls import Orders
from cuggino.agents.claude.hook import answer
from cuggino.agents.scripted.mcp import McpFailed, Servers, agent_name
from cuggino.guard.policy import Policy


class _Use(NamedTuple):
    """A tool to be used."""

    name: str
    """Name of the tool in the agent's program."""
    arguments: dict[str, Any]
    run: Callable[[], tuple[str | list[Any], bool]]
    """Runs the tool; returns its output, and whether that is an error."""
    is_known: bool = True
    """The guard is not asked about a tool that does not exist."""


class _Input:
    """Standard input, line by line."""

    def __init__(self) -> None:
        self._read = b""

    def line(self, seconds: float | None = None) -> bytes | None:
        """Return the next line, or None on a timeout or at the end of the input."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._read:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([0], [], [], left)[0]:
                return None
            chunk = os.read(0, 1 << 20)
            if not chunk:
                break
            self._read += chunk
        line, _, self._read = self._read.partition(b"\n")
        return line or None


_INPUT = _Input()


def main() -> int:
    """Play the orders and return the exit code."""
    # Like Claude Code's Bash calls, the tools run in new sessions, and this program does not
    # terminate them: its parent must.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    orders = json.loads(_INPUT.line() or b"")
    with _servers(orders) as servers:
        return _session(orders, servers)


def _session(orders: dict[str, Any], servers: Servers | None) -> int:
    said = ""
    if guard := orders.get("guard"):
        _ask(guard, "SessionStart", {})
    _line(
        type="system",
        subtype="init",
        session_id=orders["session_id"],
        model=orders["model"],
        claude_code_version="scripted",
    )
    for number, step in enumerate(orders["steps"]):
        _line(type="stream_event", event={"type": "message_start"})
        time.sleep(orders["pause"])  # a separate program, paced by the scenario
        _line(type="system", subtype="step", number=number)
        if "exit" in step:
            sys.stderr.write(step["text"])
            return int(step["exit"])
        if "fail" in step:
            _fail(step["fail"], number)
            _result(orders, step["fail"]["text"], number + 1, **_error_of(step["fail"]))
            return 1
        said = _play(step, number, guard, servers) or said
    _result(orders, said, len(orders["steps"]), is_error=False, terminal_reason="completed")
    return 0


@contextmanager
def _servers(orders: dict[str, Any]) -> Iterator[Servers | None]:
    """Yield the MCP servers of a session that uses their tools, ended with the session."""
    if not any("tool" in step for step in orders["steps"]):
        yield None
        return
    servers = Servers(orders["mcp_servers"])
    try:
        yield servers
    finally:
        servers.close()


def _result(orders: dict[str, Any], text: str, turns: int, **fields: Any) -> None:
    _line(
        type="result",
        subtype="success",
        result=text,
        num_turns=turns,
        total_cost_usd=orders["cost_usd"],
        session_id=orders["session_id"],
        **fields,
    )


def _error_of(fail: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an API error in a result, which still calls itself a success."""
    status = fail.get("status")
    return {"is_error": True, "terminal_reason": "api_error", "api_error_status": status}


def _fail(fail: dict[str, Any], number: int) -> None:
    """Print the line in which the program, not the model, reports an API error."""
    fields = {"error": fail["error"], "api_error_status": fail.get("status")}
    if fail["error"] in ("connection_failed", "usage_limit_reached"):
        fields["api_error"] = fail["error"]
    block = {"type": "text", "text": fail["text"]}
    _message(number, block, is_api_error_message=True, **fields)


def _play(
    step: dict[str, Any], number: int, guard: dict[str, str] | None, servers: Servers | None
) -> str | None:
    if "say" in step:
        text = _expanded(step["say"])
        _message(number, {"type": "text", "text": text})
        return text
    if "think" in step:
        _message(number, {"type": "thinking", "thinking": step["think"]})
    elif "sleep" in step:
        time.sleep(step["sleep"])  # the scenario asks for a slow agent
    elif "listen" in step:
        _listen(step["listen"])
    elif "usage" in step:
        _line(type="stream_event", event={"type": "message_delta", "usage": _counts(step["usage"])})
    elif "limit" in step:
        _line(type="rate_limit_event", rate_limit_info=_limit(step["limit"]))
    elif "raw" in step:
        sys.stdout.write(step["raw"] + "\n")
        sys.stdout.flush()
    else:
        use = _server_tool(step, servers) if servers and "tool" in step else _own_tool(step)
        _use_tool(use, number, guard)
    return None


def _listen(seconds: float) -> None:
    """Wait for a message of a person, which the later steps find in `$CUGGINO_MESSAGE`."""
    line = _INPUT.line(seconds)
    said = json.loads(line) if line else {"message": {"content": ""}}
    os.environ["CUGGINO_MESSAGE"] = said["message"]["content"]
    if line:
        for state in ("queued", "started"):
            _line(type="command_lifecycle", command_uuid=said["uuid"], state=state)
        _line(type="stream_event", event={"type": "message_start"})


def _counts(usage: dict[str, int]) -> dict[str, int]:
    return {
        "input_tokens": usage["input_tokens"],
        "output_tokens": usage["output_tokens"],
        "cache_read_input_tokens": usage["cache_read_tokens"],
        "cache_creation_input_tokens": usage["cache_creation_tokens"],
    }


def _limit(limit: dict[str, Any]) -> dict[str, Any]:
    info = {"status": limit["status"], "rateLimitType": limit["type"]}
    if "resets_in" in limit:
        info["resetsAt"] = time.time() + limit["resets_in"]
    if "used" in limit:
        info["utilization"] = limit["used"]
    if limit["overage"]:
        info |= {"isUsingOverage": True, "overageInUse": True}
    return info


def _own_tool(step: dict[str, Any]) -> _Use:
    kind = next(kind for kind in ("write", "append", "delete", "run") if kind in step)
    # The shell expands variables in a command itself.
    target = step[kind] if kind == "run" else _expanded(step[kind])
    text = _expanded(step["text"]).removeprefix("\n")
    name, arguments = {
        "write": ("Write", {"file_path": target, "content": text}),
        "append": ("Edit", {"file_path": target, "old_string": "", "new_string": text}),
        "delete": ("Bash", {"command": f"rm {target}"}),
        "run": ("Bash", {"command": target}),
    }[kind]
    return _Use(name, arguments, lambda: _do(kind, target, text))


def _server_tool(step: dict[str, Any], servers: Servers) -> _Use:
    given = _all_expanded(step["input"])
    try:
        tool = servers.find(step["tool"])
    except McpFailed as failed:
        why = str(failed)
        return _Use(agent_name(step["tool"]), given, lambda: (why, True), is_known=False)
    return _Use(tool.agent_name, given, lambda: tool.call(given))


def _use_tool(use: _Use, number: int, guard: dict[str, str] | None) -> None:
    call = f"tool_{number}"
    _message(number, {"type": "tool_use", "id": call, "name": use.name, "input": use.arguments})
    denial = None
    if guard and use.is_known:
        asked = {"tool_name": use.name, "tool_input": use.arguments, "tool_use_id": call}
        denial = _denial(_ask(guard, "PreToolUse", asked))
    output: str | list[Any]
    if denial is None:
        output, failed = use.run()
    else:
        output, failed = f"PreToolUse:{use.name} hook error: {denial}", True
    result = {
        "type": "tool_result",
        "tool_use_id": call,
        "content": output,
        "is_error": failed,
    }
    _line(type="user", message={"role": "user", "content": [result]}, parent_tool_use_id=None)


def _ask(guard: dict[str, str], event: str, data: dict[str, Any]) -> dict[str, Any]:
    """Return the guard's answer, and print it."""
    orders = Orders(Policy.from_json(guard["policy"]), guard["shfmt"], guard["token"])
    asked = {"hook_event_name": event, "cwd": str(Path.cwd()), **data}
    said, _ = answer(asked, orders, {"manner": "judge"})
    _line(type="system", subtype="hook_response", hook_event=event, stdout=json.dumps(said))
    return said


def _denial(said: dict[str, Any]) -> str | None:
    """Return the reason of a denial, or None; anything but a clear approval is a denial."""
    decision = said["hookSpecificOutput"]
    if decision["permissionDecision"] == "allow":
        return None
    return str(decision["permissionDecisionReason"])


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
    """Expand `$CUGGINO_...` variables of the environment; other dollar signs stay."""
    for name, value in os.environ.items():
        if name.startswith("CUGGINO_"):
            text = text.replace(f"${name}", value)
    return text


def _all_expanded(value: Any) -> Any:
    """Expand variables in every text of the value."""
    if isinstance(value, str):
        return _expanded(value)
    if isinstance(value, list):
        return [_all_expanded(item) for item in value]
    if isinstance(value, dict):
        return {key: _all_expanded(item) for key, item in value.items()}
    return value


def _message(number: int, block: dict[str, Any], **fields: Any) -> None:
    message = {"id": f"msg_{number}", "role": "assistant", "content": [block]}
    _line(type="assistant", message=message, parent_tool_use_id=None, **fields)


def _line(**fields: Any) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
