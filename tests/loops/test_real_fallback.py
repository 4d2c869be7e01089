"""The coding loop when the real Claude Code CLI has no usage left, or is not logged in."""

from __future__ import annotations

import json
import time

import pytest

from cuggino.events import AgentFellBack, LoopApproved, RateLimited, SessionEnded, StageCost
from cuggino.storage import Workspace, list_journals, read_journal
from tests.loops.test_real_policies import DONE, WORK, Model, Project, of, project
from tests.model_script import SUBSCRIPTION, usage_limit
from tests.model_server import ModelServer

pytestmark = pytest.mark.real_agent

__all__ = ["project"]

SPARE = """
[[implementing]]
cost_usd = 0.5
[[implementing.steps]]
run = "cat one.txt > two.txt"
[[implementing.steps]]
say = "<DONE>both files</DONE>"
[[reviewing]]
[[reviewing.steps]]
say = "<APPROVED>Fine.</APPROVED>"
"""


def test_a_usage_limit_in_mid_session(project: Project) -> None:
    """Another agent takes over the work as it is in the project, and keeps it to the end."""
    (project.folder / "spare.toml").write_text(SPARE)
    config = {"agentPath": str(project.program), "fallback": ["scripted:spare.toml"]}
    (project.folder / ".cuggino.json").write_text(json.dumps(config))
    with ModelServer(Model(WORK, usage_limit(int(time.time()) + 3600))) as server:
        told = project.command(server, "--focus", "the task", env=SUBSCRIPTION)
    assert (0, "") == (told.code, told.complaint)
    assert isinstance(told.events[-1], LoopApproved)
    (fell,) = of(told.events, AgentFellBack)
    assert ("implementing", "claude", "scripted:spare.toml", "quota") == (
        fell.role,
        fell.from_agent,
        fell.to_agent,
        fell.reason,
    )
    (limit,) = [e for e in of(told.events, RateLimited) if e.status == "rejected"]
    assert limit.resets_at == fell.until
    assert "worked\n" == (project.folder / "two.txt").read_text()
    stage = next(e for e in of(told.events, StageCost) if e.phase == "implementing")
    costs = [event.cost_usd or 0.0 for event in of(told.events, SessionEnded)][1:3]
    assert costs[0] > 0
    assert pytest.approx(sum(costs)) == stage.cost_usd
    (path,) = list_journals(Workspace(project.folder).journal)
    assert any(entry.event == fell for entry in read_journal(path).entries)


def test_the_model_is_that_of_the_role(project: Project) -> None:
    """A role with its own model requests that one, the others the configured one."""
    config = {
        "agentPath": str(project.program),
        "model": "claude-sonnet-4-5",
        "agents": {"planning": {"model": "claude-opus-4-5"}},
    }
    (project.folder / ".cuggino.json").write_text(json.dumps(config))
    with ModelServer(Model(WORK, DONE)) as server:
        told = project.command(server, "--focus", "the task")
    assert (0, "") == (told.code, told.complaint)
    asked = [str(request.body["model"]) for request in server.requests]
    assert ["claude-opus-4-5", "claude-sonnet-4-5"] == list(dict.fromkeys(asked))
