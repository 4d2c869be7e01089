"""The demo, played by an agent in the place of the scripted one: the same story must come of it."""

from __future__ import annotations

import pytest

from cuggino import ScriptedAgent
from cuggino.events import GuardDenied, LoopApproved, ToolResult
from cuggino_cli.commands.demo import make_project
from tests.loops.test_real_loop import SCENARIO, Played, play


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The demo as the scripted agent plays it."""
    folder = make_project(str(tmp_path_factory.mktemp("scripted") / "demo"))
    return play(folder, ScriptedAgent(SCENARIO))


def results(played: Played) -> list[ToolResult]:
    """What the tools of all sessions have given."""
    return [event for event in played.events if isinstance(event, ToolResult)]


def assert_the_same(expected: Played, played: Played) -> None:
    """The story, the files and the commits are the same; nothing was denied, and nothing failed."""
    assert expected.story == played.story
    assert expected.files == played.files
    assert expected.subjects == played.subjects
    assert isinstance(played.events[-1], LoopApproved)
    assert [] == [event for event in played.events if isinstance(event, GuardDenied)]
    assert [] == [result for result in results(played) if result.is_error]
    assert ["completed"] * 7 == [ended.outcome for ended in played.sessions]
    assert [] == played.session_files
