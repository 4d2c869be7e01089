"""Agents and a repository whose whole state is on the disk, so that any process can go on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from reactivex import Observable, concat, defer, from_iterable, just, operators as ops, timer

from cuggino.agents.protocol import InteractiveOptions, SpawnOptions
from cuggino.events import Event, SessionEnded
from cuggino.stages import Commit
from tests.loops.drawn import says

COST = 0.25
"""US dollars of each session."""

T = TypeVar("T")


@dataclass(frozen=True)
class Turn:
    """One session of an agent: what it says after a second, and the files that it writes first."""

    said: Sequence[Event]
    files: dict[str, str] = field(default_factory=dict)
    """By name in the project; `$CUGGINO_...` is the path in that variable."""


Turns = dict[str, list[Turn]]


def plan(*tasks: str) -> Turn:
    text = "# Plan\n\n" + "".join(f"- [ ] {task}\n" for task in tasks)
    return Turn([says("PLAN_COMPLETE", "planned")], {"$CUGGINO_PLAN_FILE": text})


def work(tag: str, name: str) -> Turn:
    said = [says("NOTE", f"about {name}"), says(tag, f"Add {name}")]
    return Turn(said, {f"{name}.txt": f"{name}\n"})


def review(text: str) -> Turn:
    return Turn([says("REQUEST_CHANGES", "redo")], {"$CUGGINO_REVIEW_FILE": text})


APPROVED = Turn([says("APPROVED", "fine")])
ISSUE = Turn([says("NOTE", "hm"), says("SPEC_ISSUE", "which one?")])

TWO_ROUNDS: Turns = {
    "planning": [plan("one", "two"), plan("three")],
    "implementing": [work("PROGRESS", "one"), work("DONE", "two"), work("DONE", "three")],
    "reviewing": [review("# Review\n\nThree is missing.\n"), APPROVED],
}
SPEC_ISSUE: Turns = {
    "planning": [plan("one", "two")],
    "implementing": [work("PROGRESS", "one"), ISSUE],
}
SAME_FINDINGS: Turns = {
    "planning": [plan("one"), plan("two")],
    "implementing": [work("DONE", "one"), work("DONE", "two")],
    "reviewing": [review("- `one.txt`: it is wrong\n"), review("- `one.txt`: it is wrong\n")],
}
STORIES = {"two-rounds": TWO_ROUNDS, "spec-issue": SPEC_ISSUE, "same-findings": SAME_FINDINGS}
ENDINGS = {"two-rounds": "approved", "spec-issue": "spec_issue", "same-findings": "stalled"}


class Subscriptions:
    """Counts the subscriptions that are not released yet."""

    def __init__(self) -> None:
        self.open = 0

    def of(self, stream: Observable[T]) -> Observable[T]:
        """The same stream, counted."""

        def start(_scheduler: object) -> Observable[T]:
            self.open += 1
            return stream.pipe(ops.finally_action(self._ended))

        return defer(start)

    def _ended(self) -> None:
        self.open -= 1


class TurnAgent:
    """Plays the session of its turn, as an agent that any process can start does."""

    name = "turns"
    can_resume = False

    def __init__(self, turns: Turns, subscriptions: Subscriptions) -> None:
        self._turns = turns
        self._subscriptions = subscriptions
        self.spawned: list[tuple[str, int]] = []
        """Role and turn of each session that was begun."""
        self.told: list[SpawnOptions] = []

    def check(self) -> str:
        return "1"

    def interactive(self, options: InteractiveOptions) -> int:
        return 0

    def turns_of(self, options: SpawnOptions) -> Turns:
        """Those of the run that the session is for."""
        return self._turns

    def spawn(self, options: SpawnOptions) -> Observable[Any]:
        def start(_scheduler: object) -> Observable[Any]:
            assert options.role is not None
            assert options.turn is not None
            self.spawned.append((options.role, options.turn))
            self.told.append(options)
            turn = self.turns_of(options)[options.role][options.turn - 1]
            for name, text in turn.files.items():
                path = Path(options.env[name[1:]] if name[0] == "$" else options.cwd / name)
                path.write_text(text)
            ended = SessionEnded(outcome="completed", cost_usd=COST, duration=1.0)
            pause: Observable[Any] = timer(1).pipe(ops.ignore_elements())
            return concat(pause, from_iterable([*turn.said, ended]))

        return self._subscriptions.of(defer(start))


class FolderRepository:
    """Commits the text files of the folder into a file beside them, which takes a second."""

    def __init__(
        self, folder: Path, moment: Callable[[], object], subscriptions: Subscriptions
    ) -> None:
        self._folder = folder
        self._store = folder / "repository.json"
        self._moment = moment
        self._subscriptions = subscriptions

    @property
    def commits(self) -> list[str]:
        """The messages of the commits."""
        return [commit["message"] for commit in self._read()]

    @property
    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted(self._folder.glob("*.txt"))}

    def head(self) -> Observable[str | None]:
        return self._subscriptions.of(defer(lambda _: just(hash_of(self._read()))))

    def commit(self, message: str) -> Observable[Commit]:
        def do(_scheduler: object) -> Observable[Commit]:
            commits = self._read()
            if commits and commits[-1]["files"] == self.files:
                return from_iterable([])
            commits.append({"message": message, "files": self.files})
            self._store.write_text(json.dumps(commits))
            self._moment()  # committed, and nobody knows it yet
            return just(Commit(hash=hash_of(commits)[:7], message=message))

        return self._subscriptions.of(timer(1).pipe(ops.flat_map(defer(do))))

    def push(self, remote: str, branch: str) -> Observable[Any]:
        raise AssertionError("nothing is pushed")

    def _read(self) -> list[dict[str, Any]]:
        return json.loads(self._store.read_text()) if self._store.exists() else []


def hash_of(value: object) -> str:
    """The same for the same value in every process."""
    return hashlib.sha1(json.dumps(value).encode()).hexdigest()
