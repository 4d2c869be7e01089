"""Titles of runs, backlog items and tasks."""

from __future__ import annotations

from cuggino.domain import task_titles, title_of, unticked_tasks, without_file
from tests.report.nights import PLAN
from tests.vectors import each


@each(
    "plan, titles",
    [
        (PLAN, ("Sign-in form with validation", "Session cookie")),
        ("# Plan\n\n### task 3. a\n### Task 4: b ##\n", ("a", "b")),
        ("## Task 1: the two\n\n- [ ] x\n## Task 2 : b: c\n## Tasks\n", ("the two", "b: c")),
        ("## Task 1: a\n\n### Step 1: of a\n\n## Task 2: b\n", ("a", "b")),
        ("- [x] one\n* [ ] two\n1. [ ] three\n  - [ ] below\n", ("one", "two", "three")),
        ("## Task 1\n", ("",)),
        ("Just do it.", ()),
        ("", ()),
    ],
)
def test_tasks(plan: str, titles: tuple[str, ...]) -> None:
    """Tasks are the headings of a plan on one level, or its check boxes."""
    assert titles == task_titles(plan)


@each(
    "text, title",
    [
        ("Add a login page.\n\nSoon.", "Add a login page."),
        ("Why not.\n\n## Log in  ##\n", "Log in"),
        ("---\nafter: a.md\n---\n\n# Log in\n", "Log in"),
        ("The file `a.md`, with this content:\n\nBlue,\nnot green.", "Blue,"),
        ("The file `a.md`, which says:\n---\nneeds: gpu\n---\nBlue.", "Blue."),
        ("  \n", ""),
        ("x" * 200, "x" * 119 + "…"),
    ],
)
def test_titles(text: str, title: str) -> None:
    """The title of a text is its first heading or line, without front matter and file name."""
    assert title == title_of(text)


def test_text_of_a_focus() -> None:
    """The sentence that names the file of a focus is removed, and nothing else."""
    assert "# A" == without_file("The file `a.md`, with this content:\n\n# A")
    assert " The file `a.md` is wrong." == without_file(" The file `a.md` is wrong.")


@each(
    "plan,count",
    [
        ("", 0),
        ("# Plan\n\n- [ ] a\n- [x] b\n* [ ] c\n1. [ ] d\n", 3),
        ("## Task 1: a\n- [ ] one\n- [ ] two\n## Task 2: b\n- [x] one\n- [ ] two\n", 2),
        ("## Task 1: a\n- [x] one\n## Task 2: b\nno box\n", 0),
        ("- [ ] first\n\n## Task 1: a\n- [ ] one\n### Task 1: sub\n- [ ] two\n", 2),
        ("## Tasks\n- [ ] a\n  - [ ] a.1\n- [ ] b\n", 2),
        ("```\n- [ ] a\n```\n- [ ] b\n~~~\n- [ ] c\n", 1),
    ],
)
def test_unticked_tasks(plan: str, count: int) -> None:
    """A section of a task counts once, whatever its boxes; elsewhere each box counts."""
    assert count == unticked_tasks(plan)
