"""Agents whose tool calls are judged by the process of the run itself."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.limits import LIMIT

_CODE = """
import importlib, json, sys
from pathlib import Path
from cuggino.agents.base.guard import make_guard
from cuggino.guard import Policy, hook
answers = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])
policy = Policy("/p", level=sys.argv[3])
answers(cwd=Path("/p"), unattended=True, guard=make_guard(policy)).try_out()
before = set(sys.modules)
for tool, given in json.loads(sys.argv[4]):
    data = {"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": given, "cwd": "/p"}
    answer = hook.answer(data, policy, shfmt="shfmt", token="t", manner="judge")
    assert answer["cuggino"]["decision"] in ("allow", "deny"), answer
print(*sorted(name for name in set(sys.modules) - before if name.startswith("cuggino")))
"""
_CALLS = [
    ("Bash", {"command": "git -C x push && sed -i s/a/b/ f | tee g; bash -c 'rm -rf /'"}),
    ("Write", {"file_path": "/p/a", "content": "x"}),
    ("WebFetch", {"url": "https://example.org"}),
    ("mcp__a__b", {"x": 1}),
    ("Nonsense", {}),
]


@pytest.mark.parametrize(
    ("module", "answers"),
    [("cuggino.agents.acp.guard", "Judge"), ("cuggino.agents.copilot.guard", "Gate")],
)
@pytest.mark.parametrize("level", ["roles", "full"])
def test_no_rule_is_loaded_while_a_run_works(module: str, answers: str, level: str) -> None:
    """The trial before a session imports all rules, as the package may be replaced later."""
    command = [sys.executable, "-c", _CODE, module, answers, level, json.dumps(_CALLS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert 0 == done.returncode, done.stderr
    assert "" == done.stdout.strip()
