"""What every run of sessions without markers has: a lock, policies, a journal, an interruption."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeVar

from reactivex import Observable, abc, never

from cuggino.agents.protocol import LlmAgent
from cuggino.errors import BudgetExceeded, CugginoError, QuotaExceeded
from cuggino.events import DeliverExit, PlanBuildExit
from cuggino.loops.deliver_interrupt import Interrupted, Interruption
from cuggino.loops.options import DeliverRunOptions, PlanBuildOptions
from cuggino.loops.recording import Recording, concluded
from cuggino.loops.supervising import (
    ledger_of,
    open_journal,
    supervision,
    take_up_agents,
    wait_for_orphans,
)
from cuggino.operators import Flow, Ledger, QuotaGate, ask, emit, flow, forward, is_outage
from cuggino.stages import Supervision, lane
from cuggino.storage import JournalFile, Session, Workspace, run_totals

Exit = TypeVar("Exit", DeliverExit, PlanBuildExit)

RESUMABLE: frozenset[DeliverExit | PlanBuildExit] = frozenset(
    {"interrupted", "quota_exceeded", "budget_exceeded", "failed"}
)
"""The ends from which another process could go on with the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a run is made with, once the workspace is its own."""

    session: Session
    policies: Supervision
    interruption: Interruption
    here: abc.SchedulerBase
    earlier: float
    """Seconds that earlier processes worked on the run."""


class Story(Protocol):
    """A run that was made."""

    is_unfinished: bool
    """Whether another process could go on with it; known at its end."""

    def notices(self) -> Flow[None]:
        """What is told in each process before it begins, and not journaled twice."""

    def tell(self) -> Flow[None]:
        """The run itself, made of stages."""


def told_to_its_end(story: Flow[Exit], end: Callable[[Exit, str], Flow[None]]) -> Flow[None]:
    """The run, and how it ended: `end` is told once, whatever that was (AUT-036).

    An interruption is an end like others; every other error is raised again behind it.
    """
    try:
        yield from end((yield from story), "")
    except Interrupted:
        yield from end("interrupted", "")
    except QuotaExceeded as error:
        yield from end("quota_exceeded", error.message)
        raise
    except BudgetExceeded as error:
        yield from end("budget_exceeded", error.message)
        raise
    except Exception as error:
        told = error.message if isinstance(error, CugginoError) else str(error)
        yield from end("failed", told or type(error).__name__)
        raise


def durable_run(
    workspace: Workspace,
    agent: LlmAgent,
    options: DeliverRunOptions | PlanBuildOptions,
    make: Callable[[Held], Flow[Story]],
    *,
    kind: Literal["deliver", "loop"],
    gate: QuotaGate,
    interrupt: Observable[object] | None,
    resume: JournalFile | None,
    ledger: Ledger | None,
) -> Flow[None]:
    """Hold the workspace, make the run, and write down what it does, if that is wanted.

    With `resume` it goes on with that run, after `RunResumed`. Its session files stay as long as
    another process could go on with it.
    """
    here = yield from ask(lane())
    assert here is not None
    before = workspace.owner()
    run_id = resume.run_id if resume else None
    interruption = Interruption()
    with (
        workspace.session(command=options.command, since=here.now, session_id=run_id) as session,
        interruption.heard(interrupt if interrupt is not None else never(), here),
    ):
        yield from wait_for_orphans(workspace, before)
        take_up_agents(agent, resume, here.now)
        spent = ledger or ledger_of(resume)
        # A session whose program failed is followed by another one (AUT-060, LOP-064), in which the
        # next agent works, if there is one.
        policies = replace(supervision(options, gate=gate, ledger=spent), transient=is_outage)
        story = yield from make(
            Held(
                session=session,
                policies=policies,
                interruption=interruption,
                here=here,
                earlier=run_totals(resume).duration if resume else 0.0,
            )
        )
        if not options.journal:
            yield from story.notices()
            yield from story.tell()
            return
        session.keep = resume is not None and resume.resumable
        journal = open_journal(workspace, options, session.id, resume, at=here.now, kind=kind)
        session.keep = True
        kept = Recording(journal, resume)
        with concluded(journal, kept, here, resume):
            if resume is not None:
                yield from emit(run_totals(resume))
            yield from story.notices()
            yield from forward(flow(story.tell, recorder=kept))
        session.keep = story.is_unfinished
