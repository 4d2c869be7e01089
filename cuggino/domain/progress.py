"""Detecting that implementing agents make no progress, by the states and reports they leave."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Standstill: TypeAlias = Literal["unchanged", "oscillating"]


@dataclass(frozen=True, slots=True)
class ProgressWatch:
    """A detector of agents that change nothing, and of agents that undo each other.

    A value: it receives one fingerprint of the project before the first implementing agent
    (`started`) and one after each (`after`), and only compares them, so that replaying a run's
    fingerprints gives the same detector. The first `after` without a `started` acts as `started`.

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

    Some tasks change no file that git would commit: verifying, tagging, filling ignored folders. So
    an agent that leaves the state as it was counts as *busy*, not as idle, if its `trace` (what it
    reported, and what it left outside of the state) differs from all earlier ones. An agent that
    has nothing to do repeats itself, and then its trace is known. One that only finds new words
    each time must be stopped too: at most as many agents are busy without a change of the state as
    the plan has open `tasks`, or `patience` of them where the plan lists fewer. A standstill uses
    up the rest. A busy agent neither counts as a return nor ends a row of them, so that oscillation
    is detected as before. The first trace is only compared with.
    """

    patience: int
    standstill: Standstill | None = None
    """The answer after the latest agent."""
    agents: int = 0
    """Agents in a row that the answer is about; 0 if there is none."""
    _known: frozenset[str] = frozenset()
    _last: str | None = None
    _idle: int = 0
    _stale: int = 0
    _returned: int = 0
    _traces: frozenset[str] = frozenset()
    _busy: int | None = 0
    """Busy agents since the state changed; None when no more may be."""

    def __post_init__(self) -> None:
        if self.patience < 1:
            raise ValueError("patience must be at least 1")

    def started(self, fingerprint: str) -> ProgressWatch:
        """Return a watch with the state before the first agent, which knows no other."""
        return ProgressWatch(self.patience, _known=frozenset({fingerprint}), _last=fingerprint)

    def after(self, fingerprint: str, *, trace: str | None = None, tasks: int = 0) -> ProgressWatch:
        """Return the watch after an agent that left this state.

        `trace` is only needed if the state is unchanged; without one the agent was idle.
        """
        if self._last is None:
            return self.started(fingerprint)
        idle, stale = fingerprint == self._last, fingerprint in self._known
        seen = replace(
            self,
            standstill=None,
            agents=0,
            _known=self._known | {fingerprint},
            _last=fingerprint,
            _traces=self._traces if trace is None else self._traces | {trace},
        )
        if idle and self._is_busy(trace, tasks):
            return replace(seen, _idle=0, _busy=(self._busy or 0) + 1)
        return replace(
            seen,
            _idle=self._idle + 1 if idle else 0,
            _stale=self._stale + 1 if stale else 0,
            _returned=self._returned + (not idle) if stale else 0,
            _busy=self._busy if stale else 0,
        )._answered()

    def _is_busy(self, trace: str | None, tasks: int) -> bool:
        if trace is None or self._busy is None or not self._traces or trace in self._traces:
            return False
        return self._busy < max(tasks, self.patience)

    def _answered(self) -> ProgressWatch:
        if self._idle >= self.patience:
            return self._at_standstill("unchanged", self._idle)
        if self._stale >= self.patience and self._returned >= 2:
            return self._at_standstill("oscillating", self._stale)
        return self

    def _at_standstill(self, kind: Standstill, agents: int) -> ProgressWatch:
        """Return the watch with this answer; its counts restart."""
        return replace(
            self, standstill=kind, agents=agents, _idle=0, _stale=0, _returned=0, _busy=None
        )
