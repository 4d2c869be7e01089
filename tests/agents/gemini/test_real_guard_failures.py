"""The guard on the real Gemini CLI when its hook fails, or is not asked: then nothing runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.gemini import guard as gemini_guard
from cuggino.agents.guard import Guard
from cuggino.errors import GuardNotLive
from cuggino.events import GuardDenied, ToolResult
from tests.agents.copilot.test_real import MCP_SERVER
from tests.model_script import Block, Tool
from tests.real_gemini import Gemini, bash, create, gemini, gemini_cli

__all__ = ["gemini", "gemini_cli"]

pytestmark = pytest.mark.real_agent

MODES = """data=$(cat)
case $data in
*SessionStart*) ;;
*) case $(cat {mode}) in
  killed) kill -KILL $$ ;;
  failing) exit 1 ;;
  silent) exit 0 ;;
  talking) echo 'I allow it'; exit 0 ;;
  allowing) echo '{{"decision": "allow"}}'; exit 0 ;;
  slow) sleep 30 ;;
  gone) rm -f {script}; exit 3 ;;
  esac ;;
esac
printf %s "$data" | /bin/sh {real}
"""
"""A hook that does what the mode says, when it is asked about a call."""


@pytest.fixture
def mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which the mode stands."""
    file = tmp_path / "mode"
    file.write_text("real")
    script = gemini_guard._script

    def made(guard: Guard, orders: Path) -> str:
        real = orders.parent / "real.sh"
        real.write_text(script(guard, orders))
        return MODES.format(mode=file, real=real, script=orders.parent / "guard.sh")

    monkeypatch.setattr(gemini_guard, "_script", made)
    monkeypatch.setattr(gemini_guard, "TIMEOUT_MS", 3000)
    return file


def test_a_hook_that_fails(gemini: Gemini, mode: Path) -> None:
    """However the hook fails, nothing is run or written, and each call is told as denied."""
    modes = ("real", "killed", "failing", "silent", "talking", "allowing", "slow", "gone", "real")

    def turn(name: str, number: int) -> Callable[[], list[Block]]:
        def blocks() -> list[Block]:
            mode.write_text(name)
            return [
                bash(f"echo x > {number}.sh.txt"),
                create(gemini.path(f"{number}.txt"), "x"),
            ]

        return blocks

    turns: list[Any] = [turn(name, number) for number, name in enumerate(modes)]
    done = gemini.run(*turns, guard=gemini.policy())
    assert done.error is None
    assert {"0.txt", "0.sh.txt"} == {file.name for file in gemini.project.glob("*.txt")}
    assert 16 == len(done.of(GuardDenied))
    assert [False] * 2 + [True] * 16 == [result.is_error for result in done.of(ToolResult)]
    assert gemini_guard.UNMARKED in done.told


def test_a_killed_hook_of_an_mcp_call(gemini: Gemini, mode: Path, tmp_path: Path) -> None:
    """A server's tool that was used without a verdict ends the session."""
    program = tmp_path / "server.py"
    program.write_text(MCP_SERVER)

    def killed() -> Block:
        mode.write_text("killed")
        return Tool("mcp_files_put", {"path": gemini.path("put.txt")})

    done = gemini.run(
        killed,
        bash("echo more > more.txt"),
        mcp_servers={"files": {"command": sys.executable, "args": [str(program)]}},
        guard=gemini.policy(),
    )
    assert isinstance(done.error, GuardNotLive)
    assert "mcp__files__put was used without its verdict" in done.error.message
    assert gemini.read("more.txt") is None
    assert "failed" == done.ended.outcome


def test_a_hook_that_is_not_run(gemini: Gemini, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook that does not answer at the start ends the session before its first tool."""
    monkeypatch.setattr(gemini_guard, "_script", lambda _guard, _orders: "exit 1\n")
    done = gemini.run(bash("echo no > no.txt"), guard=gemini.policy())
    assert isinstance(done.error, GuardNotLive)
    assert gemini.read("no.txt") is None
    with pytest.raises(GuardNotLive):
        gemini.agent("http://127.0.0.1:9").check_guard(gemini.policy())
