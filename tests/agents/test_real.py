"""What real programs do alike beside the conformance suites: versions, resuming, permissions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cuggino.errors import AgentFailed
from cuggino.events import ToolCall, ToolResult
from cuggino.testing import Edit, Read
from tests import real_claude, real_codex, real_copilot, real_gemini, real_opencode
from tests.model_script import Text
from tests.real_claude import Claude
from tests.real_codex import Codex
from tests.real_copilot import Copilot
from tests.real_gemini import Gemini
from tests.real_opencode import OpenCode
from tests.real_program import NOBODY, RealProgram, in_a_project

pytestmark = pytest.mark.real_agent

VERSIONS: dict[type[RealProgram], str] = {
    Claude: real_claude.VERSION,
    Codex: real_codex.VERSION,
    Copilot: real_copilot.VERSION,
    Gemini: real_gemini.VERSION,
    OpenCode: real_opencode.VERSION,
}


@pytest.fixture
def real(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealProgram]:
    kind: type[RealProgram] = request.param
    with in_a_project(kind, request.getfixturevalue(kind.cli), tmp_path) as made:
        yield made


def programs(*kinds: type[RealProgram]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("real", kinds, indirect=True, ids=lambda kind: kind.__name__)


@programs(*VERSIONS)
def test_version(real: RealProgram) -> None:
    """The version is the installed one."""
    assert VERSIONS[type(real)] == real.agent(NOBODY).check()


@programs(Codex, Copilot, Gemini, OpenCode)
def test_resume_with_another_system_prompt(real: RealProgram) -> None:
    """A resumed session has the current system prompt; Codex keeps that of its start."""
    name = real.run(Text("The word is plum."), system_prompt="One is here.").ended.session_id
    again = real.run(resume_session_id=name, system_prompt="Two is here.")
    assert (None, name) == (again.error, again.ended.session_id)
    system = again.requests[0].system_text
    is_kept = isinstance(real, Codex)
    assert (is_kept, not is_kept) == ("One is here." in system, "Two is here." in system)


@programs(Codex, Copilot, OpenCode)
def test_resume_in_another_folder(real: RealProgram, tmp_path: Path) -> None:
    """A resumed session works in the current folder; OpenCode refuses to move."""
    name = real.run(Text("Hello.")).ended.session_id
    other = tmp_path / "other"
    other.mkdir()
    done = real.run(*(Text(""), real.bash("pwd > where.txt")), resume_session_id=name, cwd=other)
    if isinstance(real, OpenCode):
        assert isinstance(done.error, AgentFailed)
        assert ("bad_request", [], ["SessionEnded"]) == (
            done.error.reason,
            done.requests,
            done.tags,
        )
    else:
        assert done.error is None
        assert f"{other}\n" == (other / "where.txt").read_text()


@programs(Copilot, Gemini, OpenCode)
def test_permissions(real: RealProgram) -> None:
    """Without permission the agent can read and use allowed tools only, despite its settings."""
    real.write(".gemini/settings.json", '{"tools": {"allowed": ["run_shell_command"]}}')
    edit = Edit("app.py", "old", "new") if isinstance(real, Gemini) else Read("/etc/passwd")
    done = real.run(
        [real.tool(Read(real.path("app.py"))), real.bash("echo no > no.txt")],
        [real.create(real.path("yes.txt"), "yes"), real.tool(edit)],
        dangerously_skip_permissions=False,
        allowed_tools=("Write",) if isinstance(real, Gemini) else ("MultiEdit",),
    )
    assert done.error is None
    kept = [real.read(name) for name in ("yes.txt", "no.txt", "app.py")]
    assert ["yes", None, "old = 1\n"] == kept
    results = {result.name: result.is_error for result in done.of(ToolResult)}
    errors = [results[call.id] for call in done.of(ToolCall)]
    assert [False, True, False, not isinstance(real, Copilot)] == errors


@programs(Codex)
def test_reading_without_permission(real: RealProgram) -> None:
    """Codex has no tools to allow: it can read, but not write."""
    done = real.run(
        *(real.bash("cat app.py"), real.bash("echo no > no.txt"), real.create("no.txt", "no")),
        dangerously_skip_permissions=False,
    )
    assert done.error is None
    assert real.read("no.txt") is None
    outputs = [result.output for result in done.of(ToolResult) if not result.is_error]
    assert ["old = 1\n"] == outputs
