"""The agents of a project to probe, and the time limit of a probe."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from cuggino.config import load_config
from cuggino.doctor.agents import _answer, _configured
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


def test_an_answer_that_is_asked_for_late() -> None:
    """A finished probe counts even if another one used up the time."""
    words = [sys.executable, "-c", "print('said')"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        process.wait(timeout=LIMIT)
        assert b"said\n" == _answer(process, -1.0)


def test_a_probe_that_times_out() -> None:
    """A probe that is still running at the deadline has no answer."""
    words = [sys.executable, "-c", "input()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert _answer(process, 0.0) is None
        process.kill()
