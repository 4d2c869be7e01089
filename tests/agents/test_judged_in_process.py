"""Agents whose tool calls are judged by the process of the run itself."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.limits import LIMIT

_CODE = """
import importlib, json, os, sys
from pathlib import Path
from cuggino.agents.base.guard import make_guard
from cuggino.agents.base.calls import Call
from cuggino.guard import Policy

def judge(module, answers, level):
    policy = Policy("/p", level=level)
    judges = getattr(importlib.import_module(module), answers)
    guard = make_guard(policy)
    judges(cwd=Path("/p"), unattended=True, guard=guard).try_out()
    before = set(sys.modules)
    for tool, given in json.loads(sys.argv[1]):
        answer = guard.judge.verdict(Call(tool, given), call_id="c", cwd="/p")
        assert answer["decision"] in ("allow", "deny"), answer
    return {name for name in set(sys.modules) - before if name.startswith("cuggino")}

for module, answers in json.loads(sys.argv[2]):
    for level in ("roles", "full"):
        if (copy := os.fork()) == 0:
            late = judge(module, answers, level)
            print(module, level, *sorted(late), flush=True)
            os._exit(0)
        assert os.waitpid(copy, 0)[1] == 0
"""
"""Each trial begins in a copy of a process that has imported none of the rules."""
_JUDGES = [("cuggino.agents.acp.guard", "Judge"), ("cuggino.agents.copilot.guard", "Gate")]
_CALLS = [
    ("Bash", {"command": "git -C x push && sed -i s/a/b/ f | tee g; bash -c 'rm -rf /'"}),
    ("Write", {"file_path": "/p/a", "content": "x"}),
    ("WebFetch", {"url": "https://example.org"}),
    ("mcp__a__b", {"x": 1}),
    ("Nonsense", {}),
]


def test_no_rule_is_loaded_while_a_run_works() -> None:
    """The trial before a session imports all rules, as the package may be replaced later."""
    command = [sys.executable, "-c", _CODE, json.dumps(_CALLS), json.dumps(_JUDGES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert 0 == done.returncode, done.stderr
    tried = [f"{module} {level}" for module, _ in _JUDGES for level in ("roles", "full")]
    assert tried == done.stdout.splitlines()
