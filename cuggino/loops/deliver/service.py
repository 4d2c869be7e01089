"""The deliver loop: sessions with a fresh context each, until every deliverable has passed.

Sources: requirements AUT-020 to AUT-064, AUT-120, AUT-270.
"""

from __future__ import annotations

from importlib.util import find_spec

from reactivex import Observable

from cuggino.config import read_agent_file
from cuggino.errors import ConfigError, install_extra
from cuggino.events import DeliverStreamEvent
from cuggino.loops.deliver.options import DeliverRunOptions
from cuggino.loops.deliver.run import DeliverRun
from cuggino.loops.deliver.setup import look_at_agent_file, setup_warnings
from cuggino.loops.frame.framing import Frame, framed
from cuggino.loops.frame.run import Run, Story
from cuggino.operators import Flow, ask
from cuggino.operators.supervision import Ledger, is_outage
from cuggino.stages import Services, act
from cuggino.storage import SPEC_FILE, DeliverableStore, JournalFile


class DeliverService:
    """Runs the deliver loop."""

    def __init__(self, services: Services) -> None:
        self.services = services

    def check(self) -> None:
        """Check the specification, the files that people edit, and the deliverable tools.

        Raises:
            ConfigError: there is no `SPEC.md`, a file is unusable, or the MCP library is not
                installed.
        """
        root = self.services.workspace.root
        if not (root / SPEC_FILE).is_file():
            raise ConfigError(
                f"{SPEC_FILE} not found in {root}",
                hint=f"describe what is to be delivered in {SPEC_FILE}, or give --project-dir",
            )

        read_agent_file(root)
        DeliverableStore(root).check()
        if find_spec("mcp") is None:
            raise ConfigError(
                "the deliverable tools need the MCP library, which is not installed",
                hint=install_extra("deliver"),
            )

    def run(
        self,
        options: DeliverRunOptions,
        *,
        interrupt: Observable[object] | None = None,
        resume: JournalFile | None = None,
        ledger: Ledger | None = None,
    ) -> Observable[DeliverStreamEvent]:
        """Run the loop. Cold; each subscription is a run with its own lock.

        ::

            DeliverablesListed { DeliverSessionStarted [agent, DeliverableStatusChanged,
              DeliverablesListed] DeliverSessionEnded DeliverablesListed [DeliverSessionRetry] }
            DeliverEnded|

        A `DeliverWarning` takes the place of a `DeliverablesListed` when the status file is broken.

        The first session gets the initializer if the status file does not exist yet, each further
        one the coding instruction, with `session_pause` between two of them.
        With the workflow `sync` deliverables are compared with the specification and verified.
        If all have passed or are blocked at the start, no session is started, unless
        `recheck` asks for one; with `verify` those that have passed are verified then too.

        `DeliverEnded` is always the last event. An error that ends the loop follows it in
        the error channel: `QuotaExceeded`, `BudgetExceeded`, and any that every further session
        would meet (`AgentNotFound`, `GuardNotLive`, no login). Without it come
        `WorkspaceLocked`, `ConfigError` and `StorageError`: the run could not begin, or its journal
        not be written. An item of `interrupt`, from any thread and also for those who subscribe
        late (such as a `ReplaySubject`), ends the running session and the loop (`interrupted`);
        disposal does so silently. All events are delivered on the scheduler given to
        `subscribe`.

        Each run writes its journal; that of an unfinished one can be given as `resume`, with the
        options it was started with: after `RunResumed` it is resumed at its first unfinished
        session, whose `DeliverSessionStarted` is emitted again. Pass `ledger` to share the costs
        with other runs.
        """
        workspace = self.services.workspace

        def make(run: Run) -> Flow[Story]:
            found = yield from ask(act(lambda: look_at_agent_file(options.cwd, workspace)))
            assert found is not None
            file, notes = found
            warnings = (*notes, *setup_warnings(file.settings, options.cwd))
            return DeliverRun(run, options, agent_settings=file.settings, warnings=warnings)

        return framed(
            self.services,
            options,
            make,
            # Another session follows one whose program failed (AUT-060).
            Frame(interrupt=interrupt, resume=resume, ledger=ledger, transient=is_outage),
        )
