"""Titles of runs, backlog items and tasks, by their texts."""

from __future__ import annotations

import re

from cuggino.domain.front_matter import split_front_matter

_FILE = re.compile(r"The file `[^`\n]*`, (?:with this content|which says):\s*\n")
_HEADING = re.compile(r"(?m)^ {0,3}#{1,6}[ \t]+(\S.*?)[ \t]*#*[ \t]*$")
_TASK = re.compile(
    r"^(?P<marks>#{2,4})[ \t]+(?:Task|Step)[ \t]+\d+[ \t]*[.:)]?[ \t]*(?P<title>.*)$",
    re.MULTILINE | re.IGNORECASE,
)
_BOX = re.compile(r"^(?:[-*+]|\d+[.)])[ \t]+\[[ xX]\][ \t]+(?P<title>.*)$", re.MULTILINE)
_UNTICKED = re.compile(r"^(?:[-*+]|\d+[.)])[ \t]+\[ \]", re.MULTILINE)
_CODE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
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
    title = " ".join(found.split())
    return title if len(title) <= _LONGEST else f"{title[: _LONGEST - 1]}…"


def without_file(focus: str) -> str:
    """Return the text of a focus without the sentence that names its file."""
    found = _FILE.match(focus)
    return focus[found.end() :].strip() if found else focus


def task_titles(plan: str) -> tuple[str, ...]:
    """Return the titles of a plan's tasks: its headings `Task N: title`, or its check boxes.

    Headings below those of the first task are no tasks.
    """
    found = list(_TASK.finditer(plan))
    found = [match for match in found if match["marks"] == found[0]["marks"]]
    found = found or list(_BOX.finditer(plan))
    return tuple(match["title"].strip().rstrip("#").strip() for match in found[:_MOST_TASKS])


def unticked_tasks(plan: str) -> int:
    """Return how many tasks of a plan have an unticked box.

    A task is a section `Task N: title`, with all of its boxes; elsewhere each box is one. Boxes in
    code and below another box are no tasks.
    """
    text = _CODE.sub("", plan)
    heads = list(_TASK.finditer(text))
    heads = [head for head in heads if head["marks"] == heads[0]["marks"]]
    if not heads:
        return len(_UNTICKED.findall(text))
    starts = [head.start() for head in heads]
    sections = (text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True))
    before = len(_UNTICKED.findall(text[: starts[0]]))
    return before + sum(_UNTICKED.search(section) is not None for section in sections)
