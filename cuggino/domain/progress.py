"""Whether implementing agents get anywhere, judged by the states that they leave behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Standstill = Literal["unchanged", "oscillating"]


@dataclass(slots=True)
class ProgressWatch:
    """Notices agents that change nothing, and agents that undo each other.

    It is fed with one fingerprint of the project before the first implementing agent (`start`) and
    one after each (`observe`). It looks at nothing but their equality, so that feeding the recorded
    fingerprints of a run again, in order, gives the same watch: the first `observe` of a watch that
    was not started is its `start`.

    Two counts, of agents in a row:

    - *idle*: the state is the one that the agent before has left;
    - *stale*: the state is any that was there before; who is stale and not idle has *returned*.

    `unchanged` is said when `patience` agents in a row were idle. `oscillating` is said when
    `patience` agents in a row (two at least) were stale and two of them have returned::

        patience=3      A B A B A    oscillating with the last: three stale, three returned
                        A B A C      nothing: the revert was followed by something new
                        A B A A A A  unchanged with the last: there was one return only

    What was said is not said of the same agents again: the counts begin anew, and whoever changes
    the course (a new plan) has the patience of as many agents. The states stay known.
    """

    patience: int
    agents: int = field(default=0, init=False)
    """How many agents in a row the latest answer is about; 0 when it was None."""
    _known: set[str] = field(default_factory=set, init=False)
    _last: str | None = field(default=None, init=False)
    _idle: int = field(default=0, init=False)
    _stale: int = field(default=0, init=False)
    _returned: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.patience < 1:
            raise ValueError("patience must be at least 1")

    def start(self, fingerprint: str) -> None:
        """Begin with the state before the first agent; what was known is forgotten."""
        self._known = {fingerprint}
        self._last = fingerprint
        self._begin_anew()
        self.agents = 0

    def observe(self, fingerprint: str) -> Standstill | None:
        """One more agent has ended and left this state; gives what is wrong, None if nothing."""
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
