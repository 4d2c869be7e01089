"""A run for one task of another run's plan."""

from __future__ import annotations

from functools import partial

from cuggino.events import Approved, ImplementingStart, LoopTerminalEvent, SpecIssue
from cuggino.loops.coding.run import CodingRun, Verdict
from cuggino.operators import Flow, ask, emit
from cuggino.stages import act


class TaskRun(CodingRun):
    """A run with an implementing agent alone: the plan is given, and the whole is reviewed later.

    One that was sent back begins with the merge, whose conflicts another agent resolves. One of
    several attempts is checked and reviewed, and goes on until it is approved.
    """

    def _iteration(self, n: int, review: str | None) -> Flow[Verdict | LoopTerminalEvent]:
        options = self._options
        if options.merge is not None:
            ended = yield from self._resolve(n, options.merge)
            if ended is not None or review is None:
                return ended or Approved(content="the conflicts are resolved")
        plan = options.task or ""
        if review is not None:
            plan = f"{plan}\n\n## What came of it before\n\n{review}"
        yield from ask(act(partial(self._session.replace_plan, plan)), name="task")
        if not (n == 1 and self._is_set_up):
            yield from self._setup(n)
        yield from emit(ImplementingStart(iteration=n))
        work = yield from self._implement(n)
        if isinstance(work, SpecIssue):
            return work
        if options.attempt_of is None:
            return Approved(content=work.content)
        standstill = yield from self._convergence.worked(self._fingerprint(), self._trace())
        return standstill or (yield from self._review(n, finished=False))
