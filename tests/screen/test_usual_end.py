"""When a run usually ends, in the status area and in `cuggino status`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.runs import ProjectStatus, RunState, status_json
from cuggino.storage import LockOwner
from cuggino_cli.screen.fragments import paint
from cuggino_cli.screen.overview import status_fragments
from cuggino_cli.screen.status import RunStatus

AT = datetime(2026, 11, 23, 7, tzinfo=UTC)
FORECAST = ev.Forecast(loop="run", runs=3, duration=600, worst_duration=900)
BEGUN: list[ev.Event] = [
    ev.RunStarted(run_id="r1", kind="run", command="c", agent="claude"),
    FORECAST,
    ev.PlanningStart(iteration=1),
    ev.SessionEnded(outcome="completed", cost_usd=0.5),
]


def clock(at: datetime) -> str:
    return f"{at.astimezone():%H:%M}"


def activity_of(*events: ev.Event) -> RunState:
    activity = RunState()
    for event in events:
        activity = activity.add(event, at=AT)
    return activity


def totals(now: datetime, *, columns: int = 140) -> str:
    """Return the last row of the status area."""
    rows = RunStatus(activity=activity_of(*BEGUN), keys=None).rows(now, columns=columns, height=40)
    return paint(rows[-1], color=False).strip()


def status(now: datetime, *events: ev.Event) -> ProjectStatus:
    owner = LockOwner(pid=7, since=AT, command="cuggino run")
    return ProjectStatus(folder=Path("/shop"), at=now, owner=owner, activity=activity_of(*events))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (90, f"usually ends at {clock(AT + timedelta(seconds=600))}"),
        (600, "usually takes 10m 0s"),
        (5000, "usually takes 10m 0s"),
    ],
)
def test_before_and_after_that_time(seconds: float, text: str) -> None:
    """Before its usual end the time is shown, afterwards the usual duration."""
    now = AT + timedelta(seconds=seconds)
    assert f" · {text} · $0.50" in totals(now)
    shown = paint(status_fragments(status(now, *BEGUN), columns=None), color=False)
    assert f", {text}\n" in shown


def test_a_narrow_terminal() -> None:
    """It is the first to be left out; time and cost stay."""
    assert "1m 30s · $0.50" == totals(AT + timedelta(seconds=90), columns=30)


def test_another_day() -> None:
    """The date is shown if the run usually ends on another day."""
    long = FORECAST.model_copy(update={"duration": 3 * 86400.0})
    shown = paint(status_fragments(status(AT, BEGUN[0], long), columns=None), color=False)
    end = (AT + timedelta(days=3)).astimezone()
    assert f"usually ends at {end:%H:%M} on {end:%Y-%m-%d}" in shown


def test_an_item_in_a_slot() -> None:
    """Each item of a watch has its own time."""
    watch = ev.RunStarted(run_id="w", kind="watch", command="c", options={"slots": 2})
    forecast = FORECAST.model_copy(update={"loop": "item"})
    item = ev.WatchProcessingItem(filename="1.md", title="The bill", slot=1)
    shown = paint(status_fragments(status(AT, watch, forecast, item), columns=None), color=False)
    (line,) = [line for line in shown.splitlines() if "The bill" in line]
    assert f"usually ends at {clock(AT + timedelta(seconds=600))}" in line
    (told,) = status_json(status(AT, watch, forecast, item))["run"]["items"]
    assert (AT + timedelta(seconds=600)).isoformat() == told["usual_end"]


def test_as_json() -> None:
    """`--json` has the forecast and the time; null without one."""
    run = status_json(status(AT, *BEGUN))["run"]
    assert ("run", 600.0) == (run["forecast"]["loop"], run["forecast"]["duration"])
    assert (AT + timedelta(seconds=600)).isoformat() == run["usual_end"]
    without = status_json(status(AT, BEGUN[0]))["run"]
    assert (None, None) == (without["forecast"], without["usual_end"])
