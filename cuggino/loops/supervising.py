"""The policies of a run, from its settings; what comes before its first stage."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

from cuggino.agents.protocol import LlmAgent, ResumingAgent
from cuggino.config import LoopSettings
from cuggino.domain.fallback import set_aside
from cuggino.domain.spending import Budget, Spending
from cuggino.errors import (
    BudgetExceeded,
    CugginoError,
    LoopError,
    QuotaExceeded,
    ReplayDiverged,
    RunNotResumable,
    WorkspaceLocked,
)
from cuggino.events import RunStarted
from cuggino.loops.options import (
    DeliverRunOptions,
    LoopRunOptions,
    PacedSettings,
    PlanBuildOptions,
)
from cuggino.operators import Flow, Ledger, QuotaGate, ask
from cuggino.stages import Supervision, orphans_gone
from cuggino.storage import (
    Journal,
    JournalFile,
    LockOwner,
    Workspace,
    has_ended,
    prune,
    run_totals,
)


def supervision(settings: PacedSettings, *, gate: QuotaGate, ledger: Ledger) -> Supervision:
    """The policies by the settings; `gate` and `ledger` are those that the agents share."""
    return Supervision(
        max_retries=settings.max_retries,
        retry_pause=settings.retry_pause,
        wait_for_quota=settings.wait_for_quota,
        quota_margin=settings.quota_margin,
        idle_timeout=settings.idle_timeout,
        tool_timeout=settings.tool_timeout,
        stage_timeout=settings.stage_timeout,
        budget=Budget(
            cost_usd=settings.budget,
            tokens=settings.max_tokens,
            duration=settings.max_duration,
        ),
        ledger=ledger,
        gate=gate,
    )


def take_up_agents(agent: LlmAgent, resume: JournalFile | None, now: datetime) -> None:
    """Who was set aside in a run that goes on stays so for the rest of its time."""
    if resume is not None and isinstance(agent, ResumingAgent):
        agent.set_aside(set_aside(((entry.at, entry.event) for entry in resume.entries), now))


def ledger_of(resume: JournalFile | None) -> Ledger:
    """What the earlier processes of a run spent; an empty one for a new run."""
    if resume is None:
        return Ledger()
    totals = run_totals(resume)
    return Ledger(spent=Spending().add(totals), elapsed=totals.duration)


def is_spent(error: CugginoError) -> bool:
    """Whether a budget is spent, so that no other agent can work either."""
    cause = error.cause if isinstance(error, LoopError) else error
    return isinstance(cause, BudgetExceeded)


def is_diverged(error: CugginoError) -> bool:
    """Whether a replay is not what was recorded; what comes after it cannot be either."""
    cause = error.cause if isinstance(error, LoopError) else error
    return isinstance(cause, ReplayDiverged)


def lifted_at(
    error: CugginoError | None, gate: QuotaGate, now: datetime, margin: float
) -> datetime | None:
    """When the usage limit is lifted that the error tells, and `margin` seconds; None if unsaid.

    A gate that is closed knows better: `resets 3pm`, told again just after 3 pm, is not tomorrow.
    """
    if not isinstance(error, QuotaExceeded):
        return None
    lifted = gate.resets_at if gate.remaining(now) > 0 else error.resets_at
    if lifted is None or lifted <= now:
        return None
    return lifted + timedelta(seconds=margin)


def open_journal(
    workspace: Workspace,
    options: LoopRunOptions | DeliverRunOptions | PlanBuildOptions,
    run_id: str,
    resume: JournalFile | None,
    *,
    at: datetime,
    kind: Literal["run", "deliver", "loop"] = "run",
) -> Journal:
    """The journal of a run: a new one, or that of the run that goes on. Old ones are removed.

    Raises:
        StorageError: it cannot be written.
        RunNotResumable: it has ended, or another process has gone on with it since it was read.
    """
    forget_old_runs(workspace, options, keep=run_id, at=at)
    if resume is not None:
        if not resume.resumable:
            raise RunNotResumable(f"run {run_id} has ended ({resume.state.replace('_', ' ')})")
        journal = Journal.open(workspace.journal / f"{run_id}.jsonl")
        if journal.seq != resume.entries[-1].seq:
            journal.close()
            raise RunNotResumable(
                f"another process has just gone on with run {run_id}", hint="see `cuggino runs`"
            )
        return journal
    kept = options.model_dump(mode="json", exclude={"cwd", "focus", "agent", "command", "item"})
    started = RunStarted(
        run_id=run_id,
        kind=kind,
        command=options.command,
        focus=options.focus if isinstance(options, LoopRunOptions) else "",
        item=options.item if isinstance(options, LoopRunOptions) else None,
        agent=options.agent,
        options=kept,
    )
    return Journal.create(workspace.journal, started, at=at)


def forget_old_runs(
    workspace: Workspace, settings: LoopSettings, *, keep: str, at: datetime
) -> None:
    """Remove the journals that are too old or too many, and the session files of ended runs.

    These are left when a process is killed in its first or its last instants, or has no journal.
    Only who holds the workspace may do this.
    """
    prune(
        workspace.journal,
        now=at if at.tzinfo else at.replace(tzinfo=UTC),
        days=settings.journal_days,
        runs=settings.journal_runs,
        keep={keep},
    )
    for session in workspace.sessions():
        if session != keep and has_ended(workspace.journal / f"{session}.jsonl"):
            workspace.remove_session(session)


def wait_for_orphans(workspace: Workspace, before: LockOwner | None) -> Flow[None]:
    """Wait until nothing of a killed process works in the folder any longer.

    Raises:
        WorkspaceLocked: something still does after half a minute.
    """
    if before is None:
        return
    # Also of those before it: it may have been killed while it waited itself.
    for pid in (*before.killed, before.pid):
        if pid is not None and not (yield from ask(orphans_gone(pid), name="orphans")):
            raise WorkspaceLocked(
                str(workspace.folder), pid, since=before.since, command=before.command
            )
