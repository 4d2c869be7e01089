"""Finding the files of a patch, however its headers are spaced."""

from __future__ import annotations

import pytest

from cuggino.agents.base.calls import Tools
from cuggino.agents.copilot.tools import TOOLS as COPILOT
from cuggino.agents.opencode.tools import TOOLS as OPENCODE
from cuggino.guard.patches import patched_files


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("*** Add File: a.txt", ["a.txt"]),
        ("*** Add File:.git/hooks/pre-commit", [".git/hooks/pre-commit"]),
        ("*** Update File:\t.git/x", [".git/x", "\t.git/x"]),
        ("*** Delete File: \xa0.git/x", [".git/x", "\xa0.git/x"]),
        ("*** Move to:\ufeff.git/x", [".git/x", "\ufeff.git/x"]),
        ("  *** Move  to : .git/x\r", [".git/x"]),
        ("*** Add File: a b ", ["a b", "a b "]),
        ("+*** Add File: a.txt", []),
        ("*** Add File: ", []),
        ("*** Begin Patch", []),
    ],
)
def test_headers(header: str, expected: list[str]) -> None:
    """Anything that a program may take for a header counts, with each reading of the spaces."""
    assert expected == patched_files(f"*** Begin Patch\n{header}\n+x\n*** End Patch")


@pytest.mark.parametrize("tools", [OPENCODE, COPILOT])
def test_a_header_beside_an_ordinary_one(tools: Tools) -> None:
    """A file named without a space is judged in addition to those named with one."""
    patch = "*** Begin Patch\n*** Add File: ok.txt\n+x\n*** Add File:.git/config\n+x\n*** End Patch"
    call = tools.call("apply_patch", {"patchText": patch, "input": patch})
    files = [edit["file_path"] for edit in call.input["edits"]]
    assert ["", "ok.txt", ".git/config"] == [call.unknown, *files]


@pytest.mark.parametrize(
    ("tools", "name", "own", "other"),
    [
        (OPENCODE, "write", "filePath", "file_path"),
        (OPENCODE, "read", "filePath", "file_path"),
        (COPILOT, "create", "path", "file_path"),
        (COPILOT, "view", "path", "file_path"),
    ],
)
def test_two_names_for_one_input(tools: Tools, name: str, own: str, other: str) -> None:
    """A call with two names for one input is ambiguous and therefore unknown."""
    given = {own: "/etc/passwd", "content": "x"}
    assert not tools.call(name, given).unknown
    assert tools.call(name, {**given, other: "ok.txt"}).unknown
    assert tools.call(name, {other: "ok.txt", **given}).unknown
