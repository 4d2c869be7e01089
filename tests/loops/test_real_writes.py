"""The real Claude Code CLI attacks what each role may not write, under each boundary."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from cuggino.agents.claude import ClaudeAgent
from cuggino.events import ToolResult
from tests.loops.writing import (
    OFFLINE,
    ROLES,
    ROWS,
    BoundaryName,
    WritingProject,
    as_model,
    assert_held,
    attack,
    needs,
    sessions_for,
)
from tests.model_server import ModelServer
from tests.real_claude import clean_env

pytestmark = pytest.mark.real_agent


@pytest.mark.parametrize("guard", ["off", "roles"])
@pytest.mark.parametrize("name", ["bubblewrap", "landlock", "none"])
def test_nothing_protected_is_changed_at_the_end_of_a_stage(
    claude_cli: Path, tmp_path: Path, name: BoundaryName, guard: Literal["off", "roles"]
) -> None:
    """Each command is a call of the Bash tool; the guard denies some where it is on."""
    needs(name, tmp_path)
    project = WritingProject(tmp_path / "arena")
    chosen = ROWS if guard == "off" else ROWS[::4]
    model = as_model(sessions_for(project, name, chosen), at_once=10)
    with ModelServer(model) as server:
        env = {**clean_env(project.home, server.url), **OFFLINE}
        attacked = attack(project, ClaudeAgent(path=claude_cli, env=env), name, guard=guard)
    results = [event for event in attacked.events if isinstance(event, ToolResult)]
    tried = [row for row in chosen if name not in row.get("not_held_by", [])]
    assert len(tried) < len(results)
    assert [] == [result for result in results if "Cancelled" in result.output]
    assert set(ROLES) == attacked.left.keys()
    assert_held(attacked, name)
