"""A scripted agent that works on imported issues, by the number of the issue."""

from __future__ import annotations

import re

from reactivex import Observable
from typing_extensions import override

from cuggino.agents import LlmAgent
from cuggino.agents.base import Capabilities, SpawnOptions
from cuggino.agents.scripted import ScriptedAgent
from cuggino.agents.scripted.scenario import Scenario
from cuggino.events import LlmAgentEvent
from cuggino.guard import Policy
from cuggino.storage import Workspace, attempt_of

QUESTION = "Which color has page 2?"
"""What the planning agent of issue 2 asks, until the specifications answer it."""

_NUMBER = re.compile(r"-0*(\d+)\.md")


class IssueAgent(LlmAgent):
    """Writes `page-N.txt` for issue N: that of issue 1 is wrong at first."""

    name = "issues"

    def __init__(self) -> None:
        self._agent = ScriptedAgent(Scenario())

    @property
    def capabilities(self) -> Capabilities:
        return self._agent.capabilities

    @override
    def check(self) -> str:
        return self._agent.check()

    @override
    def check_guard(self, policy: Policy) -> None:
        self._agent.check_guard(policy)

    @override
    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        at_work = attempt_of(Workspace(options.cwd)).readable()
        found = _NUMBER.search(at_work.item) if at_work is not None else None
        number = int(found[1]) if found is not None else 0
        decisions = options.cwd / ".specs" / "decisions.md"
        is_answered = decisions.is_file() and QUESTION in decisions.read_text()
        return ScriptedAgent(_scenario(number, is_answered=is_answered)).spawn(options)


def _scenario(number: int, *, is_answered: bool) -> Scenario:
    path = f"page-{number}.txt"
    planning = [
        {"write": "$CUGGINO_PLAN_FILE", "text": f"# Plan\n\n- [ ] {path}\n"},
        {"say": "<PLAN_COMPLETE>One page.</PLAN_COMPLETE>"},
    ]
    if number == 2 and not is_answered:
        planning = [{"say": f"<SPEC_ISSUE># {QUESTION}\n\nThe issue is silent.</SPEC_ISSUE>"}]
    # What is there already was refused by CI.
    text = (
        f"if test -e {path}; then echo right; else echo {'wrong' if number == 1 else 'right'}; fi"
    )
    write = f"text=$({text}); echo $text > {path}"
    return Scenario.model_validate(
        {
            "repeat": True,
            "planning": [{"steps": planning, "cost_usd": 0.01}],
            "implementing": [
                {
                    "steps": [{"run": write}, {"say": f"<DONE>Write page {number}</DONE>"}],
                    "cost_usd": 0.02,
                }
            ],
            "reviewing": [{"steps": [{"say": "<APPROVED>As asked.</APPROVED>"}], "cost_usd": 0.01}],
        }
    )
