"""Gemini's tools translated to the common names."""

from __future__ import annotations

from typing import Any

import pytest

from cuggino.agents.gemini.tools import (
    MARK,
    Call,
    common_call,
    gemini_names,
    marked,
    unknown_keys,
    unmarked,
)


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("run_shell_command", {"command": "ls"}, Call("Bash", {"command": "ls"}, "/p", True)),
        (
            "run_shell_command",
            {"command": "ls", "dir_path": "sub"},
            Call("Bash", {"command": "ls", "dir_path": "sub"}, "/p/sub", True),
        ),
        (
            "write_file",
            {"file_path": "a", "content": "b"},
            Call("Write", {"file_path": "/p/a", "content": "b"}, "/p", True),
        ),
        ("replace", {"file_path": "/x/a"}, Call("Edit", {"file_path": "/x/a"}, "/p", True)),
        ("list_directory", {"dir_path": "s"}, Call("LS", {"path": "/p/s"}, "/p", True)),
        ("read_file", {"file_path": 3}, Call("Read", {"file_path": 3}, "/p", True)),
        ("invoke_agent", {"agent_name": "x"}, Call("Task", {"subagent_type": "x"}, "/p", True)),
        ("replace", "text", Call("Edit", "text", "/p", False)),
        ("no_such_tool", {}, Call("no_such_tool", {}, "/p", False)),
        ("mcp_my_files_put", {"a": 1}, Call("mcp__my_files__put", {"a": 1}, "/p", True)),
        ("mcp_other_put_it", None, Call("mcp__other__put_it", None, "/p", True)),
        ("mcp_", {}, Call("mcp_", {}, "/p", False)),
    ],
)
def test_calls(name: str, given: Any, expected: Call) -> None:
    """Names, inputs and folders match those in policies."""
    assert expected == common_call(name, given, cwd="/p", servers=("my", "my_files"))


def test_the_server_that_the_program_names() -> None:
    """The server reported by the program has priority over the tool's name."""
    call = common_call("mcp_a_b_c", {}, cwd="/p", server=("a_b", "c"))
    assert "mcp__a_b__c" == call.tool


def test_unknown_inputs_of_the_shell() -> None:
    """Unknown inputs of the shell are reported by name."""
    given = {"command": "ls", "additional_permissions": {}, "x": 1}
    assert "additional_permissions, x" == unknown_keys(
        common_call("run_shell_command", given, cwd="/p")
    )
    assert "" == unknown_keys(common_call("write_file", {"x": 1}, cwd="/p"))


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
    assert ("grep_search", "search_file_content") == gemini_names("Grep")
    assert () == gemini_names("NoSuchTool")
