"""Attempts in this process, each in the folder of a slot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from reactivex import Observable, just, never

from cuggino.errors import PlaceGone
from cuggino.events import WatchEvent
from cuggino.loops.watch.attempt import Prepare, Publish, attempt, recorded_slots
from cuggino.loops.watch.placement import Placed, Work
from cuggino.stages import Services
from cuggino.stages.slots import Attempted, Slot, keep_attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """The slots on this machine; a placement that is never gone."""

    services: Services
    """The services of the project."""
    folders: Sequence[Slot]
    prepare: Prepare
    publish: Publish
    attempt: Callable[..., Observable[WatchEvent]] = attempt
    """Works on an item in a slot, as `cuggino.loops.watch.attempt.attempt`."""
    specs: str = ".specs"

    @property
    def slots(self) -> int:
        """Return the number of slots."""
        return len(self.folders)

    @property
    def news(self) -> Observable[WatchEvent]:
        """Return nothing."""
        return never()

    def place(self, work: Work) -> Observable[Placed]:
        """Emit the slot of the attempt."""
        return just(Placed(item=work.options.item or "", slot=work.slot, work=work))

    def events(self, placed: Placed) -> Observable[WatchEvent]:
        """Run the attempt."""
        work = placed.work
        assert work is not None
        services = replace(self.services, agent=work.agent or self.services.agent)
        slot, publish = self._slot(work.slot), self.publish
        return self.attempt(services, work, slot, prepare=self.prepare, publish=publish)

    def cancel(self, placed: Placed) -> None:
        """Do nothing: who disposes of the events has ended them."""

    def attach(self, is_wanted: Callable[[str], bool]) -> Observable[Sequence[Placed]]:
        """Emit the last attempt in each slot, which is best resumed there."""
        recorded = recorded_slots(self.services.workspace, self.folders)
        return just([Placed(item=item, slot=number) for item, number in recorded.items()])

    def gone(self, placed: Placed) -> Observable[PlaceGone]:
        """Emit nothing."""
        return never()

    def keep(self, name: str, slot: int, *, base: str) -> Observable[Attempted]:
        """Keep what is in the slot."""
        return keep_attempt(self._slot(slot), name, base=base, specs=self.specs)

    def _slot(self, number: int) -> Slot:
        return next(slot for slot in self.folders if slot.number == number)
