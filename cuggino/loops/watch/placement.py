"""Placement of attempts at backlog items: in this process, or on another machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from reactivex import Observable, operators as ops

from cuggino.agents.base import LlmAgent
from cuggino.config import AttemptChoice
from cuggino.errors import PlaceGone
from cuggino.events import WatchEvent, WatchPlaced, WatchPlaceGone
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.frame.control import Control
from cuggino.loops.watch.pool_state import Returned
from cuggino.operators import Flow, ask, emit, flow, forward, interrupt_when
from cuggino.operators.supervision import Ledger
from cuggino.stages.slots import Attempted

__all__ = ["Placed", "Placement", "Returned", "Work", "item_name", "work_placed"]

MOST_PLACES = 3
"""The places that an attempt may lose before it fails."""


def item_name(item: str) -> str:
    """Return the file name of an item, given its name and digest."""
    return item.rpartition(" ")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """An attempt to place: the item with all that its agents need to know."""

    options: LoopRunOptions
    """Those of the coding loop in the project; `item` is the item's name and digest."""
    slot: int
    """From 1; no other attempt has it at the same time."""
    base: str
    """The trunk, on which the work builds."""
    number: int = 1
    """Counts the attempts at the item."""
    returned: Returned | None = None
    """The reason why its candidate did not land."""
    ledger: Ledger | None = None
    """Counts what all attempts spend."""
    control: Control | None = None
    """A person's commands for the item."""
    choice: AttemptChoice = field(default_factory=AttemptChoice)
    """What it differs in, as one of several attempts at the same work."""
    agent: LlmAgent | None = None
    """Its agent, where that is not the project's; another machine makes it by the `choice`."""

    @property
    def name(self) -> str:
        """Return the name of the item."""
        return item_name(self.options.item or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """An attempt that has a place."""

    item: str
    """Name and digest."""
    slot: int
    key: str = ""
    """Names this attempt among all others of the placement."""
    worker: str | None = None
    """The name of the worker; None for this process."""
    work: Work | None = None
    """None for one that an earlier process has placed."""


class Placement(Protocol):
    """An engine that runs attempts: slots in this process, or other machines."""

    @property
    def slots(self) -> int:
        """Return how many attempts there may be at once."""

    @property
    def news(self) -> Observable[WatchEvent]:
        """Return what happens at the places besides attempts, from now on. Cold."""

    def place(self, work: Work) -> Observable[Placed]:
        """Find a place for the attempt; emits once it has one.

        An attempt that continues from an earlier process already has its place.
        """

    def events(self, placed: Placed) -> Observable[WatchEvent]:
        """Emit what happens in the attempt, in order, and its error; see `attempt`."""

    def cancel(self, placed: Placed) -> None:
        """End the attempt and its processes; nothing if it has ended."""

    def attach(self, is_wanted: Callable[[str], bool]) -> Observable[Sequence[Placed]]:
        """Emit the attempts of an earlier process: the last in each slot, or those at work yet.

        Those at items that are not wanted, by their names, end.
        """

    def gone(self, placed: Placed) -> Observable[PlaceGone]:
        """Emit when the place of the attempt is gone; the work so far can be resumed elsewhere."""

    def keep(self, name: str, slot: int, *, base: str) -> Observable[Attempted]:
        """Keep the work of one of several attempts, which has lost, as `keep_attempt`."""


def work_placed(placement: Placement, work: Work) -> Observable[WatchEvent]:
    """Work on an item wherever the placement has a place; again elsewhere when that is gone. Cold.

    ::

        place -> [WatchPlaced] events | gone -> WatchPlaceGone, place -> [WatchPlaced] events ...

    A disposal cancels the attempt.

    Errors: those of the attempt; `PlaceGone` if the third place is lost, too.
    """

    def story() -> Flow[None]:
        lost = 0
        while True:
            placed = yield from ask(placement.place(work))
            assert placed is not None
            if placed.worker is not None:
                yield from emit(
                    WatchPlaced(filename=work.name, slot=work.slot, worker=placed.worker)
                )
            gone = placement.gone(placed).pipe(ops.do_action(_fail))
            try:
                yield from forward(placement.events(placed).pipe(interrupt_when(gone)))
                return
            except PlaceGone as error:
                lost += 1
                if lost == MOST_PLACES:
                    raise
                yield from emit(
                    WatchPlaceGone(
                        filename=work.name,
                        slot=work.slot,
                        worker=placed.worker or "",
                        reason=error.message,
                    )
                )
            finally:
                placement.cancel(placed)

    return flow(story)


def _fail(error: PlaceGone) -> None:
    raise error
