"""The agents of a project to probe, and the time limit of a probe."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cuggino import run
from cuggino.config import load_config
from cuggino.doctor.agents import _answer, _configured
from cuggino.testing import no_leaks
from tests.limits import LIMIT


def test_the_agents_of_a_project(tmp_path: Path) -> None:
    """A project's agents include those of roles and the fallbacks of one role or of all."""
    config = {
        "agent": "claude",
        "agents": {"planning": {"agent": "a:A", "fallback": ["b:B"]}, "audit": "c:C"},
        "fallback": ["d:D"],
    }
    (tmp_path / ".cuggino.json").write_text(json.dumps(config))
    assert {"claude", "a:A", "b:B", "c:C", "d:D"} == set(_configured(load_config(tmp_path)))


def test_an_answer(tmp_path: Path) -> None:
    """What an inspection prints is its answer, whatever its exit code."""
    words = [sys.executable, "-c", "print('said'); exit(1)"]
    assert b"said\n" == run(_answer(words, tmp_path, seconds=LIMIT))


def test_an_inspection_that_times_out(tmp_path: Path) -> None:
    """An inspection that still runs when the time is up has no answer, and leaves no process."""
    with no_leaks():
        assert run(_answer(["sleep", "600"], tmp_path, seconds=0.0)) is None
