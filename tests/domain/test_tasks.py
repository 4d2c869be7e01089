"""The tasks of a plan, and their order for several hands."""

from __future__ import annotations

from cuggino.domain import most_at_once, plan_tasks, task_order
from tests.vectors import each

PLAN = """\
# Plan

## Task 1: the parser

after: none
files: `parser.py`, ./tests/test_parser.py

- [ ] read a line

```
after: 7
```

## Task 2: the printer
- files: printer.py
- **after:** Task 1

## Task 4: the command
After: 1, task 2, 4 and 9
"""


def test_a_plan_says_what_each_task_comes_after_and_changes() -> None:
    """Numbers are those of the headings; code, unknown numbers and the task itself are ignored."""
    parser, printer, command = plan_tasks(PLAN)
    assert [(1, "the parser"), (2, "the printer"), (3, "the command")] == [
        (task.number, task.title) for task in (parser, printer, command)
    ]
    assert ((), ("parser.py", "tests/test_parser.py")) == (parser.after, parser.files)
    assert ((1,), ("printer.py",)) == (printer.after, printer.files)
    assert ((1, 2), ()) == (command.after, command.files)
    assert parser.text.startswith("## Task 1: the parser\n")
    assert parser.text.endswith("after: 7\n```")


@each(
    "line, attempts, note",
    [
        ("", None, ""),
        ("attempts: 3", 3, ""),
        ("- **attempts:** 2 (nobody knows how)", 2, ""),
        ("attempts: 20", 8, "`attempts: 20` counts as 8: a task has 1 to 8 attempts"),
        ("attempts: 0", 1, "`attempts: 0` counts as 1: a task has 1 to 8 attempts"),
        ("attempts: many", None, "`attempts: many` is ignored: it has no number"),
    ],
)
def test_the_attempts_at_a_task(line: str, attempts: int | None, note: str) -> None:
    """A wrong number is brought within its bounds, and the note says so."""
    (task,) = plan_tasks(plan(line))
    assert (attempts, note) == (task.attempts, task.note)


def test_a_plan_of_boxes_has_no_tasks_for_hands() -> None:
    """Check boxes alone are a list for one agent after another."""
    assert () == plan_tasks("# Plan\n\n- [ ] one\n- [ ] two\n")


def plan(*fields: str) -> str:
    """Return a plan with a task for each of the fields below its heading."""
    return "\n".join(f"## Task {n}: t\n{field}\n" for n, field in enumerate(fields, 1))


@each(
    "fields, order, most",
    [
        (("", "", ""), {1: (), 2: (1,), 3: (2,)}, 1),
        (("after: none", "", ""), {1: (), 2: (), 3: ()}, 3),
        (("files: a", "files: b", "files: c"), {1: (), 2: (), 3: ()}, 3),
        (("files: a", "files: b", "files: a, b"), {1: (), 2: (), 3: (1, 2)}, 2),
        (("files: src", "files: src/a.py", "files: srcs"), {1: (), 2: (1,), 3: ()}, 2),
        (("after: 2\nfiles: a", "files: a"), {1: (2,), 2: ()}, 1),
        (("", "after: 1", "after: 1", "after: 2, 3"), {1: (), 2: (1,), 3: (1,), 4: (2, 3)}, 2),
        (("after: 2", "after: 1", ""), {1: (), 2: (1,), 3: (2,)}, 1),
        ((), {}, 0),
    ],
)
def test_the_order_of_tasks(
    fields: tuple[str, ...], order: dict[int, tuple[int, ...]], most: int
) -> None:
    """Tasks that name the same file follow each other; a plan that says nothing is a list."""
    found = task_order(plan_tasks(plan(*fields)))
    assert order == found
    assert most == most_at_once(found)
