"""Gemini's tools translated to the common names."""

from __future__ import annotations

from typing import Any

import pytest

from cuggino.agents.gemini.tools import (
    MARK,
    TOOLS,
    call_of,
    marked,
    unmarked,
)


@pytest.mark.parametrize(
    ("name", "given", "tool", "expected", "is_known"),
    [
        ("run_shell_command", {"command": "ls"}, "Bash", {"command": "ls"}, True),
        (
            "run_shell_command",
            {"command": "ls", "dir_path": "sub"},
            "Bash",
            {"command": "ls", "dir_path": "sub"},
            True,
        ),
        (
            "write_file",
            {"file_path": "a", "content": "b"},
            "Write",
            {"file_path": "/p/a", "content": "b"},
            True,
        ),
        ("replace", {"file_path": "/x/a"}, "Edit", {"file_path": "/x/a"}, True),
        ("list_directory", {"dir_path": "s"}, "LS", {"path": "/p/s"}, True),
        ("read_file", {"file_path": 3}, "Read", {"file_path": 3}, True),
        ("invoke_agent", {"agent_name": "x"}, "Task", {"subagent_type": "x"}, True),
        ("replace", "text", "Edit", "text", False),
        ("no_such_tool", {}, "no_such_tool", {}, False),
        ("mcp_my_files_put", {"a": 1}, "mcp__my_files__put", {"a": 1}, True),
        ("mcp_other_put_it", None, "mcp__other__put_it", None, True),
        ("mcp_", {}, "mcp_", {}, False),
    ],
)
def test_calls(name: str, given: Any, tool: str, expected: Any, is_known: bool) -> None:
    """Names, inputs and folders match those in policies."""
    call = call_of(name, given, cwd="/p", servers=("my", "my_files"))
    assert (tool, expected, is_known) == (call.tool, call.input, not call.unknown)
    folder = {"dir_path": "sub"}.items() <= given.items() if isinstance(given, dict) else False
    assert folder == (call.cwd == "/p/sub")


def test_the_server_that_the_program_names() -> None:
    """The server reported by the program has priority over the tool's name."""
    call = call_of("mcp_a_b_c", {}, cwd="/p", server=("a_b", "c"))
    assert "mcp__a_b__c" == call.tool


def test_unknown_inputs_of_the_shell() -> None:
    """Unknown inputs of the shell are reported by name."""
    given = {"command": "ls", "additional_permissions": {}, "x": 1}
    call = call_of("run_shell_command", given, cwd="/p")
    assert "Leave out additional_permissions, x" == call.unknown
    assert "" == call_of("write_file", {"x": 1}, cwd="/p").unknown


def test_two_names_for_one_input() -> None:
    """A call with two names for one input is ambiguous and therefore unknown."""
    assert call_of("list_directory", {"dir_path": "/etc", "path": "a"}, cwd="/p").unknown


@pytest.mark.parametrize(
    "given", [{"command": "it's `x`\n", "a": 1}, {"file_path": "x"}, {"command": 3}, {}]
)
def test_marks_are_removed(given: dict[str, Any]) -> None:
    """Removing the mark restores the original input."""
    assert given == unmarked(marked(given, "t"))


@pytest.mark.parametrize("command", ["eval -- 'a' b", "eval -- 'a", "eval x", "evaluate"])
def test_other_commands(command: str) -> None:
    """An unwrapped command is unchanged."""
    assert {"command": command} == unmarked({"command": command, MARK: "t"})
    assert {"command": "eval -- a"} == unmarked({"command": "eval -- a"})


def test_reverse_names() -> None:
    """A common name maps to each of Gemini's tools of that kind."""
    assert ("grep_search", "search_file_content") == TOOLS.of("Grep")
    assert () == TOOLS.of("NoSuchTool")
