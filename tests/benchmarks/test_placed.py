"""The simulation of a watch over workers."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.benchmarks.placed import simulate
from tests.benchmarks.simulation import Model


@pytest.mark.real_agent
def test_every_item_lands_once() -> None:
    """However many workers are lost, no item lands twice and none is left at work."""
    found = simulate(Model(items=120, check=0.2), 20, lost=0.3)
    once = Counter({f"{number:05}.md": 1 for number in range(120)})
    assert (once, once) == (found.landed, found.completed)
    assert (found.drawn, 20, 0) == (found.lost, found.most_at_work, found.at_work)
    assert found.lost > 30
