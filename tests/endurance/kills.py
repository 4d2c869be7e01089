"""`kill -9` of a command at random moments, resumed until it ends."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path

from tests.endurance.place import Command, Place, until
from tests.endurance.trials import Trial
from tests.limits import LIMIT

MOMENTS = ("start", "stage", "commit")
STARTING = 0.8
"""Seconds: about what a command takes to begin with its work."""
_EVENTS = 60
"""A command is killed at most so many events after its start."""


@dataclass
class Series:
    """The kills of one command in one project, and what was wrong at its end."""

    trial: str
    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def kill_in_series(
    trial: Trial, root: Path, *, seed: int, most: int, expected: Mapping[str, object]
) -> Series:
    """Kill and resume the command until it ends, at most so often, and compare the outcome."""
    chance, series = random.Random(f"{trial.name} {seed}"), Series(trial.name, seed)
    place = trial.make(root)
    moments, ended = chance.sample(MOMENTS, len(MOMENTS)), False
    while not ended and series.kills.total() < most:
        moment = moments[series.kills.total() % len(moments)]
        with place.start(*trial.next_words(place)) as command:
            if _wait_for(moment, command, place, chance):
                command.kill()
                series.kills[moment] += 1
            else:
                ended = True
                series.problems += _ended(trial, command)
        ended = ended or trial.is_over(place)
        place.age_temporary_files()
        if chance.random() < 0.5:  # else the next command meets what the killed one has left
            until(lambda: not place.processes)
    if not ended:
        series.problems += finish(trial, place)
    series.problems += place.problems()
    outcome = trial.outcome(place)
    for name, wanted in expected.items():
        if outcome[name] != wanted:
            series.problems.append(f"{name} differs:\n{_difference(wanted, outcome[name])}")
    return series


def finish(trial: Trial, place: Place) -> list[str]:
    """Run the command until its work is done; return what went wrong."""
    with place.start(*trial.next_words(place)) as command:
        return _ended(trial, command)


def _ended(trial: Trial, command: Command) -> list[str]:
    """Wait until the command has ended, or is idle; return what went wrong."""
    if not until(lambda: not command.is_running or command.is_idle, seconds=LIMIT):
        return [f"the command did not end: {command.tags()[-20:]}"]
    code, expected = (command.interrupt(), 130) if command.is_running else (command.wait(), 0)
    broke = "Traceback" in command.errors
    if code != expected or broke or trial.is_endless != (expected == 130):
        return [f"the command ended with {code}: {command.errors} {command.tags()[-5:]}"]
    return []


def _difference(wanted: object, found: object) -> str:
    return "\n".join(unified_diff(f"{wanted}".splitlines(), f"{found}".splitlines(), lineterm=""))


def _wait_for(moment: str, command: Command, place: Place, chance: random.Random) -> bool:
    """Wait for the moment of the kill; return False if the command ends before."""
    match moment:
        case "start":
            time.sleep(chance.uniform(0, STARTING))  # the moment is the case
        case "stage":
            events = chance.randint(1, _EVENTS)
            command.until(lambda: command.lines >= events or command.is_idle)
            time.sleep(chance.uniform(0, 0.05))
        case _:
            before, more = place.commits, chance.randint(1, 3)
            command.until(lambda: place.commits >= before + 2 * more or command.is_idle)
            time.sleep(chance.uniform(0, 0.1))
    return command.is_running and not command.is_idle
