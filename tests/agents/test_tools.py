"""Each program's tools under the common names, and the files of patches."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from cuggino.agents.base.calls import Tools
from cuggino.agents.codex.hook import call_of as codex
from cuggino.agents.copilot.tools import TOOLS as COPILOT
from cuggino.agents.gemini import tools as gemini_tools
from cuggino.agents.gemini.tools import MARK, marked, unmarked
from cuggino.agents.opencode.config import permissions
from cuggino.agents.opencode.tools import TOOLS as OPENCODE, call_of as opencode, tool_id
from cuggino.guard.patches import patched_files

PATCH = "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n*** Move to: c\n*** End Patch\n"
FILES = [{"file_path": name} for name in "abc"]
SAME: Any = object()
"""An input that stays as it is."""
copilot = partial(COPILOT.call, servers=("files", "files-x"))
gemini = partial(gemini_tools.call_of, cwd="/p", servers=("my", "my_files"))
in_opencode = partial(opencode, servers=("my.files",))
in_codex = partial(codex, servers=["a", "a-b", "a-b__c"])


@pytest.mark.parametrize(
    ("call_of", "name", "given", "tool", "expected"),
    [
        (copilot, "bash", {"command": "ls", "mode": "sync"}, "Bash", SAME),
        (copilot, "view", {"path": "/a"}, "Read", {"file_path": "/a"}),
        (
            *(copilot, "create", {"path": "/a", "file_text": "x"}),
            *("Write", {"file_path": "/a", "content": "x"}),
        ),
        (
            *(copilot, "edit", {"path": "/a", "old_str": "x", "new_str": "y"}),
            *("Edit", {"file_path": "/a", "old_string": "x", "new_string": "y"}),
        ),
        (copilot, "apply_patch", PATCH, "MultiEdit", {"edits": FILES, "patch": PATCH}),
        (copilot, "task", {"agent_type": "x"}, "Task", {"subagent_type": "x"}),
        (copilot, "files-put", {"a": 1}, "mcp__files__put", SAME),
        (copilot, "files-x-put", {}, "mcp__files-x__put", SAME),
        (copilot, "github-mcp-server-list_issues", {}, "mcp__github-mcp-server__list_issues", SAME),
        (partial(copilot, server=("a", "b-c")), "a-b-c", {}, "mcp__a__b-c", SAME),
        (gemini, "run_shell_command", {"command": "ls"}, "Bash", SAME),
        (gemini, "run_shell_command", {"command": "ls", "dir_path": "sub"}, "Bash", SAME),
        (
            *(gemini, "write_file", {"file_path": "a", "content": "b"}),
            *("Write", {"file_path": "/p/a", "content": "b"}),
        ),
        (gemini, "replace", {"file_path": "/x/a"}, "Edit", SAME),
        (gemini, "list_directory", {"dir_path": "s"}, "LS", {"path": "/p/s"}),
        (gemini, "read_file", {"file_path": 3}, "Read", SAME),
        (gemini, "invoke_agent", {"agent_name": "x"}, "Task", {"subagent_type": "x"}),
        (gemini, "mcp_my_files_put", {"a": 1}, "mcp__my_files__put", SAME),
        (gemini, "mcp_other_put_it", None, "mcp__other__put_it", SAME),
        (partial(gemini, server=("a_b", "c")), "mcp_a_b_c", {}, "mcp__a_b__c", SAME),
        (in_opencode, "write", {"filePath": "a"}, "Write", {"file_path": "a"}),
        (in_opencode, "bash", {"command": "ls"}, "Bash", SAME),
        (in_opencode, "my_files_put", {"p": 1}, "mcp__my.files__put", SAME),
        (
            *(in_opencode, "apply_patch", {"patchText": PATCH}),
            *("MultiEdit", {"edits": FILES, "patch": PATCH}),
        ),
        (in_codex, "mcp__a_b__c__d", {}, "mcp__a-b__c__d", SAME),
        (in_codex, "mcp__x__y", {}, "mcp__x__y", SAME),
    ],
)
def test_known_calls(call_of: Any, name: str, given: Any, tool: str, expected: Any) -> None:
    """Names, inputs and folders are the common ones; a server that is named is not guessed."""
    call = call_of(name, given)
    assert (tool, given if expected is SAME else expected) == (call.tool, call.input)
    assert not call.unknown
    is_below = isinstance(given, dict) and given.get("dir_path") == "sub"
    assert is_below == (call.cwd == "/p/sub")


@pytest.mark.parametrize(
    ("call_of", "name", "given", "tool", "expected"),
    [
        (copilot, "apply_patch", {"input": "x"}, "MultiEdit", {"edits": [], "patch": "x"}),
        (copilot, "apply_patch", 7, "MultiEdit", SAME),
        (copilot, "bash", "ls", "Bash", SAME),
        (copilot, "write_bash", {"input": "x"}, "write_bash", SAME),
        (gemini, "replace", "text", "Edit", SAME),
        (gemini, "no_such_tool", {}, "no_such_tool", SAME),
        (gemini, "mcp_", {}, "mcp_", SAME),
        (in_opencode, "execute", {"code": "x"}, "execute", SAME),
        (in_opencode, "apply_patch", {"patchText": "x"}, "MultiEdit", {"edits": [], "patch": "x"}),
    ],
)
def test_unknown_calls(call_of: Any, name: str, given: Any, tool: str, expected: Any) -> None:
    """Unknown tools and inputs keep their own names as far as they are not known."""
    call = call_of(name, given)
    assert (tool, given if expected is SAME else expected) == (call.tool, call.input)
    assert call.unknown


@pytest.mark.parametrize(
    ("call_of", "name", "own", "other"),
    [
        (in_opencode, "write", "filePath", "file_path"),
        (in_opencode, "read", "filePath", "file_path"),
        (copilot, "create", "path", "file_path"),
        (copilot, "view", "path", "file_path"),
        (gemini, "list_directory", "dir_path", "path"),
    ],
)
def test_two_names_for_one_input(call_of: Any, name: str, own: str, other: str) -> None:
    """A call with two names for one input is ambiguous and therefore unknown."""
    given = {own: "/etc/passwd", "content": "x"}
    assert not call_of(name, given).unknown
    assert call_of(name, {**given, other: "ok.txt"}).unknown
    assert call_of(name, {other: "ok.txt", **given}).unknown


def test_unknown_inputs_of_the_shell() -> None:
    """Unknown inputs of Gemini's shell are reported by name."""
    given = {"command": "ls", "additional_permissions": {}, "x": 1}
    assert "Leave out additional_permissions, x" == gemini("run_shell_command", given).unknown
    assert "" == gemini("write_file", {"x": 1}).unknown


