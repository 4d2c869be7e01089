"""The strategies that are compared: cuggino's loops with some of their settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, assert_never

from reactivex import Observable

from cuggino.config import Config
from cuggino.events import Event, LoopApproved, PlanBuildEnded
from cuggino.loops import (
    AttemptsService,
    LoopRunOptions,
    PlanBuildOptions,
    PlanBuildService,
)
from cuggino.preflight import configured
from cuggino.stages import Services

CHECK = "check"
"""The command line of the check."""

_EVERY = Config(guard="off", sandbox="off", journal=False)
"""The defaults of `.cuggino.json`, without what protects and records the work of real agents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A loop with its settings."""

    name: str
    about: str
    """The command line or the settings that use it."""
    loop: Literal["run", "loop"]
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of the loop that differ from their defaults."""
    tasks: int = 1
    """The parts of the work, each of which is a task of the plan."""
    in_clones: bool = False
    """True if it works in clones, with a real git: a trial takes seconds."""

    def start(self, services: Services, project: Path) -> Observable[Event]:
        """Start the loop in the project."""
        given = {**self.options, "cwd": project}
        match self.loop:
            case "run":
                run = configured(LoopRunOptions, _EVERY, {"focus": "the task", **given})
                return AttemptsService(services).run(run)
            case "loop":
                build = {"start": "build", "verify_after_iteration": False, **given}
                return PlanBuildService(services).run(configured(PlanBuildOptions, _EVERY, build))
            case _:
                assert_never(self.loop)


def is_done(last: Event | None) -> bool:
    """Return whether a loop with this last event has declared the work done."""
    return isinstance(last, LoopApproved) or (
        isinstance(last, PlanBuildEnded) and last.reason == "complete"
    )


STRATEGIES = (
    Strategy(
        name="one session",
        about="`cuggino loop --max-iterations 1` without verification",
        loop="loop",
        options={"max_sessions": 1},
    ),
    Strategy(
        name="repeat until done",
        about="`cuggino loop` without verification",
        loop="loop",
        options={"max_sessions": 10},
    ),
    Strategy(
        name="check",
        about="`cuggino loop` with `verify.test` and no verifying agent",
        loop="loop",
        options={"max_sessions": 10, "verify_test": CHECK},
    ),
    Strategy(name="review", about="`cuggino run` without a check", loop="run"),
    Strategy(
        name="check and review",
        about='`cuggino run` with `"gate": "block"`',
        loop="run",
        options={"check_command": CHECK, "gate": "block"},
    ),
    Strategy(
        name="best of three",
        about='`cuggino run` with `"gate": "block"` and `"attempts": 3`, in clones',
        loop="run",
        options={"check_command": CHECK, "gate": "block", "commit": True, "attempts": 3},
        in_clones=True,
    ),
    Strategy(
        name="three tasks",
        about='`cuggino run` with `"gate": "block"`, three times as much work, a task a session',
        loop="run",
        options={"check_command": CHECK, "gate": "block"},
        tasks=3,
    ),
    Strategy(
        name="three hands",
        about="the same with `--hands 3`, in clones",
        loop="run",
        options={"check_command": CHECK, "gate": "block", "commit": True, "hands": 3},
        tasks=3,
        in_clones=True,
    ),
)
"""All strategies, the simplest first; those with several tasks last."""
