"""A project whose truth is known, with the agents, the check and the files that loops see of it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from reactivex import Observable, concat, defer, from_iterable, just, operators as ops, throw, timer

from cuggino.agents.base import Capabilities, LlmAgent, SpawnOptions
from cuggino.domain import plan_tasks
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
_PART = "work/{}.json"
_REMINDED = 0.05
"""The share of a session's cost that the answer to a reminder takes."""


class _Fault(NamedTuple):
    """Something wrong with the work."""

    name: str
    is_covered: bool
    """True if the check finds it."""


class _Work(NamedTuple):
    """The work at one task in one folder, as a file there has it."""

    version: int
    """The number of the sessions of implementers."""
    faults: tuple[_Fault, ...]


class World:
    """A project that knows what is wrong with its work, whoever believes what.

    That stands in a file for each of its `tasks`, so that clones and commits have it as they have
    any work. Each kind of draw has random numbers of its own in each folder, so that two worlds
    with the same seed and other odds differ only where the odds decide otherwise.
    """

    def __init__(self, odds: Odds, seed: int, project: Path, *, tasks: int = 1) -> None:
        self.odds = odds
        self.project = project
        self._parts = [_PART.format(number) for number in range(1, tasks + 1)]
        self._left: dict[tuple[Path, tuple[str, ...]], list[str]] = {}
        """The parts of a plan that nobody has reported as done, by folder and all its parts."""
        self.cost = 0.0
        """The dollars of all sessions."""
        self.sessions = 0
        self._seed = seed
        self._random: dict[tuple[str, str], random.Random] = {}
        for name, text in _FILES.items():
            path = project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for part in self._parts:
            fault = self._fault("task", self._draw("implementer", project))
            _write(project / part, _Work(0, (fault,)))

    def _draw(self, kind: str, folder: Path) -> float:
        key = kind, "" if folder == self.project else folder.name
        if key not in self._random:
            self._random[key] = random.Random(f"{self._seed} {' '.join(key)}")
        return self._random[key].random()

    def _fault(self, name: str, chance: float) -> _Fault:
        return _Fault(name, chance < self.odds.covers)

    def _works(self, folder: Path) -> list[_Work]:
        return [_read(folder / part) for part in self._parts]

    @property
    def is_right(self) -> bool:
        """Return whether nothing is wrong with the work in the project."""
        return not any(work.faults for work in self._works(self.project))

    @property
    def version(self) -> str:
        """The digest of the work in the project."""
        return f"version {sum(work.version for work in self._works(self.project))}"

    def plan(self, folder: Path) -> str:
        """Return a plan with a task for each part of the work that is wrong; the first if none."""
        wrong = [part for part in self._parts if _read(folder / part).faults]
        tasks = (
            f"## Task {number}: {part}\n\nafter: none\nfiles: {part}\n"
            for number, part in enumerate(wrong or self._parts[:1], 1)
        )
        return "\n".join(["# Plan\n", *tasks])

    def parts_left(self, folder: Path, plan: str) -> list[str]:
        """Return the parts of a plan that are left to do, the next one first; never empty."""
        parts = tuple(file for task in plan_tasks(plan) for file in task.files)
        left = self._left.setdefault((folder, parts), [])
        if not left:
            left.extend(parts)
        return left

    def takes(self, folder: Path) -> float:
        """Return the seconds of a session: one to ten minutes."""
        return 60 + 540 * self._draw("time", folder)

    def pay(self, role: WorkRole, *, share: float = 1.0) -> float:
        """Return the cost of a session of the role, and add it up."""
        cost = self.odds.cost(role) * share
        self.cost += cost
        self.sessions += share == 1.0
        return cost

    def work(self, part: Path, folder: Path) -> None:
        """Change a part of the work in a folder, for better or worse."""
        version, faults = _read(part)
        right, breaks, covered = (self._draw("implementer", folder) for _ in range(3))
        if right < self.odds.right:
            faults = ()
        if breaks < self.odds.breaks:
            faults = (*faults, self._fault(f"regression_{version}", covered))
        _write(part, _Work(version + 1, faults))

    def report(self, part: Path, folder: Path) -> _Report:
        """Return what the implementer says of this part of the work."""
        admits, forgets = self._draw("implementer", folder), self._draw("implementer", folder)
        if forgets < self.odds.forgets:
            return ""
        return "more" if _read(part).faults and admits < self.odds.admits else "done"

    def review(self, folder: Path) -> str:
        """Return the verdict of a reviewer."""
        chance, works = self._draw("reviewer", folder), self._works(folder)
        is_wrong = any(work.faults for work in works)
        if chance < self.odds.approves_wrong if is_wrong else chance >= self.odds.rejects_right:
            return _marker("APPROVED", "It matches.")
        version = sum(work.version for work in works)
        return _marker("REQUEST_CHANGES", f"Version {version} does not match.")

    def failing(self, folder: Path) -> list[str]:
        """Return the tests that fail. A task has none before somebody works on it."""
        flakes = self._draw("check", folder) < self.odds.flakes
        begun = [work for work in self._works(folder) if work.version]
        found = [fault.name for work in begun for fault in work.faults if fault.is_covered]
        return [*found, "flaky"] if flakes else found

    def shell(self, _command: str, cwd: Path) -> Observable[bytes]:
        """Run the check; implements `Shell`."""

        def result(_: object) -> Observable[bytes]:
            failing = self.failing(cwd)
            if not failing:
                return just(b"3 passed in 0.1s\n")
            lines = [f"FAILED tests/test_work.py::test_{name}\n" for name in failing]
            output = from_iterable([line.encode() for line in lines])
            return concat(output, throw(ProcessFailed("check", 1, "")))

        return defer(result)


