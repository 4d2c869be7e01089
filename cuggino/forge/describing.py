"""Pull request descriptions: the plan, the checks and the reviews of the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cuggino.domain import cleaned, defused
from cuggino.errors import StorageError
from cuggino.events import (
    Approved,
    CheckCommandOutput,
    CommitPerformed,
    PlanWritten,
    RequestChanges,
    ReviewingStart,
)
from cuggino.forge.redaction import Redaction, foreign, inline, outgoing, shortened
from cuggino.loops import latest_run_of
from cuggino.storage import Backlog, JournalFile, Workspace

_PLAN = 15_000
_REVIEW = 3_000
_REVIEWS = 5
_TITLE = 200
_TAGS = tuple(
    kind.__name__
    for kind in (
        *(PlanWritten, CheckCommandOutput, CommitPerformed),
        *(ReviewingStart, RequestChanges, Approved),
    )
)


class Description(NamedTuple):
    """The redacted title and text of a pull request."""

    title: str
    body: str


Describe = Callable[[str, str], Description]
"""Describes the work on an item, given its name and its title."""


def describing(
    workspace: Workspace,
    *,
    redact: Redaction,
    check_command: str,
    target: str,
    closes: Callable[[str], int | None] = lambda _item: None,
    origin: Callable[[str], str] = lambda _item: "",
) -> Describe:
    """Return a function that describes the work on an item from its latest run's journal.

    `closes` returns the number of the issue that the merge closes, and `origin` the page of the
    item's issue. Everything else is quoted so that a forge acts on none of it.
    """

    def describe(item: str, title: str) -> Description:
        first = f"Closes #{number}\n" if (number := closes(item)) is not None else ""
        if not first and (url := origin(item)):
            first = f"For {url}\n"
        parts = [
            first,
            f"The work of coding agents on {inline(item)}, by cuggino.",
            *_work_of(_run_of(workspace, item)),
            "### Checks",
            f"- `{inline(check_command).replace('`', '')}` passed on this branch, merged with "
            f"`{target}`.",
        ]
        heading = inline(redact(title), limit=_TITLE) or inline(item)
        return Description(heading, outgoing("\n\n".join(filter(None, parts)), redact))

    return describe


def _run_of(workspace: Workspace, item: str) -> JournalFile | None:
    try:
        digest = Backlog(workspace).digest(item)
        return (
            None if digest is None else latest_run_of(workspace, f"{item} {digest}", in_slot=True)
        )
    except (OSError, StorageError):
        return None


def _work_of(run: JournalFile | None) -> list[str]:
    """Return the plan and the reviews of a run."""
    plan, commits, iteration = "", 0, 0
    reviews: dict[int, str] = {}
    for entry in run.entries.only(_TAGS) if run is not None else ():
        match entry.event:
            case PlanWritten(text=text):
                plan = text
            case CommitPerformed():
                commits += 1
            case ReviewingStart(iteration=number):
                iteration = number
            case RequestChanges(content=content):
                reviews[iteration] = _review(iteration, "asked for changes", content)
            case Approved(content=content):
                reviews[iteration] = _review(iteration, "approved", content)
            case _:
                pass
    parts = []
    if plan.strip():
        text = defused(shortened(cleaned(plan).strip(), _PLAN))
        parts.append(f"### Plan\n\n<details><summary>The plan</summary>\n\n{text}\n\n</details>")
    if reviews:
        parts += ["### Reviews", *list(reviews.values())[-_REVIEWS:]]
    return parts


def _review(iteration: int, verdict: str, content: str) -> str:
    quoted = foreign(content, limit=_REVIEW)
    head = f"- Iteration {iteration}: the reviewing agent {verdict}."
    return f"{head}\n\n{quoted}" if quoted else head
