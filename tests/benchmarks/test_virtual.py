"""The watch in virtual time that is measured."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.benchmarks.virtual import work


@pytest.mark.real_agent
def test_every_item_lands_once() -> None:
    """However many workers are lost, no item lands twice and none is left at work."""
    found = work(120, 20, check=0.2, conflicts=0.1, lost=0.3)
    once = Counter({f"{number:05}.md": 1 for number in range(120)})
    assert (once, once) == (found.landed, found.completed)
    assert (found.drawn, 20, 0) == (found.lost, found.most_at_work, found.at_work)
    assert found.lost > 30


def test_four_slots() -> None:
    """With a short check, four slots are almost four times as fast, and 16 are slowed by a long."""
    assert 3.5 <= work(60, 4, check=0.1, conflicts=0).speed_up <= 4
    assert work(60, 16, check=3, conflicts=0).speed_up < 10