def _read(part: Path) -> _Work:
    version, faults = json.loads(part.read_text(encoding="utf-8"))
    return _Work(version, tuple(_Fault(*fault) for fault in faults))


def _write(part: Path, work: _Work) -> None:
    part.parent.mkdir(exist_ok=True)
    part.write_text(json.dumps(work), encoding="utf-8")


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

        def begin(_: object) -> Observable[Any]:
            takes = self._world.takes(options.cwd)
            session = defer(lambda _: from_iterable([*self._session(options)]))
            return concat(timer(takes).pipe(ops.ignore_elements()), session)

        return defer(begin)

    def _session(self, options: SpawnOptions) -> Iterator[Any]:
        world, role, folder = self._world, options.role, options.cwd
        is_reminded = options.resume_session_id is not None
        share = _REMINDED if is_reminded else 1.0
        match role:
            case "planning":
                paid = world.pay("planning", share=share)
                plan = Path(options.env["CUGGINO_PLAN_FILE"])
                plan.write_text(world.plan(folder), encoding="utf-8")
                text = _marker("PLAN_COMPLETE", "All that is wrong.")
            case "reviewing":
                paid = world.pay("reviewing", share=share)
                text = world.review(folder)
            case _:
                paid = world.pay("implementing", share=share)
                left = world.parts_left(folder, _plan_of(options, world))
                part = folder / left[0]
                if not is_reminded:
                    world.work(part, folder)
                report = world.report(part, folder)
                if role == "build":
                    _report_job(folder, report)
                if report == "done":
                    del left[0]
                text = _REPORTS["more" if report == "done" and left else report]
        yield AgentMessage(text=text)
        yield SessionEnded(
            outcome="completed", cost_usd=paid, session_id=options.session_id or "simulated"
        )


def _plan_of(options: SpawnOptions, world: World) -> str:
    """Return the plan that an implementer is given; a builder of the plan/build loop has none."""
    if options.role == "build":
        return world.plan(options.cwd)
    return Path(options.env["CUGGINO_SESSION_FILE"]).read_text(encoding="utf-8")


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
        found: State = {"head": None, "branch": None, "ignored": {}, "listed": []}
        return just({"tree": self._world.version, **found})

    def changed(self, start: State) -> Observable[State]:
        found: State = {"changed": [], "added": [], "ignored": [], "listed": []}
        return just({**found, "had_tests": True, "tree": self._world.version})

    def copy(
        self, start: State, paths: Sequence[str], *, env: Mapping[str, str]
    ) -> Observable[Shell | None]:
        return just(lambda command, _cwd: self._world.shell(command, self._world.project))
