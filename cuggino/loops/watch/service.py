"""The watch: a backlog worked off around the clock, with an audit in idle time.

Sources: requirements CUG-100 to CUG-127.
"""

from __future__ import annotations

from datetime import datetime

from reactivex import Observable

from cuggino.events import WatchEvent
from cuggino.loops.coding.service import LoopService
from cuggino.loops.frame.journal import forget_old_runs
from cuggino.loops.frame.resuming import latest_watch
from cuggino.loops.frame.run import framed
from cuggino.loops.frame.services import Services
from cuggino.loops.watch.audit import AUDIT_VARIABLES
from cuggino.loops.watch.journal import WatchRecorder, conclude_runs, settled_run
from cuggino.loops.watch.options import WatchRunOptions
from cuggino.loops.watch.run import Watch
from cuggino.storage import JournalFile


class WatchService:
    """Runs the coding loop on the items of a backlog, one after the other, indefinitely."""

    def __init__(self, services: Services, *, loop: LoopService | None = None) -> None:
        self.services = services
        self.loop = loop or LoopService(services)

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
        first item by name is taken. It leaves the backlog for `archive/` when it was approved (or
        its iterations are used up) and was not edited meanwhile; a spec issue keeps it. An item
        whose run fails is tried again after growing pauses, others first; after `max_attempts` it
        is parked with the reason. What would fail every item (a usage limit, no login, no agent)
        parks none: all of them wait. Nothing that a person wrote is ever removed.

        An unfinished run is resumed when its item is taken again unchanged, also by the next watch.
        A killed watch is resumed too: its costs and failed attempts still count.

        Errors: `WorkspaceLocked`; `StorageError` when an item could not be moved, or the journal
        or the files of a run not be written; `BudgetExceeded` when what all agents may take
        together is spent; `Interrupted` after an item of `interrupt`.
        """
        workspace = self.services.workspace
        latest: JournalFile | None = None

        def killed(now: datetime) -> JournalFile | None:
            nonlocal latest
            if not options.journal:
                return None
            conclude_runs(workspace)
            forget_old_runs(workspace, options, keep="", at=now)
            latest = latest_watch(workspace)
            return latest if latest and latest.state == "unfinished" else None

        return framed(
            self.services,
            options,
            lambda run: Watch(run, options, self.loop, settled_run(latest) if latest else None),
            interrupt=interrupt,
            resume=killed,
            recorder=WatchRecorder,
        )
