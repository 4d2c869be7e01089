"""The example for Harbor, without Harbor: what it runs in a container, and what it reports."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from cuggino import dump_event
from cuggino.events import IterationStart, LoopApproved, StageCost, Usage
from tests.limits import LIMIT

EXAMPLE = Path(__file__).parents[1] / "examples/harbor_agent.py"
FAKE = """\
#!/bin/sh
echo "$@" >> "$CALLS"
[ "$1" = setup ] && exit "$SETUP_CODE"
mkdir -p .cuggino/journal && touch .cuggino.json .cuggino/journal/run.jsonl work.txt
echo '{}'
exit "$CODE"
"""


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of the example, with the classes of Harbor that it imports."""
    doubles: dict[str, dict[str, Any]] = {
        "harbor.agents.installed.claude_code": {
            "ClaudeCode": type("ClaudeCode", (), {}),
            "ClaudeCodeOptions": BaseModel,
        },
        "harbor.environments.base": {"BaseEnvironment": object},
        "harbor.models.agent.context": {"AgentContext": object},
    }
    for name, classes in doubles.items():
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            part = ".".join(parts[:end])
            if part not in sys.modules:
                monkeypatch.setitem(sys.modules, part, ModuleType(part))
        vars(sys.modules[name]).update(classes)
    spec = spec_from_file_location("harbor_agent", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module


@pytest.mark.parametrize(
    ("code", "setup", "expected"),
    [(0, 0, 0), (11, 0, 0), (14, 0, 0), (1, 0, 1), (2, 0, 2), (0, 2, 2), (143, 0, 143)],
)
def test_the_task_is_worked_on(
    example: Any, code: int, setup: int, expected: int, tmp_path: Path
) -> None:
    """Only failures of the run fail the trial; the work stays, and cuggino's own files go."""
    home, logs, task = (tmp_path / name for name in ("home", "logs", "task"))
    for folder in (home / ".local/bin", logs, task):
        folder.mkdir(parents=True)
    program = home / ".local/bin/cuggino"
    program.write_text(FAKE, encoding="utf-8")
    program.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", example.run_script(logs=str(logs), check="make 'a b'", budget=2)],
        cwd=task,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "CALLS": str(logs / "calls"),
            "CUGGINO_TASK": "Say $HI",
            "CODE": str(code),
            "SETUP_CODE": str(setup),
        },
        timeout=LIMIT,
    )
    assert expected == done.returncode
    calls = (logs / "calls").read_text(encoding="utf-8").splitlines()
    assert "setup --yes --check-command make 'a b' --gate block" == calls[0]
    if setup:
        assert len(calls) == 1
        return
    assert calls[1].endswith("--budget 2")
    assert ["work.txt"] == [path.name for path in task.iterdir()]
    assert (logs / "cuggino-journal/run.jsonl").exists()
    assert "{}\n" == (logs / "cuggino.jsonl").read_text(encoding="utf-8")


def test_totals_of_a_run(example: Any) -> None:
    """The last cost, the iterations and the ending are read from the events; a torn line is not."""
    usage = Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3)
    events = [
        IterationStart(iteration=1, max_iterations=10),
        StageCost(phase="planning", total_cost=0.5),
        IterationStart(iteration=2, max_iterations=10),
        StageCost(phase="reviewing", total_cost=1.5, total_usage=usage),
        LoopApproved(iteration=2, checked=True),
    ]
    found = example.totals([*map(dump_event, events), '{"_tag": "Sta'])
    assert found == {
        "iterations": 2,
        "cost_usd": 1.5,
        "usage": usage.model_dump(),
        "ending": "LoopApproved",
    }
    assert example.totals([]) == {"iterations": 0}
