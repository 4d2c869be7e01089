"""`cuggino doctor` on the slots of a watch."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.doctor.result import CheckResult
from tests.cli.looking import look
from tests.cli.recorded_runs import Said, record

Ran = Callable[..., None]


def check(begin: float, seconds: float, item: str | None = None) -> list[Said]:
    """Return the events of a check command."""
    end = begin + seconds
    return [
        (begin, "check#1", ev.StageStarted(name="check")),
        (begin, "check#1", ev.CheckCommandStarted(iteration=1, command="make", item=item)),
        (end, "check#1", ev.CheckCommandOutput(iteration=1, exit_code=0, item=item)),
        (end, "check#1", ev.StageFinished(outcome=None)),
    ]


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    """Record runs of items that took `minutes`, with a check of `check_seconds`."""

    def run(*minutes: float, check_seconds: float = 180, state: str = "approved") -> None:
        for number, time in enumerate(minutes):
            end = time * 60
            terminal: ev.LoopTerminalEvent = ev.LoopApproved(iteration=1)
            said: list[Said] = [
                *check(10, check_seconds),
                (end, None, terminal),
                (end, None, ev.RunEnded(state=state)),  # type: ignore[arg-type]
            ]
            record(tmp_path, str(uuid.uuid4()), *said, item=f"{number}.md 0123")

    return run


def reported(folder: Path, **settings: Any) -> list[CheckResult]:
    return look("slots", folder, **{"commit": True, "checkCommand": "make", **settings})


def test_too_many_slots(tmp_path: Path, ran: Ran) -> None:
    """More slots than items take checks would only wait; the median counts."""
    ran(30, 31, 29, 500, 1)
    assert [
        CheckResult(
            "note",
            "slots: 16, of which 6 would wait for the check: an item takes 30 min, "
            "the check of each landing 3 min",
            'set "slots" to 10 in .cuggino.json, or make the check faster',
        )
    ] == reported(tmp_path, slots=16)


@pytest.mark.parametrize("count", [1, 4, 10])
def test_as_many_slots_as_have_a_use(tmp_path: Path, ran: Ran, count: int) -> None:
    """It is all right to use fewer; how many there could be is shown."""
    ran(30, 30, 30)
    (result,) = reported(tmp_path, slots=count)
    assert result == CheckResult(
        "ok",
        f"slots: {count}; up to 10 would not wait for the check "
        "(an item takes 30 min, the check of each landing 3 min)",
    )


def test_a_check_as_long_as_an_item(tmp_path: Path, ran: Ran) -> None:
    """A second slot only waits."""
    ran(3, 3, 3, check_seconds=120)
    assert [] == reported(tmp_path)
    (result,) = reported(tmp_path, slots=2)
    assert "slots: 2, of which 1 would wait" in result.what


def test_a_check_of_no_time(tmp_path: Path, ran: Ran) -> None:
    """There are never more slots than may be set."""
    ran(240, 240, 240, check_seconds=0)
    (result,) = reported(tmp_path, slots=64)
    assert "slots: 64; up to 64 would not wait for the check (an item takes 4.0 h, " in result.what
    assert "the check of each landing less than 1 s" in result.what


def test_too_little_is_known(tmp_path: Path, ran: Ran) -> None:
    """Two items, unfinished ones, and runs without an item say nothing."""
    assert [] == reported(tmp_path)
    assert [CheckResult("ok", "slots: 4")] == reported(tmp_path, slots=4)
    ran(30, 30)
    ran(30, 30, state="interrupted")
    record(tmp_path, str(uuid.uuid4()), *check(1, 5), (9, None, ev.RunEnded(state="approved")))
    assert [] == reported(tmp_path)


def test_checks_at_the_same_time(tmp_path: Path, ran: Ran) -> None:
    """In a watch with slots, each check belongs to its item."""
    said = [*check(0, 300, "a"), *check(100, 300, "b"), *check(150, 300, "c")]
    said.sort(key=lambda entry: entry[0])
    record(tmp_path, str(uuid.uuid4()), *said, kind="watch")
    ran(50, 50, 50, check_seconds=300)
    (result,) = reported(tmp_path)
    assert "up to 10 would not wait" in result.what


@pytest.mark.parametrize("settings", [{"commit": False}, {"checkCommand": None}])
def test_a_project_without_slots(tmp_path: Path, ran: Ran, settings: dict[str, object]) -> None:
    """Without commits or a check there are no slots, and no advice."""
    ran(30, 30, 30)
    assert [] == reported(tmp_path, **settings)


def test_journals_that_cannot_be_read(tmp_path: Path, ran: Ran) -> None:
    """They are passed over."""
    ran(30, 30, 30)
    folder = tmp_path / ".cuggino/journal"
    (folder / f"{uuid.uuid4()}.jsonl").write_text("no journal\n")
    assert "up to 10" in reported(tmp_path)[0].what
