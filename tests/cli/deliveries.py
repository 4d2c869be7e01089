"""A test double for the deliverables loop and a real project, for the `cuggino deliver` tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cuggino.config import Config, save_config
from cuggino.events import DeliverEnded, Event
from cuggino.loops import DeliverRunOptions
from tests.cli.drawn_runs import DrawnRun

DONE = DeliverEnded(reason="all_passed", sessions=1, passed=2, total=2, cost_usd=0.5, duration=90)
OVERALL = "Overall: 1 session(s), 2/2 deliverables passed, cost=$0.5000, duration=1m 30s"

SCENARIO = """\
[[initializer]]
cost_usd = 0.25
[[initializer.steps]]
tool = "create_deliverable"
[[initializer.steps.input.deliverables]]
id = "DL-001"
description = "a login"
acceptanceCriteria = ["it works"]
[[initializer.steps]]
say = "All is laid."

[[coding]]
cost_usd = 0.5
[[coding.steps]]
tool = "set_deliverable_status"
input = { deliverableId = "DL-001", status = "passed" }
[[coding.steps]]
say = "All is done."
"""


def project_of(folder: Path, scenario: str, **settings: Any) -> Path:
    """Return a project with a specification and a scripted agent that plays the scenario."""
    folder.mkdir(exist_ok=True)
    (folder / "SPEC.md").write_text("# A login\n", encoding="utf-8")
    (folder / "scenario.toml").write_text(scenario, encoding="utf-8")
    save_config(folder, Config.model_validate({"agent": "scripted:scenario.toml", **settings}))
    return folder


@dataclass
class Loop(DrawnRun[DeliverRunOptions]):
    """A test double for the deliverables loop."""

    events: Iterable[Event] = (DONE,)

    def put(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make every `Runtime` use this loop."""
        self.put_for("deliver", "resume_delivery", monkeypatch)
