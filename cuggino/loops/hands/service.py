"""The coding loop with several hands."""

from __future__ import annotations

from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.coding.service import LoopService
from cuggino.loops.frame.run import Run, Story
from cuggino.loops.hands.run import HandsRun
from cuggino.loops.watch.places import PlacesOf, here_of
from cuggino.stages import Services


class HandsService(LoopService):
    """Runs the coding loop; with more than one of the `hands`, several tasks at once.

    ::

        IterationStart PlanningStart [agent] PlanComplete
        HandsStarted {WatchProcessingItem [agent] WatchCandidate} {WatchLanding [check] WatchLanded}
        HandsEnded ReviewingStart [agent] Approved WatchLanding [check] WatchLanded WatchFollowed
        LoopApproved|

    All of it happens in clones of the project. What a reviewer has approved lands on the user's
    branch once, at the end, through the gate. The events of tasks are interleaved, and carry their
    `item`. A plan that is a list is done by one agent after the other. `places` makes the places of
    the tasks; by default they are slots beside the clone of the run.

    Errors besides those of `LoopService`: `ConfigError` without a commit to build on, or if the
    user's branch cannot follow in the end: the run can be resumed then.
    """

    loop_of_tasks: LoopService | None = None
    """The loop for tasks with several attempts; without one, each task has a single attempt."""

    def __init__(self, services: Services, *, places: PlacesOf = here_of) -> None:
        super().__init__(services)
        self._places = places

    def story(self, run: Run, options: LoopRunOptions) -> Story:
        if run.resumed is not None and "hands" not in run.resumed.started.options:
            one = {"hands": 1, "attempts": 1}
            options = options.model_copy(update=one)  # an earlier version began it
        if options.hands == 1:
            return super().story(run, options)
        return HandsRun(run, options, self._places, self.loop_of_tasks)
