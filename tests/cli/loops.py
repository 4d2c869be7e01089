"""A test double for the plan/build loop and a real project, for the `cuggino loop` tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cuggino.config import Config, save_config
from cuggino.events import Event, PlanBuildEnded
from cuggino.loops.plan_build.options import PlanBuildOptions
from tests.cli.drawn_runs import DrawnRun

COMPLETE = PlanBuildEnded(reason="complete", iterations=2, done=3, cost_usd=0.5, duration=90)
BANNER = "Lopen Loop - Autonomous Development Workflow"
OVERALL = "Overall: 2 iteration(s). Jobs: 0 open, 3 done. cost=$0.5000, duration=1m 30s"

JOBS = '{"jobs": [{"id": "J1", "requirementCode": "R-1", "description": "a", "status": "STATUS"}]}'
SCENARIO = f"""\
[[plan]]
cost_usd = 0.25
[[plan.steps]]
write = "docs/requirements/jobs-to-be-done.json"
text = '{JOBS.replace("STATUS", "open")}'
[[plan.steps]]
say = "All is planned."

[[build]]
cost_usd = 0.5
[[build.steps]]
write = "docs/requirements/jobs-to-be-done.json"
text = '{JOBS.replace("STATUS", "done")}'
[[build.steps]]
write = "lopen.loop.done"
text = "done"
[[build.steps]]
say = "All is built."

[[judge]]
steps = [{{ say = '{{"buildSucceeds": true}}' }}]
[[judge]]
[[judge.steps]]
say = '''{{"complete": true, "testsPass": true, "documentationExists": true,
"buildSucceeds": true, "requirementValid": true}}'''
"""


def project_of(folder: Path, scenario: str = "", *, branch: str = "feat", **settings: Any) -> Path:
    """Return a project on a branch, with prompts, a requirement and an agent with that scenario."""
    requirements = folder / "docs" / "requirements" / "m"
    requirements.mkdir(parents=True, exist_ok=True)
    (requirements / "SPECIFICATION.md").write_text("R-1: a\n", encoding="utf-8")
    for name in ("PLAN.PROMPT.md", "BUILD.PROMPT.md"):
        (folder / name).write_text(f"What is in {name}.\n", encoding="utf-8")
    (folder / ".git").mkdir(exist_ok=True)
    (folder / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n", encoding="utf-8")
    (folder / "scenario.toml").write_text(scenario, encoding="utf-8")
    save_config(
        folder,
        Config.model_validate({"agent": "scripted:scenario.toml", "sandbox": "off", **settings}),
    )
    return folder


@dataclass
class DrawnLoop(DrawnRun[PlanBuildOptions]):
    """A test double for the plan/build loop."""

    events: Iterable[Event] = (COMPLETE,)

    def put(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make every `Runtime` use this loop."""
        self.put_for("plan_build", "resume_plan_build", monkeypatch)
