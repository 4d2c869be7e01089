"""Scripted agents whose sessions depend on the backlog item, or the task, that they are about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reactivex import Observable

from cuggino.agents import LlmAgent
from cuggino.agents.base import Capabilities, SpawnOptions
from cuggino.agents.scripted import ScriptedAgent
from cuggino.agents.scripted.scenario import Scenario
from cuggino.domain import MOST_ATTEMPTS
from cuggino.events import LlmAgentEvent
from cuggino.guard import Policy
from cuggino.loops.watch.slots import MOST_SLOTS
from cuggino.storage import Workspace, attempt_of

PAUSE = 0.01
BROKEN = "broken"
"""The file whose content makes the check fail."""
KINDS = ("good", "rounds", "check", "stall", "crash")
"""What an item may be: approved at once; in the second iteration; once its check passes; never, as
its reviews repeat; never, as its agent crashes."""

SHARED = "shared"
"""The kind of an item that is approved at once, and adds a line where others do, too."""

_ADD_LINE = """
if git ls-files -u | grep -q .; then git show :2:lines :3:lines; else cat lines; fi >lines.new
echo {name} >>lines.new
sort -u lines.new >lines
rm lines.new
"""

_ITEM = r"Write (?P<name>{name}), (?P<kind>\w+)\."


def item_text(name: str, kind: str) -> str:
    """Return the text of a backlog item."""
    return f"Write {name}, {kind}.\n"


TASKS = 8
RACED = 5
"""The task that has two attempts, of which the first breaks the check."""
_AFTER = {4: "1", 7: "2, 3"}
_TASK = re.compile(r"^## Task \d+: (?P<name>word-(?P<number>\d+))", re.MULTILINE)


class ItemAgent(LlmAgent):
    """Plays the scenario of the kind that the item names."""

    name = "items"

    def scenario_for(self, options: SpawnOptions) -> Scenario:
        """Return the sessions of the item at work in a folder."""
        return _scenario_for(options)

    def __init__(self) -> None:
        self._agent = ScriptedAgent(Scenario())
        self._agents: dict[str, ScriptedAgent] = {}
        """Those of the items that are at work, by the folder."""
        self._scenarios: dict[str, Scenario] = {}

    @property
    def capabilities(self) -> Capabilities:
        return self._agent.capabilities

    def check(self) -> str:
        return self._agent.check()

    def check_guard(self, policy: Policy) -> None:
        self._agent.check_guard(policy)

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        scenario, folder = self.scenario_for(options), str(options.cwd)
        if scenario != self._scenarios.get(folder):
            self._scenarios[folder], self._agents[folder] = scenario, ScriptedAgent(scenario)
        return self._agents[folder].spawn(options)


class TaskAgent(ItemAgent):
    """Plans tasks that hands do side by side, a file each, and does them."""

    name = "tasks"

    def scenario_for(self, options: SpawnOptions) -> Scenario:
        sections = []
        for number in range(1, TASKS + 1):
            raced = "\nattempts: 2" if number == RACED else ""
            fields = f"after: {_AFTER.get(number, 'none')}\nfiles: words/word-{number}.txt{raced}"
            sections.append(f"## Task {number}: word-{number}\n\n{fields}\n")
        plan = "# Plan\n\n" + "\n".join(sections)
        sessions = {
            "planning": [
                {"write": "$CUGGINO_PLAN_FILE", "text": plan},
                {"say": f"<PLAN_COMPLETE>{TASKS} tasks</PLAN_COMPLETE>"},
            ],
            "reviewing": [{"say": "<APPROVED>as it should be</APPROVED>"}],
        }
        if options.role == "implementing":
            text = Path(options.env["CUGGINO_SESSION_FILE"]).read_text()
            found = _TASK.search(text)
            assert found is not None, "the plan has no task"
            sessions["implementing"] = _task(found["name"], int(options.env["CUGGINO_SLOT"]))
        listed = {role: [_session(*steps)] for role, steps in sessions.items()}
        return Scenario.model_validate({"pause": PAUSE, "repeat": True, **listed})


def _task(name: str, slot: int) -> list[dict[str, Any]]:
    """Return the steps of a task; in the first slot beside a hand it breaks the check."""
    breaks = slot > MOST_SLOTS and (slot - MOST_SLOTS) % MOST_ATTEMPTS == 1
    slow: list[dict[str, Any]] = [{"sleep": 1.0}] if slot > MOST_SLOTS and not breaks else []
    return [
        {"write": f"words/{name}.txt", "text": f"{name}\n"},
        *([{"write": BROKEN, "text": f"{name}\n"}] if breaks else slow),
        {"say": f"<DONE>feat: {name}</DONE>"},
    ]


def _scenario_for(options: SpawnOptions) -> Scenario:
    at_work = attempt_of(
        Workspace(options.cwd)
    ).readable()  # in a slot, whose prompts name others, too
    name = at_work.item.partition(".md ")[0] if at_work is not None else r"word-\d+"
    item = re.compile(_ITEM.format(name=name))
    found = item.search(f"{options.system_prompt}\n{options.prompt}")
    if found is None:
        found = item.search(Path(options.env["CUGGINO_SESSION_FILE"]).read_text())
    assert found is not None, f"the {options.role} session names no item"
    name, kind = found["name"], found["kind"]

    return scenario(name, kind)


def scenario(name: str, kind: str) -> Scenario:
    """Return the sessions of an item of that kind."""
    path = f"words/{name}.txt"
    plan = f"# Plan\n\n- [ ] {item_text(name, kind)}"
    planning = _session(
        {"write": "$CUGGINO_PLAN_FILE", "text": plan},
        {"say": f"<PLAN_COMPLETE>{name}</PLAN_COMPLETE>"},
    )
    final = {"write": path, "text": f"{name}\n"}
    draft = {"write": path, "text": "draft\n"}
    done = {"say": f"<DONE>feat: {name}</DONE>"}
    fixed = {"say": f"<DONE>fix: {name}</DONE>"}
    approved = _session({"say": "<APPROVED>as it should be</APPROVED>"})
    refused = _session({"say": f"<REQUEST_CHANGES>{path} is a draft</REQUEST_CHANGES>"})
    implementing, reviewing = [_session(final, done)], [approved]
    match kind:
        case "rounds":
            implementing = [_session(draft, done), _session(final, fixed)]
            reviewing = [refused, approved]
        case "check":
            breaks, mends = ({"write": BROKEN, "text": text} for text in (f"{name}\n", ""))
            implementing = [_session(final, breaks, done), _session(mends, fixed)]

        case "stall":
            implementing, reviewing = [_session(draft, done)], [refused]
        case "shared":
            implementing = [_session(final, {"run": _ADD_LINE.format(name=name)}, done)]
        case "crash":
            planning = _session({"exit": 3, "text": "segmentation fault"})
        case _:
            assert kind == "good", f"there is no kind {kind!r}"
    return Scenario.model_validate(
        {
            "pause": PAUSE,
            "repeat": True,
            "planning": [planning],
            "implementing": implementing,
            "reviewing": reviewing,
        }
    )


def _session(*steps: Mapping[str, Any]) -> dict[str, Any]:
    return {"cost_usd": 0.01, "steps": steps}
