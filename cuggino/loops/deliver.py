"""The deliverables loop: sessions with a fresh context each, until every deliverable has passed.

Sources: requirements AUT-020 to AUT-064, AUT-120, AUT-270.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reactivex import Observable, never

from cuggino.agents.protocol import LlmAgent
from cuggino.errors import ConfigError
from cuggino.events import DeliverStreamEvent, DeliverWarning
from cuggino.loops.deliver_interrupt import Interruption
from cuggino.loops.deliver_session import Changes
from cuggino.loops.deliver_setup import read_agent_file, setup_warnings
from cuggino.loops.delivering import Delivery
from cuggino.loops.options import DeliverRunOptions
from cuggino.loops.recording import Recording, concluded
from cuggino.loops.supervising import ledger_of, open_journal, supervision, wait_for_orphans
from cuggino.operators import (
    Flow,
    Ledger,
    QuotaGate,
    ask,
    emit,
    flow,
    forward,
    is_outage,
    on_loop,
)
from cuggino.stages import act, fingerprint_stage, lane
from cuggino.stages.folders import folder_changes
from cuggino.storage import JournalFile, Workspace, run_totals
from cuggino.storage.deliverables import SPEC_FILE, DeliverableStore


class DeliverService:
    """Runs the deliverables loop with an agent and a workspace."""

    def __init__(
        self,
        *,
        agent: LlmAgent,
        workspace: Workspace,
        store: DeliverableStore | None = None,
        gate: QuotaGate | None = None,
        changes: Changes = folder_changes,
        fingerprint: Callable[..., Observable[str]] = fingerprint_stage,
    ) -> None:
        self.agent = agent
        self.workspace = workspace
        self.store = store or DeliverableStore(workspace.root)
        self.gate = gate or QuotaGate()
        self.changes = changes
        self.fingerprint = fingerprint

    def check(self) -> None:
        """Look whether there is something to deliver, and whether its tools can be offered.

        Raises:
            ConfigError: there is no `SPEC.md`, or the MCP library is not installed.
        """
        if not (self.workspace.root / SPEC_FILE).is_file():
            raise ConfigError(
                f"{SPEC_FILE} not found in {self.workspace.root}",
                hint=f"describe what is to be delivered in {SPEC_FILE}, or give --project-dir",
            )
        from importlib.util import find_spec

        if find_spec("mcp") is None:
            raise ConfigError(
                "the deliverable tools need the MCP library, which is not installed",
                hint="pip install 'cuggino[deliver]'",
            )

    def run(
        self,
        options: DeliverRunOptions,
        *,
        interrupt: Observable[object] | None = None,
        resume: JournalFile | None = None,
        ledger: Ledger | None = None,
    ) -> Observable[DeliverStreamEvent]:
        """Run the loop. Cold; each subscription is a run with a lock of its own.

        ::

            DeliverablesListed { DeliverSessionStarted [agent, DeliverableStatusChanged,
              DeliverablesListed] DeliverSessionEnded DeliverablesListed [DeliverSessionRetry] }
            DeliverEnded|

        A `DeliverWarning` takes the place of a `DeliverablesListed` when the status file is broken.

        The first session is told the initializer when there is no status file yet, each further
        one the coding instruction, with `session_pause` between two of them (AUT-032, AUT-120).
        With the workflow `sync` deliverables are compared with the specification and verified.
        When all is passed or blocked at the start no session is started (AUT-040), unless `recheck`
        asks for one; with `verify` what is passed is verified then too.

        `DeliverEnded` is the last event whatever ended the loop (AUT-036). What ends it as an
        error follows it in the error channel: `QuotaExceeded`, `BudgetExceeded`, and what every
        further session would meet too (`AgentNotFound`, `GuardNotLive`, no login). Without it come
        `WorkspaceLocked`, `ConfigError` and `StorageError`: nothing could be begun, or the journal
        not be written. An item of `interrupt`, from any thread and also for those who subscribe
        late (such as a `ReplaySubject`), ends the running session and the loop (`interrupted`);
        disposal does so without a word. All events are delivered on the scheduler given to
        `subscribe`.

        Each run writes its journal; that of an unfinished one can be given as `resume`, with the
        options it was started with: after `RunResumed` it goes on with its first unfinished
        session, whose `DeliverSessionStarted` is told again. `ledger` counts what is spent, if it
        is not for this run alone.
        """
        stop = interrupt if interrupt is not None else never()
        return on_loop(flow(lambda: self._run(options, stop, resume, ledger)))

    def _run(
        self,
        options: DeliverRunOptions,
        interrupt: Observable[object],
        resume: JournalFile | None,
        ledger: Ledger | None,
    ) -> Flow[None]:
        here = yield from ask(lane())
        assert here is not None
        before = self.workspace.owner()
        run_id = resume.run_id if resume else None
        interruption = Interruption()
        with (
            self.workspace.session(
                command=options.command, since=here.now, session_id=run_id
            ) as session,
            interruption.heard(interrupt, here),
        ):
            yield from ask(act(self.workspace.ignore_run_files))
            yield from wait_for_orphans(self.workspace, before)
            spent = ledger or ledger_of(resume)
            # A session whose program failed is followed by another one (AUT-060).
            policies = replace(
                supervision(options, gate=self.gate, ledger=spent), transient=is_outage
            )
            found = yield from ask(act(lambda: read_agent_file(options.cwd, self.workspace)))
            assert found is not None
            file, notes = found
            warnings = (*notes, *setup_warnings(file.settings, options.cwd))
            told = [DeliverWarning(message=warning) for warning in warnings]
            delivery = Delivery(
                self,
                session,
                options,
                policies,
                agent_settings=file.settings,
                interruption=interruption,
                here=here,
                earlier=run_totals(resume).duration if resume else 0.0,
            )
            if not options.journal:
                yield from emit(*told)
                yield from delivery.sessions()
                return
            session.keep = resume is not None and resume.resumable
            journal = open_journal(
                self.workspace, options, session.id, resume, at=here.now, kind="deliver"
            )
            session.keep = True
            kept = Recording(journal, resume)
            with concluded(journal, kept, here, resume):
                if resume is not None:
                    yield from emit(run_totals(resume))
                yield from emit(*told)
                yield from forward(flow(delivery.sessions, recorder=kept))
            session.keep = delivery.is_unfinished
