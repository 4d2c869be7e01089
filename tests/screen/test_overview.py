"""The text of `cuggino status`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cuggino.events import (
    Event,
    PauseAsked,
    PlanningStart,
    RunPaused,
    StopAsked,
    WatchBacklogWaiting,
    WatchProcessingItem,
    WatchSpecIssueWaiting,
)
from cuggino.runs import Activity, ProjectStatus
from cuggino.runs.status import Waiting
from cuggino.storage import LockOwner
from cuggino_cli.screen.fragments import paint
from cuggino_cli.screen.overview import status_fragments

AT = datetime(2026, 11, 23, 7, tzinfo=UTC)
ITEM = WatchProcessingItem(filename="1.md", title="The bill", position=2, total=5)
ISSUE = Waiting(kind="spec-issue", name="i.md", title="PDF\x1b[2J?", hint="answer it")


def shown(*events: Event, waiting: tuple[Waiting, ...] = (), columns: int | None = None) -> str:
    """Return the status of a watch after these events, ten seconds later."""
    activity = Activity()
    for event in events:
        activity = activity.add(event, at=AT)
    status = ProjectStatus(
        folder=Path("/shop"),
        at=AT + timedelta(seconds=10),
        owner=LockOwner(pid=7, since=AT, command="cuggino watch"),
        activity=activity,
        waiting=waiting,
    )
    return paint(status_fragments(status, columns=columns), color=False)


@pytest.mark.parametrize(
    ("events", "waiting", "headline"),
    [
        ((ITEM, PlanningStart(iteration=1)), (), "works"),
        ((ITEM, PlanningStart(iteration=1)), (ISSUE,), "works"),
        ((ITEM, PauseAsked()), (), "pauses after this stage"),
        ((ITEM, PauseAsked(), RunPaused()), (), "is paused"),
        ((ITEM, StopAsked()), (), "stops after this stage"),
        ((WatchBacklogWaiting(),), (), "waits for work"),
        ((WatchSpecIssueWaiting(),), (ISSUE,), "waits for you"),
        ((WatchSpecIssueWaiting(),), (), "goes on soon"),
    ],
)
def test_headline(events: tuple[Event, ...], waiting: tuple[Waiting, ...], headline: str) -> None:
    """The first line tells what the process does; a settled issue waits for nobody."""
    first = shown(*events, waiting=waiting).splitlines()[0]
    assert first.startswith(f"cuggino watch {headline} (process 7, since ")


def test_item_and_stage() -> None:
    """The item has its place and file, the stage its role and time."""
    text = shown(ITEM, PlanningStart(iteration=1))
    assert "Item       2 of 5: The bill (1.md)" in text
    assert "Stage      planning, for 10s" in text


def test_what_waits_is_listed_without_control_characters() -> None:
    """What waits for a person comes last, and cannot control the terminal."""
    text = shown(WatchSpecIssueWaiting(), waiting=(ISSUE,))
    assert ["Waiting for you", "  spec-issue i.md: PDF␛[2J?"] == text.splitlines()[-2:]


def test_lines_fit_the_terminal() -> None:
    """No line is wider than the terminal, but for the link of a page."""
    text = shown(ITEM, PlanningStart(iteration=1), waiting=(ISSUE,), columns=30)
    facts = text.splitlines()[1:]
    assert 30 >= max(len(line) for line in facts)
