"""The issues of a repository as a source."""

from __future__ import annotations

from typing import Any

from reactivex import Observable, operators as ops

from cuggino.config import BacklogSource
from cuggino.forge.model import Forge, Issue
from cuggino.forge.patience import Patient
from cuggino.forge.source import Source, SourceItem
from cuggino.operators import Flow, emit, flow


def issue_source(forge: Forge, settings: BacklogSource) -> Source:
    """Return a source of the open issues that match the label or query of the settings.

    A poll waits for limits, outages and a missing login, and emits `WatchForgeWaiting` then.
    """

    def look() -> Observable[Any]:
        def listed() -> Observable[list[Issue]]:
            return forge.issues(label=settings.label, query=settings.query).pipe(ops.to_list())

        def story() -> Flow[None]:
            for issue in (yield from Patient(forge).get("list the issues", listed)):
                yield from emit(_item_of(issue))

        return flow(story)

    return Source(
        name=settings.title,
        items=look,
        every=settings.every,
        network=settings.network,
        has_issues=True,
    )


def _item_of(issue: Issue) -> SourceItem:
    return SourceItem(
        id=str(issue.number),
        title=issue.title.strip() or f"Issue {issue.number}",
        body=issue.body,
        url=issue.url,
        held=_why_held(issue),
        closed=not issue.is_open,
    )


def _why_held(issue: Issue) -> str:
    if not issue.is_trusted:
        return f"was written by {issue.author}, whose text does not count"
    if not issue.edit_is_trusted:
        return f"was edited by {issue.edited_by}, whose text does not count"
    return ""
