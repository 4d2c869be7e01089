"""One check by the guard, with shell, interpreter, policy and parser."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from cuggino.agents.base.guard import make_guard
from cuggino.agents.claude.guard import guard_settings
from cuggino.guard.policy import Policy
from tests.benchmarks.measuring import Figure, Took, took, took_in_turns

BARE = (sys.executable, "-c", "pass")


def hook(*, rounds: int = 21) -> Iterator[Figure]:
    """Measure the hook on a call of Bash and of Write."""
    with tempfile.TemporaryDirectory() as name:
        folder = str(Path(name).resolve())
        calls = {
            "Bash": {"command": "cd src && python3 -m pytest -q 2>&1 | tail -20; git status"},
            "Write": {"file_path": f"{folder}/src/app.py", "content": "x = 1\n"},
        }
        settings = guard_settings(make_guard(Policy(project=folder, level="full")), manner="allow")
        entry = settings["hooks"]["PreToolUse"][0]["hooks"][0]
        for tool, given in calls.items():
            call = {
                "hook_event_name": "PreToolUse",
                "tool_name": tool,
                "tool_input": given,
                "tool_use_id": "t",
                "cwd": folder,
            }
            asked = partial(_asked, json.dumps(call).encode())
            whole = (entry["command"], *entry["args"])
            bare, taken = took_in_turns(rounds, partial(asked, BARE), partial(asked, whole))
            yield Figure(
                key=f"guard.{tool.lower()}",
                name=f"the guard on a call of {tool}, CPU",
                value=taken.cpu * 1e3,
                unit="ms",
                floor=bare.cpu * 1e3,
                floor_name="an idle interpreter",
            )


def _asked(data: bytes, argv: Sequence[str]) -> Took:
    return took(lambda: subprocess.run(argv, input=data, stdout=subprocess.PIPE, check=True))
