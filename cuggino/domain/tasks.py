"""The tasks of a plan, and the order in which several hands may do them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from cuggino.domain.attempts import MOST_ATTEMPTS
from cuggino.domain.titles import CODE, task_sections

_FIELD = re.compile(
    r"^[ \t]*(?:[-*+][ \t]+)?[*_`]*(?P<name>after|files|attempts)[*_`]*:[*_`]*[ \t]*(?P<value>.*)$",
    re.MULTILINE | re.IGNORECASE,
)
_NUMBER = re.compile(r"\d{1,9}")
_LONGEST_VALUE = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTask:
    """A task of a plan, a section `Task N: title`."""

    number: int
    """Its place in the plan, from 1."""
    title: str
    text: str
    """The section, with its heading."""
    after: tuple[int, ...] | None = None
    """The tasks that have to land before it, as its line `after:` names them; None without one."""
    files: tuple[str, ...] = ()
    """The files or folders that it changes, as its line `files:` names them."""
    attempts: int | None = None
    """The attempts at it, as its line `attempts:` says; None without a number."""
    note: str = ""
    """How that line counts, if not as it is written."""


def plan_tasks(plan: str) -> tuple[PlanTask, ...]:
    """Return the tasks of a plan; a plan of check boxes only has none.

    ::

        ## Task 2: the parser

        after: 1
        files: parser.py, tests/test_parser.py
        attempts: 3
    """
    sections = task_sections(plan)
    places = {section.number: place for place, section in reversed([*enumerate(sections, 1)])}
    tasks = []
    for place, section in enumerate(sections, 1):
        fields: dict[str, str] = {}
        for match in _FIELD.finditer(CODE.sub("", section.text)):
            fields.setdefault(match["name"].lower(), match["value"])
        after = fields.get("after")
        named = None if after is None else tuple(map(int, _NUMBER.findall(after)))
        attempts, note = _attempts(fields["attempts"]) if "attempts" in fields else (None, "")
        tasks.append(
            PlanTask(
                number=place,
                title=section.title,
                text=section.text.strip(),
                after=named and tuple(places[it] for it in named if places.get(it, place) != place),
                files=_paths(fields.get("files", "")),
                attempts=attempts,
                note=note,
            )
        )
    return tuple(tasks)


def task_order(tasks: Sequence[PlanTask]) -> Mapping[int, tuple[int, ...]]:
    """Return the tasks that have to land before each task, by number.

    Those that its `after` names, and the tasks before it in the plan that name one of its files:
    two hands on one file would only conflict. A plan without any such line is a list, and so is one
    whose tasks come after themselves.
    """
    chain = {task.number: (task.number - 1,) if task.number > 1 else () for task in tasks}
    if all(task.after is None and not task.files for task in tasks):
        return chain
    order = {task.number: list(task.after or ()) for task in tasks}
    for place, task in enumerate(tasks):
        for earlier in tasks[:place]:
            if _overlap(task.files, earlier.files) and not _comes_after(
                earlier.number, task.number, order
            ):
                order[task.number].append(earlier.number)
    try:
        TopologicalSorter(order).prepare()
    except CycleError:
        return chain
    return {number: tuple(dict.fromkeys(before)) for number, before in order.items()}


def most_at_once(order: Mapping[int, Sequence[int]]) -> int:
    """Return how many tasks can be at work at the same time, if all take as long."""
    sorter = TopologicalSorter(order)
    sorter.prepare()
    most = 0
    while sorter.is_active():
        ready = sorter.get_ready()
        most = max(most, len(ready))
        sorter.done(*ready)
    return most


def _comes_after(task: int, other: int, order: Mapping[int, Sequence[int]]) -> bool:
    """Return whether the task comes after the other, directly or not."""
    upcoming, seen = [task], {task}
    while upcoming:
        for before in order[upcoming.pop()]:
            if before == other:
                return True
            if before not in seen:
                seen.add(before)
                upcoming.append(before)
    return False


def _attempts(value: str) -> tuple[int | None, str]:
    """Return the number in the line, within its bounds, and how it counts if not as written."""
    found = _NUMBER.search(value)
    line = f"`attempts: {value.strip()[:_LONGEST_VALUE]}`"
    if found is None:
        return None, f"{line} is ignored: it has no number"
    count = min(max(int(found[0]), 1), MOST_ATTEMPTS)
    if count == int(found[0]):
        return count, ""
    return count, f"{line} counts as {count}: a task has 1 to {MOST_ATTEMPTS} attempts"


def _paths(value: str) -> tuple[str, ...]:
    names = (name.strip(" \t`*\"'").removeprefix("./") for name in value.split(","))
    return tuple(name.rstrip("/") for name in names if name and name.lower() != "none")


def _overlap(some: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether both name the same file, or a folder and something in it."""
    return any(
        one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
        for one in some
        for other in others
    )
