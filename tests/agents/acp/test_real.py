"""Real Agent Client Protocol programs: conformance, and their own features."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest

from cuggino.errors import GuardNotLive
from cuggino.events import ToolCall, ToolResult
from cuggino.testing import AgentConformance, FailureConformance, GuardConformance, Run, Write
from tests.agents.arenas import RealSuite
from tests.git_project import GitProject
from tests.model_script import Text, Tool
from tests.real_acp import AcpProgram, Kimi, Qwen, Vibe
from tests.real_program import in_a_project

pytestmark = pytest.mark.real_agent

NO_FIELD = "the protocol has no field for it: it goes in front of the first prompt"
BESIDE = "it cancels the calls after a denied one, which are not denied themselves"
GOES_ON = "it asks for the rest of an answer that breaks off"
CUT = "it takes the part of an answer that breaks off for the whole"
NO_CODES = "it does not report how a command exited"


class TestQwenAgent(RealSuite, AgentConformance):
    kind = Qwen
    exempt = MappingProxyType({"test_long_system_prompt": NO_FIELD})


class TestQwenFailures(RealSuite, FailureConformance):
    kind = Qwen
    exempt = MappingProxyType({"test_cut_stream": GOES_ON, "test_transient_cut": GOES_ON})


class TestQwenGuard(RealSuite, GuardConformance):
    kind = Qwen
    exempt = MappingProxyType(
        {
            "test_broken_later": BESIDE,
            "test_listed_programs": BESIDE,
            "test_settings_of_the_project": "they end the session before it starts",
        }
    )


class TestKimiAgent(RealSuite, AgentConformance):
    kind = Kimi
    exempt = MappingProxyType({"test_system_prompt": NO_FIELD, "test_long_system_prompt": NO_FIELD})


class TestKimiFailures(RealSuite, FailureConformance):
    kind = Kimi
    exempt = MappingProxyType(
        {"test_cut_stream": CUT, "test_transient_cut": CUT}
        | dict.fromkeys(
            (
                *("test_bad_request", "test_prompt_too_long", "test_rate_limit"),
                *("test_usage_limit", "test_overload", "test_server_error"),
                *("test_no_connection", "test_resume_after_failure"),
            ),
            "it ends its turn without an answer when a request fails: the reason is unknown",
        )
    )


class TestKimiGuard(RealSuite, GuardConformance):
    kind = Kimi
    exempt = MappingProxyType(
        {
            "test_sub_agent": "it cuts the commands of sub-agents, so all are denied",
            "test_verifying": "it reads other folders without asking, which ends the session",
        }
    )


class TestVibeAgent(RealSuite, AgentConformance):
    kind = Vibe
    exempt = MappingProxyType(
        {
            "test_system_prompt": NO_FIELD,
            "test_long_system_prompt": NO_FIELD,
            "test_failed_command": NO_CODES,
        }
    )


class TestVibeFailures(RealSuite, FailureConformance):
    kind = Vibe
    exempt = MappingProxyType(
        {"test_usage_limit": "it reports a spent limit like too many requests"}
    )


class TestVibeGuard(RealSuite, GuardConformance):
    kind = Vibe
    exempt = MappingProxyType({"test_ids": NO_CODES})


def test_questions(kimi: Kimi) -> None:
    """A question to a person fails at once, as no person can answer."""
    options = [{"label": word, "description": word} for word in ("red", "blue")]
    question = {"header": "Color", "question": "Which color?", "options": options}
    call = Tool("AskUserQuestion", {"questions": [question]})
    done = kimi.run(call, guard=kimi.policy())
    assert (None, "completed") == (done.error, done.ended.outcome)
    assert ["AskUserQuestion"] == [call.name for call in done.of(ToolCall)]
    assert [True] == [result.is_error for result in done.of(ToolResult)]
    assert "Nobody is there to answer" in done.conversation


def test_writes_in_a_worktree(kimi: Kimi) -> None:
    """A forbidden write that was not asked about, as in git's worktrees, ends the session."""
    GitProject(kimi.project)
    planning = kimi.policy("planning")
    done = kimi.run(kimi.tool(Write("app.py", "new = 1\n")), Text("Over."), guard=planning)
    assert isinstance(done.error, GuardNotLive)
    assert "Write was used without its verdict" in done.error.message
    again = kimi.run(kimi.tool(Write("app.py", "new = 2\n")), guard=kimi.policy())
    assert (None, "new = 2\n") == (again.error, kimi.read("app.py"))


def test_settings_of_the_project(qwen: Qwen) -> None:
    """Settings of the project that silence requests end a guarded session before it starts."""
    for files in qwen.hostile_settings():
        for name, text in files.items():
            qwen.write(name, text)
        done = qwen.run(qwen.tool(Run("touch new.txt")), guard=qwen.policy())
        assert isinstance(done.error, GuardNotLive)
        assert ".qwen can make qwen stop asking" in done.error.message
        assert ([], None, None) == (done.requests, qwen.read("new.txt"), qwen.read("hostile.txt"))


@pytest.mark.parametrize("kind", [Qwen, Kimi, Vibe])
def test_requests(kind: type[AcpProgram], request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """A session pays for its own requests alone: no memory, suggestions, summaries or titles."""
    with in_a_project(kind, request.getfixturevalue(kind.cli), tmp_path) as real:
        done = real.run(real.tool(Run("echo one")), Text("I have written what you asked for. " * 9))
    assert done.error is None
    assert [0, 1] == [request.turns for request in done.requests]


def test_settings_of_an_administrator(qwen: Qwen, tmp_path: Path) -> None:
    """Settings of an administrator stay as they are."""
    system = tmp_path / "system.json"
    system.write_text('{"tools": {"exclude": ["glob"]}}')
    usual = qwen.run()
    done = qwen.run(env={"QWEN_CODE_SYSTEM_SETTINGS_PATH": str(system)})
    assert (None, None) == (usual.error, done.error)
    assert ["glob"] == sorted({*usual.requests[0].tool_names} - {*done.requests[0].tool_names})


def test_system_prompt_in_front(kimi: Kimi) -> None:
    """A system prompt goes in front of the first prompt, and of that alone."""
    first = kimi.run(system_prompt="Be brief.", prompt="Begin.")
    assert "Be brief.\n\nBegin." in first.requests[0].messages_text
    name = first.ended.session_id
    again = kimi.run(system_prompt="Be brief.", prompt="Go on.", resume_session_id=name)
    assert again.error is None
    assert 1 == again.conversation.count("Be brief.")


SUITES = {
    "acp:qwen": (TestQwenAgent, TestQwenFailures, TestQwenGuard),
    "acp:kimi": (TestKimiAgent, TestKimiFailures, TestKimiGuard),
    "acp:vibe": (TestVibeAgent, TestVibeFailures, TestVibeGuard),
}
