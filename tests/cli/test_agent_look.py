"""Which agents are looked at, and how long they may take."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from cuggino_cli.agent_look import _answer, _configured


def test_the_agents_of_a_project(tmp_path: Path) -> None:
    """Those of roles, those who take over in one role, and those who do in all are its own."""
    config = {
        "agent": "claude",
        "agents": {"planning": {"agent": "a:A", "fallback": ["b:B"]}, "audit": "c:C"},
        "fallback": ["d:D"],
    }
    (tmp_path / ".cuggino.json").write_text(json.dumps(config))
    assert {"claude", "a:A", "b:B", "c:C", "d:D"} == set(_configured(tmp_path))


def test_an_answer_that_is_asked_for_late() -> None:
    """What has ended has answered, also when another one has used up the time."""
    words = [sys.executable, "-c", "print('said')"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        process.wait(timeout=60)
        assert b"said\n" == _answer(process, -1.0)


def test_no_answer_in_time() -> None:
    """Whoever still runs when the time is up has not answered."""
    words = [sys.executable, "-c", "input()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert _answer(process, 0.0) is None
        process.kill()
