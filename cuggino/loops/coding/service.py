"""The coding loop: plan, implement, review, until the work matches its specification.

Sources: requirements CUG-001 to CUG-063.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reactivex import Observable

from cuggino.errors import ConfigError
from cuggino.events import LoopEvent
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.coding.run import CodingRun
from cuggino.loops.coding.task import TaskRun
from cuggino.loops.frame.companions import Companion
from cuggino.loops.frame.control import Control
from cuggino.loops.frame.framing import Frame, framed
from cuggino.loops.frame.run import Run, Story
from cuggino.operators import StateRef
from cuggino.operators.supervision import Ledger
from cuggino.stages import Services, check_prompts
from cuggino.storage import JournalFile

if TYPE_CHECKING:
    from cuggino.loops.watch.placement import Placement


class LoopService:
    """Runs the coding loop."""

    def __init__(self, services: Services) -> None:
        self.services = services

    def story(self, run: Run, options: LoopRunOptions) -> Story:
        """Return the course of a run."""
        if options.hands > 1:
            raise ConfigError("several hands need `HandsService`, or `Runtime.run`")
        return (CodingRun if options.task is None else TaskRun)(run, options)

    def at(self, services: Services) -> LoopService:
        """Return the loop for the items of a slot, whose services these are."""
        return LoopService(services)

    def attempts_in(self, placement: Placement) -> LoopService | None:
        """Return the loop whose several attempts have these places; None if it has only one."""
        return None

    def check(self) -> None:
        """Check the prompts of all roles (`check_prompts`)."""
        check_prompts(self.services.prompts)

    def run(
        self,
        options: LoopRunOptions,
        *,
        interrupt: Observable[object] | None = None,
        resume: JournalFile | None = None,
        ledger: Ledger | None = None,
        branch: StateRef[str | None] | None = None,
        control: Control | None = None,
        companions: Sequence[Companion] = (),
    ) -> Observable[LoopEvent]:
        """Run the loop. Cold; each subscription is a run, with its own session and lock.

        ::

            [setup] [check Baseline]
            IterationStart PlanningStart [agent] PlanComplete [setup]
              { ImplementingStart [check] [agent] Progress|Done
                [CommitPerformed [PushPerformed]] }
            ReviewingStart [GateChanged] {check} [agent] Approved [CheckVerdict] LoopApproved|

            setup: SetupCommandStarted SetupCommandOutput
            check: CheckCommandStarted CheckCommandOutput

        `SandboxChosen` comes first where an agent can be confined, then `CheckCannotFail` and
        `CheckDoesNotDecide` where they apply. Setup before the baseline is not repeated after the
        first plan; a check is repeated where its tests or scripts have changed. In a git repository
        `SnapshotTaken` precedes the events of each agent.

        Ends with a `LoopTerminalEvent`, or with an error: `LoopError` when an agent failed,
        `BudgetExceeded`, `WorkspaceLocked`, `StorageError`, `WorkNotCommitted`.
        Disposal ends the running agent or command and frees the workspace before it returns; an
        item of `interrupt`, from any thread and also for late subscribers, does so too and fails
        with `Interrupted`. All events are delivered on the scheduler given to `subscribe`.

        Each run writes its journal; that of an unfinished one can be given as `resume`, with the
        options it was started with: the run is resumed at its first unfinished stage, after
        `RunResumed`. The session files are kept for that; those of a finished run are removed.
        Pass `ledger` to share the costs with other runs, `branch` to share which branch was seen
        last, and `control` to share the commands; by default the run follows the commands of the
        services. `companions` see all events and add their own.
        """
        frame = Frame(
            interrupt=interrupt,
            resume=resume,
            ledger=ledger,
            control=control,
            branch=branch,
            companions=companions,
        )
        return self.framed(options, frame)

    def framed(self, options: LoopRunOptions, frame: Frame) -> Observable[LoopEvent]:
        """Return the run within its frame."""
        return framed(self.services, options, lambda run: self.story(run, options), frame)
