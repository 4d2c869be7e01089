"""Detecting that implementing agents make no progress, by the states they leave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Standstill = Literal["unchanged", "oscillating"]


@dataclass(slots=True)
class ProgressWatch:
    """A detector of agents that change nothing, and of agents that undo each other.

    It receives one fingerprint of the project before the first implementing agent (`start`) and one
    after each (`observe`), and only compares them, so that replaying a run's fingerprints gives the
    same detector. The first `observe` without a `start` acts as `start`.

    Two counts of agents in a row:

    - *idle*: the state is the one that the previous agent left;
    - *stale*: the state occurred before; an agent that is stale but not idle has *returned*.

    The answer is `unchanged` when `patience` agents in a row were idle, and `oscillating` when
    `patience` agents in a row (two at least) were stale and two of them have returned::

        patience=3      A B A B A    oscillating at the last: three stale, three returned
                        A B A C      nothing: the revert was followed by something new
                        A B A A A A  unchanged at the last: there was only one return

    After an answer, both counts restart, so that a new plan has the patience of as many agents.
    Known states are kept.
    """

    patience: int
    agents: int = field(default=0, init=False)
    """Agents in a row that the latest answer is about; 0 if it was None."""
    _known: set[str] = field(default_factory=set, init=False)
    _last: str | None = field(default=None, init=False)
    _idle: int = field(default=0, init=False)
    _stale: int = field(default=0, init=False)
    _returned: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.patience < 1:
            raise ValueError("patience must be at least 1")

    def start(self, fingerprint: str) -> None:
        """Start with the state before the first agent, forgetting all others."""
        self._known = {fingerprint}
        self._last = fingerprint
        self._begin_anew()
        self.agents = 0

    def observe(self, fingerprint: str) -> Standstill | None:
        """Record the state that an agent left; return the standstill, if there is one."""
        if self._last is None:
            self.start(fingerprint)
            return None
        idle, stale = fingerprint == self._last, fingerprint in self._known
        self._idle = self._idle + 1 if idle else 0
        self._stale = self._stale + 1 if stale else 0
        self._returned = self._returned + (not idle) if stale else 0
        self._known.add(fingerprint)
        self._last = fingerprint
        answer: Standstill | None = None
        self.agents = 0
        if self._idle >= self.patience:
            answer, self.agents = "unchanged", self._idle
        elif self._stale >= self.patience and self._returned >= 2:
            answer, self.agents = "oscillating", self._stale
        if answer is not None:
            self._begin_anew()
        return answer

    def _begin_anew(self) -> None:
        self._idle = self._stale = self._returned = 0
