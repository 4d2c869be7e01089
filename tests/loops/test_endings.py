"""Every way to end a run with the scripted agent leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import cuggino
from cuggino import Config
from cuggino.agents.scripted import ScriptedAgent
from cuggino.processes import process_lines
from cuggino.testing import no_leaks
from tests.loops.endings import RUN_TOOL, Endings, Project

SCENARIO = f"""
[[planning]]
[[planning.steps]]
run = '{RUN_TOOL}'
"""


class TestScriptedEndings(Endings):
    """Its tools run in sessions of their own, and the agent's program does not end them."""

    @pytest.fixture
    def project(self, tmp_path: Path) -> Iterator[Project]:
        scenario = tmp_path / "scenario.toml"
        scenario.write_text(SCENARIO)
        cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
        with no_leaks():
            yield Project.make(
                tmp_path / "project", ScriptedAgent(scenario), Config(agent=f"scripted:{scenario}")
            )
