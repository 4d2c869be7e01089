"""The cost of one check by the guard, as a multiple of an idle Python."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cuggino.agents.base.guard import make_guard
from cuggino.agents.claude.guard import guard_settings
from cuggino.guard.policy import Policy
from tests.limits import LIMIT

ROUNDS = 9
MOST = 9.0
"""A multiple far above the usual four to six."""


def seconds(argv: Sequence[str], data: bytes) -> float:
    began = time.perf_counter()
    subprocess.run(argv, input=data, stdout=subprocess.PIPE, timeout=LIMIT, check=True)
    return time.perf_counter() - began


@pytest.mark.real_agent
@pytest.mark.parametrize("level", ["roles", "full"])
def test_cost_of_a_call(
    tmp_path: Path, level: str, record_property: Callable[[str, object], None]
) -> None:
    """The whole hook (shell, interpreter, policy, parser) costs a few bare interpreters."""
    policy = Policy(project=str(tmp_path.resolve()), level="roles" if level == "roles" else "full")
    entry = guard_settings(make_guard(policy), manner="allow")["hooks"]["PreToolUse"][0]["hooks"][0]
    command = "cd src && python3 -m pytest -q tests/test_app.py 2>&1 | tail -20; git status"
    call = {
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_use_id": "t",
        "cwd": policy.project,
    }
    data = json.dumps(call).encode()
    bare = [sys.executable, "-I", "-S", "-c", "pass"]
    whole = [entry["command"], *entry["args"]]
    # Interleaved, so that both run under the same load.
    pairs = [(seconds(bare, data), seconds(whole, data)) for _ in range(ROUNDS)]
    ratio = statistics.median(b for _, b in pairs) / statistics.median(a for a, _ in pairs)
    record_property("multiple of a bare interpreter", round(ratio, 2))
    assert ratio < MOST
