"""Agents whose tool calls are judged by the process of the run itself."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.limits import LIMIT

_CODE = """
import importlib, json, sys
from cuggino.guard import Policy, hook, load_rules
importlib.import_module(sys.argv[1])
load_rules()
before = set(sys.modules)
for level in ("roles", "full"):
    for tool, given in json.loads(sys.argv[2]):
        call = {"tool_name": tool, "tool_input": given, "cwd": "/p"}
        data = {"hook_event_name": "PreToolUse", **call}
        policy = Policy("/p", level=level)
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


@pytest.mark.parametrize("module", ["cuggino.agents.acp.guard", "cuggino.agents.copilot.guard"])
def test_no_rule_is_loaded_while_a_run_works(module: str) -> None:
    """All rules are imported before a session starts, as the package may be replaced later."""
    command = [sys.executable, "-c", _CODE, module, json.dumps(_CALLS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert 0 == done.returncode, done.stderr
    assert "" == done.stdout.strip()
