"""The watch: works through a backlog around the clock, with an audit in idle time.

Sources: requirements CUG-100 to CUG-127.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from reactivex import Observable, operators as ops
from reactivex.subject import Subject

from cuggino.events import ChatAnswered, Event, WatchEvent, WatchIssueAnswered, WatchItemImported
from cuggino.loops.coding.service import LoopService
from cuggino.loops.frame.companions import Companion
from cuggino.loops.frame.framing import Frame, framed
from cuggino.loops.frame.journal import forget_old_runs
from cuggino.loops.frame.resuming import latest_watch
from cuggino.loops.frame.run import Run, Story
from cuggino.loops.watch.full_disk import waits_for_room
from cuggino.loops.watch.journal import WatchRecorder, conclude_runs, settled_run
from cuggino.loops.watch.options import WatchRunOptions
from cuggino.loops.watch.placement import Placement
from cuggino.loops.watch.places import Landing, places_of
from cuggino.loops.watch.recorded import work_left
from cuggino.loops.watch.run import Watch
from cuggino.loops.watch.slots import Places, SlotWatch
from cuggino.loops.watch.with_attempts import with_attempts
from cuggino.stages import AUDIT_VARIABLES, Services
from cuggino.storage import JournalFile

_NEWS = (ChatAnswered, WatchItemImported, WatchIssueAnswered)
"""Events after which an item may begin."""


class WatchService:
    """Runs the coding loop on the items of a backlog, one after the other, indefinitely.

    `companions` see all events and add their own, such as those of a tracker. `claim` emits whether
    work on an item may begin now, and is asked each time; one that may not has to be held in its
    file, or it is asked again at once.
    """

    def __init__(
        self,
        services: Services,
        *,
        loop: LoopService | None = None,
        places: Places | None = None,
        placement: Placement | None = None,
        landing: Landing | None = None,
        companions: Sequence[Companion] = (),
        claim: Callable[[str], Observable[bool]] | None = None,
    ) -> None:
        self.services = services
        self.loop = loop or LoopService(services)
        self._places = places
        self._placement = placement
        self._landing = landing
        self._companions = companions
        self._claim = claim

    def check(self) -> None:
        """Check the prompts of all agents."""
        self.loop.check()
        self.services.prompts.render("audit", dict.fromkeys(AUDIT_VARIABLES, ""))

    def run(
        self, options: WatchRunOptions, *, interrupt: Observable[object] | None = None
    ) -> Observable[WatchEvent]:
        """Watch the backlog. Never completes; ends by disposal, or with an error.

        ::

            [WatchBacklogWaiting [audit]] WatchProcessingItem [coding loop] WatchItemCompleted ...

        Waiting events come on a change of state only, and none when work can begin at once. The
        first item by name is taken. It leaves the backlog for `archive/` when it was approved and
        was not edited meanwhile; a spec issue keeps it. One that is not approved when its
        iterations are used up is parked (`on_max_iterations`). An item whose run fails is tried
        again after growing pauses, others first; after `max_attempts` it is parked with the reason.
        A failure that would hit every item (a usage limit, no login, no agent) parks none: all of
        them wait. Nothing that a person wrote is ever removed.

        With more than one slot, or with a `placement` on other machines, several items are at work
        at once, each in a clone of the project, and land one after the other::

            WatchProcessingItem WatchSlotPrepared [coding loop] WatchCandidate
            WatchLanding [check] WatchLanded WatchItemCompleted WatchFollowed
            WatchLanding [check] WatchSentBack, and the item is worked on again
            WatchLanding [check] WatchProposed ... WatchLanded WatchItemCompleted

        The check runs first, on a clean checkout as in an untouched slot (`baseline`). The events
        of items are interleaved, and carry their `item`. A spec issue stops its item and
        those after it; the failure of an item ends no other. An item whose work is proposed waits
        beside all others, until its pull request is merged or sends it back.

        An unfinished run is resumed when its item is taken again unchanged, also by the next watch.
        A killed watch is resumed too: its costs and failed attempts still count.

        A full disk stops the work: `WatchDiskFull` is emitted, and the watch continues, as after a
        kill, when there is room (see `waits_for_room`).

        Errors: `WorkspaceLocked`; `CheckUnusable` if the check passes in the project, but not in an
        untouched slot; `StorageError` when an item could not be moved, or the journal
        or the files of a run not be written for another reason; `BudgetExceeded` when the
        budget of all agents is spent; `Interrupted` after an item of `interrupt`.
        """
        workspace = self.services.workspace
        latest: JournalFile | None = None
        was_full = False

        def filled() -> None:
            nonlocal was_full
            was_full = True

        def killed(now: datetime) -> JournalFile | None:
            nonlocal latest
            if not options.journal:
                return None
            conclude_runs(workspace)
            forget_old_runs(workspace, options, keep="", at=now)
            latest = latest_watch(workspace)
            goes_on = ("unfinished", "failed") if was_full else ("unfinished",)
            return latest if latest and latest.state in goes_on else None

        looks: Subject[None] = Subject()

        def hint(events: Observable[Event]) -> Observable[Event]:
            """Look at the folders at once after an import, instead of when they have settled."""
            imports = events.pipe(ops.filter(lambda event: isinstance(event, _NEWS)))
            return imports.pipe(ops.do_action(lambda _: looks.on_next(None)), ops.ignore_elements())

        def story(run: Run) -> Story:
            is_placed = any((self._places, self._placement, self._landing))
            if options.slots == 1 and not is_placed:
                settled = settled_run(latest) if latest else None
                return Watch(run, options, self.loop, settled, claim=self._claim, looks=looks)
            left = work_left(latest, workspace) if latest else None
            places = self._places or places_of(
                self.services, options, self._placement, self._landing
            )
            placement = with_attempts(places.placement, self.loop, self.services, options)
            places = replace(places, placement=placement)
            return SlotWatch(run, options, places, left, claim=self._claim, looks=looks)

        watch: Observable[WatchEvent] = framed(
            self.services,
            options,
            story,
            Frame(
                interrupt=interrupt,
                resume=killed,
                recorder=WatchRecorder,
                companions=(*self._companions, hint) if self._companions else (),
            ),
        )
        return watch.pipe(waits_for_room(interrupt, on_full=filled))
