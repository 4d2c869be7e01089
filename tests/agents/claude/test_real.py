"""The real Claude Code CLI: conformance, and its own features."""

from __future__ import annotations

import json
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from reactivex import Observable

import cuggino
from cuggino import events as ev
from cuggino.agents.base.guard import make_guard
from cuggino.errors import GuardNotLive, QuotaExceeded
from cuggino.operators import extract_markers, marker_tags, until_terminal
from cuggino.testing import AgentConformance, FailureConformance, GuardConformance
from tests.agents.arenas import RealSuite
from tests.agents.claude.claude_lines import kind
from tests.limits import LIMIT
from tests.model_script import (
    SUBSCRIPTION,
    ApiError,
    Drop,
    Hang,
    Message,
    Reply,
    Text,
    Tool,
    always,
    rate_limited,
    usage_limit,
)
from tests.real_claude import Claude, bash, changed_guard
from tests.real_program import SPEC, write_file

ANSWER = Message([Text("<DONE>all of it</DONE>")])
LONG = Message([Text("A text that is longer than one delta of the stream, so it can be cut.")])
DEAR = Message(ANSWER.blocks, input_tokens=50_000, output_tokens=10_000)

CELL = {"cell_type": "code", "id": "a", "metadata": {}, "source": ["1"], "outputs": []}
NOTEBOOK = {
    "cells": [{**CELL, "execution_count": None}],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


class TestAgent(RealSuite, AgentConformance):
    kind = Claude


class TestFailures(RealSuite, FailureConformance):
    kind = Claude


class TestGuard(RealSuite, GuardConformance):
    kind = Claude


@pytest.mark.parametrize(
    ("reply", "env", "requests"),
    [
        (rate_limited(1), {}, 2),
        (rate_limited(3600), {}, 1),
        (Hang(), {"CLAUDE_CODE_MAX_RETRIES": "0", "API_TIMEOUT_MS": "10000"}, 1),
        # It retries once without streaming.
        (Drop(LONG, after_events=4), {"CLAUDE_CODE_MAX_RETRIES": "0"}, 2),
    ],
    ids=["429", "429-far", "silence", "cut"],
)
def test_retries_of_the_program(
    claude: Claude, reply: Reply, env: dict[str, str], requests: int
) -> None:
    """The program retries as configured; a session without an answer costs nothing."""
    done = claude.run(script=always(reply), env=env, retries=1)
    assert kind(done.error) == ("rate_limit" if isinstance(reply, ApiError) else "connection")
    assert requests == len(done.requests)
    assert "failed" == done.ended.outcome
    if not isinstance(reply, Drop):  # the start of a truncated answer may count
        assert 0.0 == done.ended.cost_usd
    assert done.ended.session_id is not None
    assert [] == done.of(ev.AgentMessage)


def test_usage_limit_of_a_subscription(claude: Claude) -> None:
    """A subscription's limit is a quota error with the exact reset time."""
    resets_at = int(time.time()) + 3 * 3600
    done = claude.run(script=always(usage_limit(resets_at)), env=SUBSCRIPTION)
    assert isinstance(done.error, QuotaExceeded)
    assert datetime.fromtimestamp(resets_at, UTC) == done.error.resets_at
    assert ("quota", 0.0) == (done.ended.outcome, done.ended.cost_usd)
    assert ["five_hour"] == [event.limit for event in done.of(ev.RateLimited)]


def test_marker_beyond_the_budget(claude: Claude) -> None:
    """The marker of an answer that exceeds the budget counts."""
    seen: list[ev.Event] = []
    with claude.serve(always(DEAR)) as server:
        session = claude.agent(server.url).spawn(claude.options(max_budget_usd=0.1))
        stage: Observable[ev.Event] = cast("Observable[ev.Event]", session).pipe(
            extract_markers(marker_tags(ev.Done)),
            until_terminal(
                ev.is_llm_terminal_marker_event,
                linger=LIMIT,
                settle=lambda event: isinstance(event, ev.SessionEnded),
            ),
        )
        cuggino.run(stage, seen.append)
    assert ev.Done(content="all of it") == seen[-1]
    assert ["budget"] == [event.outcome for event in seen if isinstance(event, ev.SessionEnded)]


def test_guarded_notebooks(claude: Claude) -> None:
    """NotebookEdit can change notebooks in the sources but not in the specifications."""
    for name in ("good.ipynb", ".specs/bad.ipynb"):
        claude.write(name, json.dumps(NOTEBOOK))
    good, bad = claude.path("good.ipynb"), claude.path(".specs/bad.ipynb")
    new = {"cell_id": "a", "new_source": "2 + 2"}
    done = claude.run(
        [Tool("Read", {"file_path": good}), Tool("Read", {"file_path": bad})],
        [Tool("NotebookEdit", {"notebook_path": path, **new}) for path in (good, bad)],
        guard=claude.policy(),
    )
    assert done.error is None
    assert "2 + 2" in (claude.read("good.ipynb") or "")
    assert json.dumps(NOTEBOOK) == claude.read(".specs/bad.ipynb")
    assert ["NotebookEdit"] == [denied.tool for denied in done.of(ev.GuardDenied)]


def test_guard_overrides_questions_of_the_program(claude: Claude) -> None:
    """The guard alone decides about files that the program would ask about."""
    names = [".vscode/settings.json", ".npmrc", ".gitmodules", ".git/hooks/pre-commit"]
    calls = [Tool("Write", {"file_path": claude.path(name), "content": "x"}) for name in names]
    done = claude.run(calls, bash("mkdir -p .idea && echo x > .idea/a.xml"), guard=claude.policy())
    assert done.error is None
    assert ["x", "x", "x", None] == [claude.read(name) for name in names]
    assert "x\n" == claude.read(".idea/a.xml")
    assert ["toolu_1_3"] == [denied.tool_use_id for denied in done.of(ev.GuardDenied)]


def test_guard_keeps_the_configuration(claude: Claude) -> None:
    """CLAUDE.md files and deny rules stay in force in a guarded session."""
    write_file(claude.home / ".claude" / "CLAUDE.md", "The user likes tabs.\n")
    rules = {"permissions": {"deny": ["Bash(touch:*)"]}}
    write_file(claude.home / ".claude" / "settings.json", json.dumps(rules))
    claude.write("CLAUDE.md", "The project is blue.\n")
    done = claude.run([bash("touch touched"), bash("echo yes > new.txt")], guard=claude.policy())
    assert done.error is None
    assert "The user likes tabs." in done.conversation
    assert "The project is blue." in done.conversation
    assert (None, "yes\n") == (claude.read("touched"), claude.read("new.txt"))
    # The guard did not deny it.
    assert [] == done.of(ev.GuardDenied)


def test_guarded_variables_of_the_project(claude: Claude, tmp_path: Path) -> None:
    """Variables in the project's settings reach commands, but run nothing before them."""
    before = tmp_path / "before.sh"
    before.write_text(f"echo ran >> {tmp_path}/ran\n")
    env = {"BASH_ENV": str(before), "CLAUDE_CODE_SHELL": "/bin/sh", "LD_PRELOAD": "/x.so", "A": "b"}
    claude.write(".claude/settings.json", json.dumps({"env": env}))
    call = bash("echo $A${BASH_VERSION:+ash}$LD_PRELOAD > new.txt")
    done = claude.run(call, guard=claude.policy())
    assert done.error is None
    assert "bash\n" == claude.read("new.txt")
    assert not (tmp_path / "ran").exists()


def test_parser_deleted_during_a_session(claude: Claude, tmp_path: Path) -> None:
    """Without the parser every command is denied; calls that need no parser still run."""
    parser = tmp_path / "shfmt"
    shutil.copy(make_guard(claude.policy()).shfmt, parser)

    def delete() -> list[Tool]:
        parser.unlink()
        target = claude.path("three.txt")
        return [bash("echo two > two.txt"), Tool("Write", {"file_path": target, "content": "3"})]

    with changed_guard(shfmt=str(parser)):
        done = claude.run(bash("echo one > one.txt"), delete, guard=claude.policy())
    assert done.error is None
    assert ["one\n", None, "3"] == [claude.read(f"{n}.txt") for n in ("one", "two", "three")]
    assert ["Bash"] == [denied.tool for denied in done.of(ev.GuardDenied)]


def test_settings_that_the_program_drops(claude: Claude) -> None:
    """One bad value silently drops all settings: the session ends before its first tool."""
    settings: dict[str, Any] = {"permissions": {"allow": 3}}
    done = claude.run(bash("echo one > one.txt"), settings=settings, guard=claude.policy())
    assert isinstance(done.error, GuardNotLive)
    assert "did not run its hook at the start" in done.error.message
    assert "doctor" in (done.error.hint or "")
    assert (None, []) == (claude.read("one.txt"), done.of(ev.ToolResult))
    assert SPEC == claude.read(".specs/task.md")
    assert "failed" == done.ended.outcome
