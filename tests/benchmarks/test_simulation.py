"""The simulation of a watch with several slots."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cuggino.domain import LandingQueue
from tests.benchmarks.simulation import Model, row, simulate
from tests.limits import LIMIT

SMALL = Model(items=80)


@pytest.mark.parametrize("slots", [1, 4, 32])
def test_all_items_land(slots: int) -> None:
    """Every item lands once, however often it was sent back; returns lose no item."""
    outcome = simulate(SMALL, slots)
    assert 80 == outcome.landed
    assert slots >= outcome.speed_up
    assert outcome.sent_back.total() == outcome.returns.total()
    assert 1 >= outcome.busy > 0


def test_one_slot_waits_for_nothing() -> None:
    """Without returns and checks it takes as long as the items themselves."""
    outcome = simulate(Model(items=50, red=0, check=0, conflicting=0), 1)
    assert not outcome.sent_back
    assert pytest.approx(1) == outcome.speed_up


def test_four_slots() -> None:
    """With a short check, four slots are almost four times as fast."""
    assert 3.5 <= simulate(Model(items=200, check=1), 4).speed_up <= 4


def test_new_items_are_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise slots that are faster than the check produce conflicts, and nothing is faster."""
    model = Model(items=150)
    held_back = simulate(model, 32)
    monkeypatch.setattr(LandingQueue, "admits_new", True)
    at_once = simulate(model, 32)
    assert at_once.sent_back.total() > 1.5 * held_back.sent_back.total()
    assert at_once.speed_up < 1.1 * held_back.speed_up


def test_an_overload_narrows_the_watch() -> None:
    """A service that bears less makes the same watch slower; everything lands all the same."""
    free, overloaded = (simulate(Model(items=80, overload=share), 8) for share in (0, 0.5))
    assert overloaded.speed_up < free.speed_up
    assert 80 == overloaded.landed


def test_the_same_seed_gives_the_same_figures() -> None:
    """Figures can be repeated."""
    assert row(simulate(SMALL, 8)) == row(simulate(SMALL, 8))


@pytest.mark.real_agent
def test_program() -> None:
    """It prints a row for each number of slots."""
    words = ["-m", "tests.benchmarks.simulation", "--items", "30", "--slots", "2", "4"]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr)
    model, _, head, _, *rows = done.stdout.splitlines()
    assert model.startswith("30 items of 30 min; check 3 min; 400 files, 3 touched")
    assert head.startswith("| slots | hours | speed-up | sent back |")
    assert ["2", "4"] == [row.split()[1] for row in rows]
