"""A watch with slots, with real git: seen by its own process and by its journals alike."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

import cuggino
from cuggino import events as ev
from cuggino.runs import RecordedRun, Runs, RunState, follow, project_status
from tests.git_project import isolate_git
from tests.loops.slot_project import SlotProject
from tests.screen.test_slot_rows import printed


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolate_git(monkeypatch, tmp_path / "home")


def lasting(events: list[ev.Event]) -> Counter[str]:
    """Return the lines of the events that a journal keeps."""
    kinds = ev.PingEvent | ev.MessageDelta | ev.WatchPolling | ev.ControlEvent
    return Counter(ev.dump_event(event) for event in events if not isinstance(event, kinds))


@pytest.mark.real_agent
def test_followed_as_it_was_seen(tmp_path: Path) -> None:
    """Each event comes once, with its item; the status counts what the events say."""
    project = SlotProject(tmp_path)
    for name in "123":
        project.item(name, f"echo {name} >word{name}.txt")
    seen = project.watch()
    recorded = [run for run in Runs(project.folder).all() if isinstance(run, RecordedRun)]
    (watch,) = [run for run in recorded if run.started.kind == "watch"]
    items = sorted(run.started.item or "" for run in recorded if run is not watch)
    assert [item.partition(" ")[0] for item in items] == ["1.md", "2.md", "3.md"]
    entries = list(cuggino.iterate(follow(project.folder, watch.path)))
    followed = [entry.event for entry in entries if not ev.is_journal_event(entry.event)]
    assert lasting(followed) == lasting(seen)
    activity = RunState()
    now = datetime.now(UTC)
    stages: Counter[str] = Counter()
    for event in seen:
        activity = activity.add(event, at=now)
        slots = [one.slot for one in activity.at_work]
        assert slots in ([], [1], [2], [1, 2])
        assert [one.place for one in activity.queue].count("landing") <= 1
        stages.update(one.role for one in activity.at_work)
    assert {"preparing", "planning", "implementing", "reviewing"} == stages.keys()
    last = project_status(project.folder, at=now).last
    assert last is not None
    for one in (activity, last.activity):
        assert (one.done, len(one.items)) == (3, 0)
        assert one.cost_usd == pytest.approx(0.03)
    assert isinstance(seen[-1], ev.WatchBacklogWaiting)
    lines = printed(*seen).splitlines()
    assert any(line.startswith("[→ 1] [Check] Running: sh check.sh") for line in lines)
    calls = [line for line in lines if "▶" in line]
    assert calls
    assert all(re.match(r"\[[12] [123]\] ▶", line) for line in calls)
