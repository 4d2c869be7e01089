"""The guard on the real GitHub Copilot CLI when it fails, or is not asked: then nothing runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cuggino.agents.copilot.guard import Gate
from cuggino.agents.guard import Guard, make_guard
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied, ToolResult
from cuggino.security import hook
from tests.model_script import Tool
from tests.real_copilot import Copilot, bash, copilot, copilot_cli, create
from tests.real_program import SPEC

__all__ = ["copilot", "copilot_cli"]

pytestmark = pytest.mark.real_agent


def test_a_guard_that_fails(copilot: Copilot, monkeypatch: pytest.MonkeyPatch) -> None:
    """From its first failure on no tool runs, the model is told so, and the session goes on."""
    answer = hook.answer

    def broken(data: Any, *given: Any, **named: Any) -> Any:
        if data.get("tool_name") is not None:
            raise OSError("no more files")
        return answer(data, *given, **named)

    monkeypatch.setattr(hook, "answer", broken)
    done = copilot.run(
        [bash("echo one > one.txt"), create(copilot.path("two.txt"), "two")],
        guard=copilot.policy(),
    )
    assert done.error is None
    assert [None, None] == [copilot.read(f"{n}.txt") for n in ("one", "two")]
    assert {"Bash", "Write"} == {event.tool for event in done.of(GuardDenied)}
    assert 2 == done.told.count("The guard could not judge this call")


@pytest.mark.parametrize("second", ["raises", "denies"])
def test_a_first_question_that_is_lost(
    copilot: Copilot, monkeypatch: pytest.MonkeyPatch, second: str
) -> None:
    """Without an answer to the first question the second one keeps a command from running."""

    async def lost(*_given: Any) -> None:
        raise OSError("lost")

    monkeypatch.setattr(Gate, "before_tool", lost)
    if second == "raises":
        monkeypatch.setattr(Gate, "permission", lost)
    done = copilot.run(
        [bash("echo no > .specs/task.md"), create(copilot.path(".cuggino/lock"), "no")],
        guard=copilot.policy(),
    )
    assert done.error is None
    assert (SPEC, None) == (copilot.read(".specs/task.md"), copilot.read(".cuggino/lock"))
    assert [True, True] == [result.is_error for result in done.of(ToolResult)]


def test_a_tool_without_a_verdict(copilot: Copilot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that was used without being judged ends the session."""

    async def silent(*_given: Any) -> None:
        return None

    monkeypatch.setattr(Gate, "before_tool", silent)
    done = copilot.run(
        Tool("sql", {"description": "d", "query": "SELECT 1"}),
        bash("echo more > more.txt"),
        guard=copilot.policy(),
    )
    assert isinstance(done.error, GuardNotLive)
    assert "sql was used without its verdict" in done.error.message
    assert "failed" == done.ended.outcome


def test_a_parser_that_does_not_work(copilot: Copilot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard that does not answer rightly before the session starts none."""

    def without(*given: Any) -> Guard:
        return replace(make_guard(*given), shfmt="/bin/false")

    monkeypatch.setattr("cuggino.agents.copilot.agent.make_guard", without)
    done = copilot.run(bash("echo no > no.txt"), guard=copilot.policy())
    assert isinstance(done.error, GuardNotLive)
    assert ([], []) == (done.events, done.requests)
