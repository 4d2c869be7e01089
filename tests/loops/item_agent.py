"""A scripted agent that works on backlog items: its steps know which one, as `$ITEM`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reactivex import Observable

from cuggino.agents.base import SpawnOptions
from cuggino.events import LlmAgentEvent
from cuggino.storage import Workspace, attempt_of
from cuggino.testing import ScriptedAgent

SCENARIO = """
repeat = true

[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan\\n\\n## Task 1: do it\\n"
[[planning.steps]]
say = "<PLAN_COMPLETE>One task.</PLAN_COMPLETE>"

[[implementing]]
cost_usd = 0.01
[[implementing.steps]]
run = "sh $WORK/$ITEM.sh"
[[implementing.steps]]
say = "<DONE>Do $ITEM</DONE>"

[[reviewing]]
[[reviewing.steps]]
say = "<APPROVED>As specified.</APPROVED>"
"""
"""The implementing agent runs a script, named after the item, of the folder `$WORK`."""


class ItemAgent(ScriptedAgent):
    """Plays the same scenario for every item, in the slot where the item is at work."""

    def __init__(self, scenario: Path) -> None:
        super().__init__(scenario)
        self._work = scenario.parent

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        at_work = attempt_of(Workspace(options.cwd)).readable()
        name = at_work.item.rpartition(".md ")[0] if at_work is not None else "none"
        env = {**options.env, "ITEM": name, "WORK": str(self._work)}
        return super().spawn(replace(options, env=env))
