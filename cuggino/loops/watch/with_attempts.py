"""Places of items, some of which several attempts work on, here or elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from reactivex import Observable

from cuggino.domain import attempted_item
from cuggino.errors import PlaceGone
from cuggino.events import WatchEvent
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.coding.service import LoopService
from cuggino.loops.watch.here import Here
from cuggino.loops.watch.options import WatchRunOptions
from cuggino.loops.watch.placement import Placed, Placement, Work
from cuggino.loops.watch.places import here_of
from cuggino.stages import Services
from cuggino.stages.slots import Attempted


def with_attempts(
    placement: Placement,
    loop: LoopService,
    services: Services,
    options: WatchRunOptions | LoopRunOptions,
) -> Placement:
    """Return the placement of items that the loop works on, some by several attempts."""
    if isinstance(placement, Here):
        return replace(placement, attempt=partial(placement.attempt, loop=loop))
    leading = loop.attempts_in(placement)
    if leading is None:
        return placement
    here = here_of(services, options, placement.slots)
    here = replace(here, attempt=partial(here.attempt, loop=leading))
    return _WithAttempts(places=placement, here=here)


@dataclass(frozen=True, slots=True, kw_only=True)
class _WithAttempts:
    """Places elsewhere, and a slot here for each item that has several attempts.

    The attempts work elsewhere. No agent but a judge works in the slot, which gets the commit of
    the chosen attempt.
    """

    places: Placement
    """Those of items with one attempt, and of each of several attempts."""
    here: Here

    @property
    def slots(self) -> int:
        return self.places.slots

    @property
    def news(self) -> Observable[WatchEvent]:
        return self.places.news

    def place(self, work: Work) -> Observable[Placed]:
        if work.returned is not None:  # to one agent
            work = replace(work, options=work.options.model_copy(update={"attempts": 1}))
        return self._of(work).place(work)

    def events(self, placed: Placed) -> Observable[WatchEvent]:
        return self._of(placed.work).events(placed)

    def cancel(self, placed: Placed) -> None:
        self._of(placed.work).cancel(placed)

    def attach(self, is_wanted: Callable[[str], bool]) -> Observable[Sequence[Placed]]:
        return self.places.attach(lambda name: is_wanted(attempted_item(name)))

    def gone(self, placed: Placed) -> Observable[PlaceGone]:
        return self._of(placed.work).gone(placed)

    def keep(self, name: str, slot: int, *, base: str) -> Observable[Attempted]:
        return self.places.keep(name, slot, base=base)

    def _of(self, work: Work | None) -> Placement:
        is_raced = work is not None and len(work.options.choices) > 1
        return self.here if is_raced else self.places
