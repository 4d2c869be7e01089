"""A project for each command that is killed and resumed, played by the scripted agent."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuggino.events import Approved, Done, PlanComplete, Progress, RunContinued
from cuggino.storage import has_ended, list_journals
from tests.endurance.agent import KINDS, PAUSE, SHARED, ItemAgent, TaskAgent, item_text
from tests.endurance.place import Place

AGENT = f"{ItemAgent.__module__}:{ItemAgent.__qualname__}"
_COUNT = 6
NAMES = tuple(f"word-{number}" for number in range(1, _COUNT + 1))
_IGNORED = ".cuggino/\nscenario.toml\n"
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
"""What a file in the folder of findings is named after: its run."""


@dataclass(frozen=True)
class Trial:
    """A command of cuggino in a project with several items."""

    name: str
    make: Callable[[Path], Place]
    words: tuple[str, ...]
    resume: tuple[str, ...]
    """The words of the command once it has a journal."""
    is_endless: bool = False
    """The command waits for more work when all is done."""
    result: Callable[[Place], object] = lambda place: None
    """What else is equal at the end, however often the command was killed."""
    history: Callable[[Place], object] = lambda place: _history(place)
    """What the commits of the project have in common."""

    def next_words(self, place: Place) -> tuple[str, ...]:
        """Return the command with which a person would continue."""
        return self.resume if list_journals(place.workspace.journal) else self.words

    def is_over(self, place: Place) -> bool:
        """Return whether its run has ended, even if its process was killed right after that."""
        journals = list_journals(place.workspace.journal)
        return not self.is_endless and bool(journals) and has_ended(journals[0])

    def outcome(self, place: Place) -> Mapping[str, object]:
        """Return everything that an undisturbed command and a killed one have in common."""
        return {
            "history": self.history(place),
            "files": place.git("ls-tree", "-r", "HEAD"),
            "left": sorted(
                _ID.sub("ID", path.name)
                for folder in (
                    place.workspace.backlog,
                    place.workspace.parked,
                    place.workspace.spec_issues,
                    place.workspace.tbd,
                )
                for path in folder.glob("*")
            ),
            "result": self.result(place),
        }


def _history(place: Place) -> str:
    return place.git("log", "--reverse", "--name-status", "--format=%an %s")


def _commits(place: Place) -> list[str]:
    """Return the commits with their files, in no order."""
    return sorted(place.git("log", "--name-status", "--format=%x00%an %s").split("\0"))


def _landings(place: Place) -> object:
    """Return the items that have landed, sorted, and the landings on which the check fails."""
    landed = place.git(
        "log", "--first-parent", "--format=%H %(trailers:key=Item,valueonly,separator=)"
    )
    commits = dict(line.split(" ", 1) for line in landed.splitlines())
    red = [item for commit, item in commits.items() if place.git("show", f"{commit}:broken")]
    waiting = place.git("for-each-ref", "refs/cuggino/candidates")
    return sorted(commits.values()), red, waiting


def _quoted(value: object) -> str:
    return json.dumps(value)


def _steps(role: str, *steps: str) -> str:
    return f"[[{role}]]\ncost_usd = 0.01\n" + "".join(f"[[{role}.steps]]\n{s}\n" for s in steps)


def _write(path: str, text: str) -> str:
    return f"write = {_quoted(path)}\ntext = {_quoted(text)}"


def _say(text: str) -> str:
    return f"say = {_quoted(text)}"


def _place(root: Path, scenario: str, files: Mapping[str, str], **settings: Any) -> Place:
    config = {"agent": "scripted:scenario.toml", **settings}
    return Place(
        root,
        {
            ".cuggino.json": json.dumps(config),
            ".gitignore": _IGNORED,
            "scenario.toml": f"pause = {PAUSE}\nrepeat = true\n{scenario}",
            **files,
        },
    )


def run_place(root: Path, **settings: Any) -> Place:
    """Return a place for `cuggino run`: six tasks in two iterations."""
    first, second = NAMES[: _COUNT - 2], NAMES[_COUNT - 2 :]
    parts = []
    for names in (first, second):
        plan = "# Plan\n\n" + "".join(f"- [ ] {name}\n" for name in names)
        parts.append(
            _steps(
                "planning",
                _write("$CUGGINO_PLAN_FILE", plan),
                _say(f"<PLAN_COMPLETE>{len(names)} tasks</PLAN_COMPLETE>"),
            )
        )
    for name in NAMES:
        tag = "DONE" if name in (first[-1], second[-1]) else "PROGRESS"
        parts.append(
            _steps(
                "implementing",
                _write(f"words/{name}.txt", f"{name}\n"),
                _say(f"<{tag}>feat: {name}</{tag}>"),
            )
        )
    parts.append(_steps("reviewing", _say("<REQUEST_CHANGES>two are missing</REQUEST_CHANGES>")))
    parts.append(_steps("reviewing", _say("<APPROVED>fine</APPROVED>")))
    settings = {"commit": True, "checkCommand": "true", **settings}
    return _place(root, "".join(parts), {".specs/words.md": "Six words.\n"}, **settings)


def watch_place(root: Path, kinds: Mapping[str, str], **settings: Any) -> Place:
    """Return a place with these backlog items, by name, each of its kind."""
    place = _place(
        root,
        "",
        {".specs/words.md": "A word per file.\n", "broken": "", "lines": "begin\n"},
        **{
            "agent": AGENT,
            "commit": True,
            "gate": "block",
            "checkCommand": "test ! -s broken",
            "settleSeconds": 0.1,
            "notify": "none",
            **settings,
        },
    )
    place.workspace.open()
    for name, kind in kinds.items():
        (place.workspace.backlog / f"{name}.md").write_text(item_text(name, kind))
    return place


def _watch(root: Path) -> Place:
    """Return a place for a watch, two of whose items are parked in the end."""
    kinds = {name: KINDS[at % len(KINDS)] for at, name in enumerate(NAMES)}
    return watch_place(root, kinds, maxRetries=0, maxAttempts=2, retrySeconds=1, reviewPatience=2)


def _slots(root: Path) -> Place:
    kinds = ("good", SHARED, "check", SHARED, "rounds", SHARED)
    return watch_place(root, dict(zip(NAMES, kinds, strict=True)), slots=3, sandbox="off")


def _hands(root: Path) -> Place:
    """Return a place for a run with hands: eight tasks, of which one has two attempts."""
    return _place(
        root,
        "",
        {".specs/words.md": "A word per file.\n", "broken": ""},
        agent=f"{TaskAgent.__module__}:{TaskAgent.__qualname__}",
        commit=True,
        gate="block",
        checkCommand="test ! -s broken",
        maxIterations=1,
        sandbox="off",
        notify="none",
    )


def _paid_twice(place: Place) -> list[str]:
    """Return the tasks, attempts and reviews whose agents have had their result more than once.

    A result that is the last entry of a killed process may be had again: its stage was not over.
    """
    (journal,) = place.journals
    had: Counter[tuple[str | None, str]] = Counter()
    last: tuple[str | None, str] | None = None
    for entry in journal.entries:
        event = entry.event
        if isinstance(event, RunContinued) and last is not None:
            had[last] -= 1
        last = None
        if isinstance(event, PlanComplete | Progress | Done | Approved):
            last = (event.item, event.tag)
            had[last] += 1
    return [f"{item} {tag}: {times}" for (item, tag), times in had.items() if times > 1]


def _archived(place: Place) -> list[str]:
    """Return the names of approved items in the archive, without their ids."""
    names = (path.name[37:] for path in place.workspace.archive.iterdir())
    return sorted(name for name in names if name.startswith("approved-"))


def _deliver(root: Path) -> Place:
    items = ", ".join(
        f"{{ id = {_quoted(name)}, description = {_quoted(name)}, acceptanceCriteria = ['it is'] }}"
        for name in NAMES
    )
    parts = [
        _steps(
            "initializer",
            f'tool = "create_deliverable"\ninput.deliverables = [{items}]',
            _say("All are listed."),
        )
    ]
    for name in NAMES:
        path = f"words/{name}.txt"
        # A session that starts over must not commit twice: that is up to its agent.
        commit = f"git add {path} && git commit -q -m 'feat: {name}'"
        parts.append(
            _steps(
                "coding",
                _write(path, f"{name}\n"),
                f"run = {_quoted(f'git diff --quiet HEAD -- words && {commit} || git status')}",
                'tool = "set_deliverable_status"\n'
                f'input = {{ deliverableId = "{name}", status = "passed" }}',
                _say(f"{name} is there."),
            )
        )
    files = {"SPEC.md": "Six words.\n", ".autonoe/agent.json": '{"mcpServers": {}}'}
    return _place(
        root, "".join(parts), {**files, ".gitignore": f"{_IGNORED}.autonoe/status.json\n"}
    )


def _statuses(place: Place) -> list[object]:
    kept = json.loads((place.folder / ".autonoe" / "status.json").read_text())
    return [(item["id"], item["passed"], item["blocked"]) for item in kept["deliverables"]]


def _loop(root: Path) -> Place:
    jobs_file = "docs/requirements/jobs-to-be-done.json"

    def jobs(done: int) -> str:
        listed = [
            {
                "id": name,
                "requirementCode": "R-1",
                "description": name,
                "status": "done" if at < done else "open",
            }
            for at, name in enumerate(NAMES)
        ]
        return json.dumps({"jobs": listed})

    parts = [_steps("plan", _write(jobs_file, jobs(0)), _say("All is planned."))]
    for done, name in enumerate(NAMES, start=1):
        last = [_write("lopen.loop.done", "done")] if done == _COUNT else []
        parts.append(
            _steps(
                "build",
                _write(f"words/{name}.txt", f"{name}\n"),
                _write(jobs_file, jobs(done)),
                *last,
                _say(f"{name} is built."),
            )
        )
    holds = ("complete", "testsPass", "documentationExists", "buildSucceeds", "requirementValid")
    parts.append(_steps("judge", _say(json.dumps(dict.fromkeys(holds, True)))))
    return _place(
        root,
        "".join(parts),
        {
            "docs/requirements/m/SPECIFICATION.md": "R-1: six words\n",
            "PLAN.PROMPT.md": "Plan.\n",
            "BUILD.PROMPT.md": "Build.\n",
            ".lopen/loop-config.json": '{"autoCommit": true}',
        },
    )


TRIALS: Mapping[str, Trial] = {
    trial.name: trial
    for trial in (
        Trial("run", run_place, ("run", "--focus", "all words"), ("run", "--resume")),
        Trial("watch", _watch, ("watch",), ("watch",), is_endless=True, result=_archived),
        Trial(
            "slots",
            _slots,
            ("watch",),
            ("watch",),
            is_endless=True,
            result=_archived,
            history=_landings,
        ),
        Trial(
            "hands",
            _hands,
            ("run", "--focus", "all words", "--hands", "3"),
            ("run", "--resume"),
            result=_paid_twice,
            history=_commits,
        ),
        Trial("deliver", _deliver, ("deliver",), ("deliver", "--resume"), result=_statuses),
        Trial("loop", _loop, ("loop", "--auto"), ("loop", "--resume")),
    )
}
"""The trials by the names of their commands."""
