"""The watch: a backlog worked off around the clock, with an audit in idle time.

Sources: requirements CUG-100 to CUG-127.
"""

from __future__ import annotations

from reactivex import Observable

from cuggino.agents.protocol import LlmAgent
from cuggino.events import (
    WatchEvent,
)
from cuggino.loops.audit import AUDIT_VARIABLES
from cuggino.loops.coding import LoopService
from cuggino.loops.options import WatchRunOptions
from cuggino.loops.recording import concluded
from cuggino.loops.resuming import latest_watch
from cuggino.loops.supervising import (
    forget_old_runs,
    take_up_agents,
    wait_for_orphans,
)
from cuggino.loops.watch_journal import (
    WatchRecording,
    open_watch_journal,
    settled_run,
)
from cuggino.loops.watching import Changes, Watch
from cuggino.operators import Flow, QuotaGate, ask, flow, forward, on_loop
from cuggino.prompts import Prompts
from cuggino.stages import lane
from cuggino.stages.folders import (
    folder_changes,
)
from cuggino.storage import Workspace


class WatchService:
    """Runs the coding loop on the items of a backlog, one after the other, for ever."""

    def __init__(
        self,
        *,
        agent: LlmAgent,
        workspace: Workspace,
        loop: LoopService,
        prompts: Prompts | None = None,
        changes: Changes = folder_changes,
        gate: QuotaGate | None = None,
    ) -> None:
        self.agent = agent
        self.workspace = workspace
        self.loop = loop
        self.prompts = prompts or Prompts()
        self.changes = changes
        self.gate = gate or QuotaGate()

    def check(self) -> None:
        """Look whether all agents could be told what to do."""
        self.loop.check()
        self.prompts.render("audit", dict.fromkeys(AUDIT_VARIABLES, ""))

    def run(self, options: WatchRunOptions) -> Observable[WatchEvent]:
        """Watch the backlog. Never completes; ends by disposal, or with an error.

        ::

            [WatchBacklogWaiting [audit]] WatchProcessingItem [coding loop] WatchItemCompleted ...

        Waiting events come on a change of state only, and none when work can begin at once. The
        first item by name is taken. It leaves the backlog for `archive/` when it was approved (or
        its rounds are used up) and nobody has edited it meanwhile; a spec issue keeps it. An item
        whose run fails is tried again after growing pauses, others first; after `max_attempts` it
        is parked with the reason. What would fail every item (a usage limit, no login, no agent)
        parks none: all of them wait. Nothing that a person wrote is ever removed.

        A run that did not come to its end is gone on with when its item is taken again unchanged,
        also by the next watch. A watch that was killed is gone on with too: what was spent and
        what has failed still counts.

        Errors: `WorkspaceLocked`; `StorageError` when an item could not be moved, or the journal
        or the files of a run not be written; `BudgetExceeded` when what all agents may take
        together is spent.
        """
        return on_loop(flow(lambda: self._run(options)))

    def _run(self, options: WatchRunOptions) -> Flow[None]:
        here = yield from ask(lane())
        assert here is not None
        before = self.workspace.owner()
        with self.workspace.lock(command="cuggino watch", since=here.now):
            self.workspace.open()
            yield from wait_for_orphans(self.workspace, before)
            before_it, killed = None, None
            if options.journal:
                forget_old_runs(self.workspace, options, keep="", at=here.now)
                before_it = latest_watch(self.workspace)
                killed = before_it if before_it and before_it.state == "unfinished" else None
            take_up_agents(self.agent, killed, here.now)
            watch = Watch(self, options, killed, settled_run(before_it) if before_it else None)
            if not options.journal:
                yield from watch.forever()
                return
            journal = open_watch_journal(self.workspace, options, killed, at=here.now)
            kept = WatchRecording(journal)
            with concluded(journal, kept, here, killed):
                yield from forward(flow(watch.forever, recorder=kept))
