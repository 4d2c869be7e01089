"""Titles of runs, backlog items and tasks, by their texts."""

from __future__ import annotations

import re
from typing import NamedTuple

from cuggino.domain.front_matter import split_front_matter
from cuggino.domain.texts import cut_at_end

_FILE = re.compile(r"The file `[^`\n]*`, (?:with this content|which says):\s*\n")
_HEADING = re.compile(r"(?m)^ {0,3}#{1,6}[ \t]+(\S.*?)[ \t]*#*[ \t]*$")
_TASK = re.compile(
    r"^(?P<marks>#{2,4})[ \t]+(?:Task|Step)[ \t]+(?P<number>\d+)[ \t]*[.:)]?[ \t]*(?P<title>.*)$",
    re.MULTILINE | re.IGNORECASE,
)
_BOX = re.compile(r"^(?:[-*+]|\d+[.)])[ \t]+\[[ xX]\][ \t]+(?P<title>.*)$", re.MULTILINE)
_UNTICKED = re.compile(r"^(?:[-*+]|\d+[.)])[ \t]+\[ \]", re.MULTILINE)
CODE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_LONGEST = 120
_MOST_TASKS = 200


def item_name(item: str | None) -> str:
    """Return the file name of a run's backlog item, given its name and digest, or ""."""
    return (item or "").rpartition(" ")[0]


def title_of(text: str) -> str:
    """Return the first heading of a Markdown text, or its first line with any text; "" if blank.

    It has no line break and at most 120 characters. Of a focus that is a file, it is that of the
    file.
    """
    _, body = split_front_matter(without_file(text))
    heading = _HEADING.search(body)
    found = heading[1] if heading else next((x for x in body.splitlines() if x.strip()), "")
    return cut_at_end(" ".join(found.split()), _LONGEST)


def without_file(focus: str) -> str:
    """Return the text of a focus without the sentence that names its file."""
    found = _FILE.match(focus)
    return focus[found.end() :].strip() if found else focus


class TaskSection(NamedTuple):
    """The section `Task N: title` of a plan."""

    number: int
    """As its heading says."""
    title: str
    text: str
    """With its heading."""


def task_sections(plan: str) -> tuple[TaskSection, ...]:
    """Return the sections `Task N: title` of a plan; headings below the first one are no tasks."""
    heads = list(_TASK.finditer(plan))
    heads = [head for head in heads if head["marks"] == heads[0]["marks"]][:_MOST_TASKS]
    ends = [*(head.start() for head in heads[1:]), len(plan)]
    return tuple(
        TaskSection(int(head["number"]), _bare(head["title"]), plan[head.start() : end])
        for head, end in zip(heads, ends, strict=False)
    )


def task_titles(plan: str) -> tuple[str, ...]:
    """Return the titles of a plan's tasks: its headings `Task N: title`, or its check boxes.

    Headings below those of the first task are no tasks.
    """
    found = [section.title for section in task_sections(plan)]
    return tuple(found or [_bare(box["title"]) for box in _BOX.finditer(plan)][:_MOST_TASKS])


def _bare(title: str) -> str:
    return title.strip().rstrip("#").strip()


def unticked_tasks(plan: str) -> int:
    """Return how many tasks of a plan have an unticked box.

    A task is a section `Task N: title`, with all of its boxes; elsewhere each box is one. Boxes in
    code and below another box are no tasks.
    """
    text = CODE.sub("", plan)
    sections = task_sections(text)
    if not sections:
        return len(_UNTICKED.findall(text))
    before = text[: len(text) - sum(len(section.text) for section in sections)]
    return len(_UNTICKED.findall(before)) + sum(
        _UNTICKED.search(section.text) is not None for section in sections
    )
