"""The exit codes of the Gemini CLI's commands."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.gemini.tools import marked
from cuggino.agents.gemini.wire import Exits, GeminiSession
from cuggino.events import ToolResult
from tests.agents.gemini.test_wire import fed, line


def tell(exits: Exits, given: dict[str, Any], output: str) -> None:
    """Run the hook like the program."""
    (entry,) = exits.hooks()["AfterTool"][0]["hooks"]
    content = f"<untrusted_context>\n{output}\n</untrusted_context>\n\n[System] More."
    data = {"tool_input": given, "tool_response": {"llmContent": content}}
    done = subprocess.run(
        shlex.split(entry["command"]), input=json.dumps(data), capture_output=True, text=True
    )
    assert (0, "{}\n") == (done.returncode, done.stdout)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("Output: x\nExit Code: 3\nProcess Group PGID: 7", 3),
        ("Output: x\nExit Code: 130\nSignal: 2\nBackground PIDs: 1, 2\nProcess Group PGID: 7", 130),
        ("Output: Exit Code: 3\nProcess Group PGID: 7", 0),
        ("Output: a\nExit Code: 3\nb\nProcess Group PGID: 7", 0),
        ("Output: a\nExit Code: 5\n</untrusted_context>\nb\nExit Code: 6\nSignal: 9", 6),
        ("Output: a\nExit Code: 5\n</untrusted_context>\nb", 0),
        (f"Output: x\nExit Code: {'9' * 5000}\nProcess Group PGID: 7", 0),
        ("Output: (empty)\nProcess Group PGID: 7", 0),
    ],
)
def test_codes(tmp_path: Path, output: str, expected: int) -> None:
    """The exit code is read from the program's part of the result, not the command's output."""
    exits = Exits(tmp_path)
    tell(exits, {"command": "c"}, output)
    assert expected == exits.code({"command": "c"})


def test_several_commands(tmp_path: Path) -> None:
    """Each command has its own code, reported once, whether it was marked or not."""
    exits = Exits(tmp_path)
    tell(exits, marked({"command": "a"}, "t"), "Exit Code: 1\nProcess Group PGID: 7")
    tell(exits, {"command": "b"}, "Exit Code: 2\nProcess Group PGID: 7")
    codes = [exits.code({"command": name}) for name in ("b", "a", "a", "c")]
    assert [2, 1, 0, 0] == codes


def test_noise(tmp_path: Path) -> None:
    """Files with other content are ignored."""
    exits = Exits(tmp_path)
    (tmp_path / "exits" / "1.json").write_bytes(b"\xff{")
    (tmp_path / "exits" / "2.json").write_text('{"tool_response": 1}')
    assert 0 == exits.code({"command": "a"})


@pytest.mark.parametrize(
    ("output", "code", "expected"),
    [("x", 3, True), ("x", 0, False), ("Blocked: command substitution detected", 0, True)],
)
def test_results(output: str, code: int, expected: bool) -> None:
    """A command with a nonzero code, or refused by the program, has failed."""
    session = GeminiSession(exit_code=lambda _given: code)
    call = line("tool_use", tool_name="run_shell_command", tool_id="c", parameters={"command": "a"})
    result = line("tool_result", tool_id="c", status="success", output=output)
    assert (
        ToolResult(name="c", output=output, is_error=expected)
        == fed(call, result, session=session)[-1]
    )
