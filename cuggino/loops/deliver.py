"""The deliverables loop: sessions with a fresh context each, until every deliverable has passed.

Sources: requirements AUT-020 to AUT-064, AUT-120, AUT-270.
"""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable

from cuggino.agents.protocol import LlmAgent, own_files_of
from cuggino.errors import ConfigError
from cuggino.events import DeliverStreamEvent
from cuggino.loops.deliver_session import Changes
from cuggino.loops.deliver_setup import look_at_agent_file, setup_warnings
from cuggino.loops.delivering import Delivery
from cuggino.loops.durable import Held, Story, durable_run
from cuggino.loops.options import DeliverRunOptions
from cuggino.operators import (
    Flow,
    Ledger,
    QuotaGate,
    ask,
    flow,
    on_loop,
)
from cuggino.stages import act, apart_from, fingerprint_stage
from cuggino.stages.folders import folder_changes
from cuggino.storage import JournalFile, Workspace
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
        self.fingerprint = apart_from(own_files_of(agent), fingerprint)

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

        def make(held: Held) -> Flow[Story]:
            found = yield from ask(act(lambda: look_at_agent_file(options.cwd, self.workspace)))
            assert found is not None
            file, notes = found
            warnings = (*notes, *setup_warnings(file.settings, options.cwd))
            return Delivery(self, held, options, agent_settings=file.settings, warnings=warnings)

        return on_loop(
            flow(
                lambda: durable_run(
                    self.workspace,
                    self.agent,
                    options,
                    make,
                    kind="deliver",
                    gate=self.gate,
                    interrupt=interrupt,
                    resume=resume,
                    ledger=ledger,
                )
            )
        )
