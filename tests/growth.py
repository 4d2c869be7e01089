"""Tells linear from quadratic work."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_TOLERANCE: Final = 4
"""Between linear work, which is 1, and quadratic work, which is at least 8."""
_ROUNDS: Final = 3
_LEAST_SECONDS: Final = 0.01


def is_linear(work: Callable[[int], object], *, small: int, large: int) -> bool:
    """Return whether the CPU time of the work grows about as its size, in one of three rounds.

    One round is not enough: a collection of garbage or a slow moment of the machine may fall into
    it. Quadratic work fails in each.
    """
    assert large >= 8 * small
    return any(_factor(work, small, large) < _TOLERANCE for _ in range(_ROUNDS))


def _factor(work: Callable[[int], object], small: int, large: int) -> float:
    """Return the growth of the time as a multiple of the growth of the size."""
    before = max(_seconds(work, small), _LEAST_SECONDS)
    factor = _seconds(work, large) / before / (large / small)
    print(f"{large / small:.0f} times the size takes {factor:.1f} times as long as linear work")
    return factor


def _seconds(work: Callable[[int], object], size: int) -> float:
    began = time.process_time()
    work(size)
    return time.process_time() - began
