"""A run that holds the workspace, and the course that a loop takes in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from reactivex import Observable, abc, empty, just, throw, timer

from cuggino.agents.base import Role, SpawnOptions
from cuggino.domain import (
    APPROVE,
    Decision,
    approval_question,
    approval_text,
    is_covered,
    money,
    parse_duration,
    reached_sum,
)
from cuggino.errors import BudgetExceeded
from cuggino.events import (
    BranchChanged,
    DeliverSessionEnded,
    Event,
    PersonAnswers,
    PlanBuildSessionEnded,
    RunResumed,
    Waiting,
    WaitingEnded,
    WaitingRefused,
    WaitingStarted,
)
from cuggino.git import current_branch
from cuggino.loops.frame.commands import Commands
from cuggino.loops.frame.control import Control
from cuggino.loops.frame.interruption import Interruption
from cuggino.loops.frame.options import RunOptions
from cuggino.operators import Flow, StateRef, ask, emit, forward, within_budget
from cuggino.sandbox import writes_project
from cuggino.stages import (
    Services,
    Supervision,
    Waited,
    WaitingPlace,
    Workplace,
    act,
    boundary_for,
    clock,
    snapshot_stage,
    waiting,
    waiting_asked,
    waiting_in,
    with_first_instructions,
)
from cuggino.storage import JournalFile, Session, Workspace

_COURSE = ("plan", "landing")
"""The approvals that are not about a sum."""
MOST_WAITS, _REFUSAL = 20, 7
"""Waits of a session; then it has to end in another way. A refused one counts as several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that holds the workspace."""

    services: Services
    options: RunOptions
    session: Session
    """The files of the run; those of a watch are never created."""
    supervision: Supervision
    interruption: Interruption
    control: Control
    lane: abc.SchedulerBase
    began: datetime
    resumed: JournalFile | None
    """The journal of the earlier processes of a resumed run."""
    earlier: RunResumed | None = None
    """The totals of these processes."""
    branch: StateRef[str | None] = field(default_factory=lambda: StateRef(None))
    """The branch that was last seen checked out."""
    turns: Counter[Role] = field(default_factory=Counter)
    """The sessions of each role so far, in all its processes."""
    waits: Counter[Role] = field(default_factory=Counter)
    """The waits of each role's current session, as `MOST_WAITS` counts them."""

    def next_turn(self, role: Role) -> int:
        """Count another session of the role, outside of its stage, and return its number."""
        self.turns[role] += 1
        return self.turns[role]

    def since(self, began: datetime) -> float:
        """Return the seconds since then, on the lane of the run."""
        return max(0.0, (self.lane.now - began).total_seconds())

    @property
    def seconds(self) -> float:
        """The duration of the run in all its processes."""
        earlier = self.earlier.duration if self.earlier else 0.0
        return earlier + self.since(self.began)

    @property
    def place(self) -> Workplace:
        """What the stages of the run share; each agent begins as `begin_session` says."""
        return Workplace(
            services=self.services,
            options=self.options,
            session=self.session,
            supervision=self.supervision,
            begin=self.begin_session,
        )

    @property
    def cost_usd(self) -> float:
        """The cost of the run so far, as far as it is known."""
        return self.supervision.ledger.spent.cost_usd or 0.0

    @property
    def cost_estimated(self) -> bool:
        """True if a part of the cost is an estimate."""
        return self.supervision.ledger.spent.cost_estimated

    def unless_interrupted(self) -> Flow[None]:
        """Continue unless interrupted; a stage, so that a resumed run asks again.

        Raises:
            Interrupted: a person has interrupted the run.
        """
        yield from ask(self.interruption.ending(just(None)), name="interrupt")

    def within_budget(self) -> Flow[None]:
        """Check the budget before a session begins; within one, the session would count.

        Raises:
            BudgetExceeded: nothing is left, or a person rejects that more is spent.
        """
        nothing: Observable[Event] = empty()
        budget = within_budget(self.supervision.budget, ledger=self.supervision.ledger)
        yield from forward(nothing.pipe(budget), name="budget")
        yield from self.spending_approved()

    def begin_session(self, options: SpawnOptions) -> Flow[SpawnOptions]:
        """Pause if a person has asked for it, save the project, and add pending messages.

        A branch that somebody has checked out meanwhile is reported first.

        Returns the options of the session.

        Raises:
            Interrupted: a person has stopped the run.
            WorkspaceLocked: the lock was removed, and another process has taken it.
        """
        yield from self.control.stand_still()
        self.services.workspace.keep_lock()
        yield from self.branch_seen()
        if self.services.save is not None:
            yield from ask(self.interruption.ending(self.services.save()))
        if options.role is not None:
            yield from self.snapshot(options.role, options.turn)
        if self.options.kind != "watch":  # whose audit sees what was approved
            options = with_first_instructions(options, self.session.instructions)
        return (yield from self.control.told(options))

    def branch_seen(self) -> Flow[None]:
        """Emit `BranchChanged` if another branch is checked out by now, which gets the commits."""
        before, after = self.branch.value, current_branch(self.options.cwd)
        if before != after:
            self.branch.set(after)
            yield from emit(BranchChanged(before=before, after=after))

    def snapshot(self, role: Role, turn: int | None = None) -> Flow[None]:
        """Keep the project as it is before a session whose role may change it.

        So also before the first session of a coding run, as commands of the run may change it too.
        """
        if not writes_project(role) and (role, turn) != ("planning", 1):
            return
        stage = role if turn is None else f"{role}-{turn}"
        taken = snapshot_stage(self.place, stage)
        yield from forward(self.interruption.ending(taken), name="snapshot")

    def pause(self, seconds: float) -> Flow[None]:
        """Wait between two sessions, unless interrupted."""
        if seconds > 0:
            yield from ask(self.interruption.ending(timer(seconds)), name="pause")

    def waited(self, content: str, role: Role) -> Flow[WaitingEnded | WaitingRefused]:
        """Wait for what an agent of the role asks for in `<WAITING>`, and return the result.

        The run keeps the workspace meanwhile, as one that is paused does. An interruption, a stop
        and the limit on its time end the wait with the run, which can be resumed.
        """
        options = self.options
        boundary = boundary_for(options, role, self.services.agent)
        place = replace(self._waiting_place, numbers_processes=boundary.engine != "bubblewrap")
        result = yield from waiting_asked(content, place, longest=options.max_wait)
        self.waits[role] += _REFUSAL if isinstance(result, WaitingRefused) else 1
        return result

    @property
    def _waiting_place(self) -> WaitingPlace:
        return WaitingPlace(
            folder=self.options.cwd,
            workspace=self.services.workspace,
            ci=self.services.ci,
            changes=self.services.changes,
            around=lambda wait: self.interruption.ending(self.supervision.in_time(wait)),
            is_confined=True,
        )

    def decision(
        self,
        kind: str,
        text: str,
        *,
        about: str = "",
        issue: str = "",
        begun: WaitingStarted | None = None,
    ) -> Flow[Decision]:
        """Wait until a person approves or rejects this, or until the deadline; durable."""
        options = self.options
        within = parse_duration(options.approve_within) if options.approve_within else None
        until = PersonAnswers(
            question=approval_question(kind, about, text),
            approves=kind,
            issue=issue,
            within=within,
            default=APPROVE if options.approve_else == "approve" else "",
        )
        return Decision.of((yield from waiting(until, self._waiting_place, begun=begun)))

    def spending_approved(self) -> Flow[None]:
        """Wait for approval before an agent if a sum of `approve` is spent.

        All items of a watch share the question, and an approval of a sum is one of smaller ones. A
        run that is resumed after a rejection asks again.

        Raises:
            BudgetExceeded: a person has rejected it, or has not answered in time.
        """
        ledger, kinds = self.supervision.ledger, self.options.approve

        def reached() -> str:
            kind = reached_sum(kinds, ledger.spent.cost_usd or 0.0)
            return "" if is_covered(kind, ledger.approved) else kind

        while any(kind not in _COURSE for kind in kinds):
            kind = yield from ask(act(reached), name="spent")
            if not kind:
                return
            shared = partial(ledger.asked.setdefault, kind, Workspace.new_approval())
            issue = yield from ask(act(shared), name="asked")
            assert issue is not None
            ledger.asked[kind] = issue  # also of a run that is resumed
            spent = money(self.cost_usd, estimated=self.cost_estimated)
            decision = yield from self.decision(kind, f"Spent so far: {spent}.", issue=issue)
            now = yield from ask(clock(), name="now")
            assert now is not None
            ledger.asked.pop(kind, None)
            if decision.outcome == "approved":
                ledger.approved.add(kind)
                return
            if now > self.began:  # else it was decided in an earlier process
                why = "no one approved" if decision.outcome == "expired" else "you rejected"
                words = f": {decision.text}" if decision.text else ""
                refused: Observable[object] = throw(
                    BudgetExceeded(f"{why} {approval_text(kind)}{words}")
                )
                yield from ask(refused, name="refused")

    def may_wait(self, role: Role) -> bool:
        """Return whether the role's session may wait again."""
        return self.waits[role] < MOST_WAITS

    def resumed_after(
        self, ended: DeliverSessionEnded | PlanBuildSessionEnded, role: Role
    ) -> Flow[Waited | None]:
        """Wait for what the session asks for with its last words, if it does.

        Returns the session to resume; None if it is over.
        """
        content = waiting_in(ended.message) if ended.outcome == "completed" else None
        if content is None or not self.may_wait(role):
            self.waits[role] = 0
            return None
        result = yield from self.waited(content, role)
        known = ended.session_id if self.services.agent.capabilities.resume else None
        marker = Waiting(content=content, session_id=known, words=ended.message)
        return Waited(marker, result)

    def project_state(self, cwd: Path, *, exclude: tuple[Path, ...]) -> Flow[str]:
        """Return the fingerprint of the project."""
        state = self.services.project_state(cwd, exclude=exclude)
        return (yield from ask(self.interruption.ending(state), name="fingerprint")) or ""


class Story(ABC):
    """The course of a run, made of stages."""

    reports_interruption = False
    """True if an interruption is a result of the story; otherwise the story is disposed, and the
    run fails with `Interrupted`."""
    is_resumable = True
    """True if another process can resume the run; final at its end."""
    commands: Commands | None = None
    """Hands out a person's commands; by default, all are for the run."""

    def held(self) -> Flow[AbstractContextManager[object]]:
        """Return what the run holds beside the workspace; by default nothing."""
        yield from ()
        return nullcontext()

    def opening(self) -> Flow[None]:
        """Emit what every process of the run repeats; it is not journaled as part of the story."""
        yield from ()

    @abstractmethod
    def run(self) -> Flow[None]:
        """Run the stages. A resumed run replays the outcomes of those that have finished."""
