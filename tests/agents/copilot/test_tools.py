"""GitHub Copilot's tools translated to Claude Code's names."""

from __future__ import annotations

from typing import Any

import pytest

from cuggino.agents.copilot.tools import TOOLS

PATCH = "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n*** Move to: c\n*** End Patch\n"


@pytest.mark.parametrize(
    ("name", "arguments", "tool", "given", "is_known"),
    [
        (
            "bash",
            {"command": "ls", "mode": "sync"},
            "Bash",
            {"command": "ls", "mode": "sync"},
            True,
        ),
        ("view", {"path": "/a"}, "Read", {"file_path": "/a"}, True),
        (
            "create",
            {"path": "/a", "file_text": "x"},
            "Write",
            {"file_path": "/a", "content": "x"},
            True,
        ),
        (
            "edit",
            {"path": "/a", "old_str": "x", "new_str": "y"},
            "Edit",
            {"file_path": "/a", "old_string": "x", "new_string": "y"},
            True,
        ),
        (
            "apply_patch",
            PATCH,
            "MultiEdit",
            {"edits": [{"file_path": f} for f in "abc"], "patch": PATCH},
            True,
        ),
        (
            "apply_patch",
            {"input": "nothing"},
            "MultiEdit",
            {"edits": [], "patch": "nothing"},
            False,
        ),
        ("apply_patch", 7, "MultiEdit", 7, False),
        ("task", {"agent_type": "x"}, "Task", {"subagent_type": "x"}, True),
        ("bash", "ls", "Bash", "ls", False),
        ("files-put", {"a": 1}, "mcp__files__put", {"a": 1}, True),
        ("files-x-put", {}, "mcp__files-x__put", {}, True),
        ("github-mcp-server-list_issues", {}, "mcp__github-mcp-server__list_issues", {}, True),
        ("write_bash", {"input": "x"}, "write_bash", {"input": "x"}, False),
    ],
)
def test_tools(name: str, arguments: Any, tool: str, given: Any, is_known: bool) -> None:
    """Tools and inputs get the names of Claude Code; unknown ones keep their own."""
    call = TOOLS.call(name, arguments, servers=("files", "files-x"))
    assert (tool, given, is_known) == (call.tool, call.input, not call.unknown)


def test_the_server_of_a_tool() -> None:
    """A server named by the program is not guessed from the tool's name."""
    call = TOOLS.call("a-b-c", {}, server=("a", "b-c"), servers=("a-b",))
    assert "mcp__a__b-c" == call.tool