@pytest.mark.parametrize(
    "given", [{"command": "it's `x`\n", "a": 1}, {"file_path": "x"}, {"command": 3}, {}]
)
def test_marks_are_removed(given: dict[str, Any]) -> None:
    """Removing Gemini's mark restores the original input."""
    assert given == unmarked(marked(given, "t"))


@pytest.mark.parametrize("command", ["eval -- 'a' b", "eval -- 'a", "eval x", "evaluate"])
def test_other_commands(command: str) -> None:
    """An unwrapped command is unchanged."""
    assert {"command": command} == unmarked({"command": command, MARK: "t"})
    assert {"command": "eval -- a"} == unmarked({"command": "eval -- a"})


def test_reverse_names() -> None:
    """A common name maps to each of Gemini's tools of that kind."""
    assert ("grep_search", "search_file_content") == gemini_tools.TOOLS.of("Grep")
    assert () == gemini_tools.TOOLS.of("NoSuchTool")


def test_permissions() -> None:
    """In OpenCode only named tools are allowed beyond reading; questions are disabled."""
    given = permissions(unattended=False, allowed_tools=("Write", "mcp__a__b"), outputs="/o")
    wanted = {"*": "deny", "edit": "allow", "a_b": "allow", "question": "deny"}
    assert wanted.items() <= given.items()
    assert "a_*" == tool_id("mcp__a")
    assert "deny" == permissions(unattended=True, allowed_tools=(), outputs="/o")["question"]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("*** Add File: a.txt", ["a.txt"]),
        ("*** Add File: a.txt\r", ["a.txt"]),
        ("*** Add File:.git/hooks/pre-commit", [".git/hooks/pre-commit"]),
        ("*** Update File:\t.git/x", [".git/x", "\t.git/x"]),
        ("*** Delete File: \xa0.git/x", [".git/x", "\xa0.git/x"]),
        ("***Delete File: e.txt", ["e.txt"]),
        ("*** Move to:\ufeff.git/x", [".git/x", "\ufeff.git/x"]),
        ("  *** Move  to : .git/x\r", [".git/x"]),
        ("  *** Update File:  b c.txt ", ["b c.txt", " b c.txt "]),
        ("*** Add File: a b ", ["a b", "a b "]),
        ("+*** Add File: a.txt", []),
        ("*** Add File: ", []),
        ("*** Begin Patch", []),
    ],
)
def test_headers_of_a_patch(header: str, expected: list[str]) -> None:
    """Anything that a program may take for a header counts, with each reading of the spaces."""
    assert expected == patched_files(f"*** Begin Patch\n{header}\n+x\n*** End Patch")


@pytest.mark.parametrize("tools", [OPENCODE, COPILOT])
def test_a_header_beside_an_ordinary_one(tools: Tools) -> None:
    """A file named without a space is judged in addition to those named with one."""
    patch = "*** Begin Patch\n*** Add File: ok.txt\n+x\n*** Add File:.git/config\n+x\n*** End Patch"
    call = tools.call("apply_patch", {"patchText": patch, "input": patch})
    files = [edit["file_path"] for edit in call.input["edits"]]
    assert ["", "ok.txt", ".git/config"] == [call.unknown, *files]
