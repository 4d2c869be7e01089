"""A project whose truth is known, with the agents, the check and the files that loops see of it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from reactivex import Observable, concat, defer, from_iterable, just, throw

from cuggino.agents.base import Capabilities, LlmAgent, SpawnOptions
from cuggino.errors import ProcessFailed
from cuggino.events import AgentMessage, LlmAgentEvent, SessionEnded
from cuggino.gate import NoWork, Shell, State
from cuggino.simulation.odds import Odds, WorkRole
from cuggino.storage import DONE_FILE, JOBS_FILE, REQUIREMENTS_FOLDER

_Report: TypeAlias = Literal["done", "more", ""]
"""What an implementer says of its work: done, more is left, or nothing."""

_CODE = "REQ-1"
_FILES: Mapping[str, str] = {
    ".specs/specification.md": "# Specification\n",
    f"{REQUIREMENTS_FOLDER}/page/SPECIFICATION.md": f"# {_CODE}\n",
    "BUILD.PROMPT.md": "Build.\n",
}
_PLAN = "# Plan\n\n## Task 1\n"
_REMINDED = 0.05
"""The share of a session's cost that the answer to a reminder takes."""


class _Fault(NamedTuple):
    """Something wrong with the work."""

    name: str
    is_covered: bool
    """True if the check finds it."""


class World:
    """The state of the work: what is wrong with it, whoever believes what.

    Each kind of draw has its own random numbers, so that two worlds with the same seed and other
    odds differ only where the odds decide otherwise.
    """

    def __init__(self, odds: Odds, seed: int) -> None:
        self.odds = odds
        self.cost = 0.0
        """The dollars of all sessions."""
        self.sessions = 0
        self.version = 0
        """The number of the implementer's sessions."""
        self._implementer = random.Random(f"{seed} implementer")
        self._reviewer = random.Random(f"{seed} reviewer")
        self._check = random.Random(f"{seed} check")
        self._faults = [self._fault("task", self._implementer.random())]

    def _fault(self, name: str, chance: float) -> _Fault:
        return _Fault(name, chance < self.odds.covers)

    @property
    def is_right(self) -> bool:
        """Return whether nothing is wrong with the work."""
        return not self._faults

    def pay(self, role: WorkRole, *, share: float = 1.0) -> float:
        """Return the cost of a session of the role, and add it up."""
        cost = self.odds.cost(role) * share
        self.cost += cost
        self.sessions += share == 1.0
        return cost

    def work(self) -> None:
        """Change the work, for better or worse."""
        self.version += 1
        right, breaks, covered = (self._implementer.random() for _ in range(3))
        if right < self.odds.right:
            self._faults.clear()
        if breaks < self.odds.breaks:
            self._faults.append(self._fault(f"regression_{self.version}", covered))

    def report(self) -> _Report:
        """Return what the implementer says of the work."""
        admits, forgets = self._implementer.random(), self._implementer.random()
        if forgets < self.odds.forgets:
            return ""
        return "more" if self._faults and admits < self.odds.admits else "done"

    def approves(self) -> bool:
        """Return the verdict of a reviewer."""
        chance = self._reviewer.random()
        return (
            chance < self.odds.approves_wrong if self._faults else chance >= self.odds.rejects_right
        )

    def failing(self) -> list[str]:
        """Return the tests that fail now. The task itself has none before somebody works on it."""
        flakes = self._check.random() < self.odds.flakes
        found = [fault.name for fault in self._faults if fault.is_covered and self.version]
        return [*found, "flaky"] if flakes else found

    def shell(self, _command: str, _cwd: Path) -> Observable[bytes]:
        """Run the check; implements `Shell`."""

        def result(_: object) -> Observable[bytes]:
            failing = self.failing()
            if not failing:
                return just(b"3 passed in 0.1s\n")
            lines = [f"FAILED tests/test_work.py::test_{name}\n" for name in failing]
            output = from_iterable([line.encode() for line in lines])
            return concat(output, throw(ProcessFailed("check", 1, "")))

        return defer(result)


class WorldAgent(LlmAgent):
    """The agents of all roles. They work at once, and say what the world's odds let them say."""

    name = "simulated"

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def capabilities(self) -> Capabilities:
        """Return that a session can be resumed, for a reminder, and reports its cost."""
        return Capabilities(resume=True, cost="dollars")

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Play a session of the role."""
        return defer(lambda _: from_iterable([*self._session(options)]))

    def _session(self, options: SpawnOptions) -> Iterator[Any]:
        world, role = self._world, options.role
        is_reminded = options.resume_session_id is not None
        share = _REMINDED if is_reminded else 1.0
        match role:
            case "planning":
                paid = world.pay("planning", share=share)
                Path(options.env["CUGGINO_PLAN_FILE"]).write_text(_PLAN, encoding="utf-8")
                text = _marker("PLAN_COMPLETE", "One task.")
            case "reviewing":
                paid = world.pay("reviewing", share=share)
                is_approved = world.approves()
                text = _marker("APPROVED", "It matches.") if is_approved else self._rejected()
            case _:
                paid = world.pay("implementing", share=share)
                if not is_reminded:
                    world.work()
                report = world.report()
                if role == "build":
                    _report_job(options.cwd, report)
                text = _REPORTS[report]
        yield AgentMessage(text=text)
        yield SessionEnded(
            outcome="completed", cost_usd=paid, session_id=options.session_id or "simulated"
        )

    def _rejected(self) -> str:
        return _marker("REQUEST_CHANGES", f"Version {self._world.version} does not match.")


def _marker(tag: str, text: str) -> str:
    return f"<{tag}>{text}</{tag}>"


_REPORTS: Mapping[_Report, str] = {
    "done": _marker("DONE", "All of it."),
    "more": _marker("PROGRESS", "Not all of it."),
    "": "I have worked on it.",
}


def _report_job(project: Path, report: _Report) -> None:
    """Report as builders of the plan/build loop do: by the jobs file and the done file."""
    if not report:
        return
    status = "done" if report == "done" else "in-progress"
    job = {"id": "1", "requirementCode": _CODE, "description": "the task", "status": status}
    (project / JOBS_FILE).write_text(json.dumps({"jobs": [job]}), encoding="utf-8")
    if report == "done":
        (project / DONE_FILE).write_text("done", encoding="utf-8")


class WorldFiles(NoWork):
    """The files of the project, as the gate compares them: a new tree with each session."""

    def __init__(self, world: World) -> None:
        self._world = world

    def state(self, commit: str | None = None) -> Observable[State | None]:
        tree = f"version {self._world.version}"
        return just({"tree": tree, "head": None, "branch": None, "ignored": {}, "listed": []})

    def changed(self, start: State) -> Observable[State]:
        tree = f"version {self._world.version}"
        found: State = {"changed": [], "added": [], "ignored": [], "listed": []}
        return just({**found, "had_tests": True, "tree": tree})

    def copy(
        self, start: State, paths: Sequence[str], *, env: Mapping[str, str]
    ) -> Observable[Shell | None]:
        return just(self._world.shell)


def prepare(project: Path) -> None:
    """Write the files of the project that loops read."""
    for name, text in _FILES.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
