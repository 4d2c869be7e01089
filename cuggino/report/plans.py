"""The plans of a run, with the tasks that are done."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from cuggino.domain import task_titles
from cuggino.events import CommitPerformed, PlanWritten, StageFinished, StageStarted
from cuggino.report.cutting import cut
from cuggino.report.model import Plan, PlanTask
from cuggino.storage.journal import Entry

_LONGEST: Final = 20_000


class Plans:
    """The plans of a run; each agent that ends with `Progress` or `Done` finishes a task."""

    def __init__(self) -> None:
        self._plans: list[Plan] = []
        self._working: str | None = None
        """The implementing stage at work."""

    def add(self, entry: Entry) -> None:
        match entry.event:
            case PlanWritten(iteration=iteration, text=text):
                tasks = tuple(PlanTask(title=title or f"Task {n}") for n, title in _counted(text))
                plan = Plan(iteration=iteration, at=entry.at, text=cut(text, _LONGEST), tasks=tasks)
                # A planning stage that was cut off and repeated writes its plan again.
                last = self._plans[-1] if self._plans else None
                if last is None or (last.iteration, last.text) != (iteration, plan.text):
                    self._plans.append(plan)
            case StageStarted(name="implementing"):
                self._working = entry.stage
            case StageFinished(outcome={"_tag": "Progress" | "Done" as tag}):
                self._finish(entry.stage, is_last=tag == "Done")
            case StageFinished() if entry.stage == self._working:
                self._working = None
            case CommitPerformed(commit_hash=commit):
                self._commit(commit)
            case _:
                pass

    def _finish(self, stage: str | None, *, is_last: bool) -> None:
        self._working = None
        if not self._plans:
            return
        plan = self._plans[-1]
        left = [place for place, task in enumerate(plan.tasks) if not task.is_done]
        done = set(left if is_last else left[:1])
        tasks = tuple(
            replace(task, is_done=True, stage=stage) if place in done else task
            for place, task in enumerate(plan.tasks)
        )
        self._plans[-1] = replace(plan, tasks=tasks, finished=plan.finished + 1)

    def _commit(self, commit: str) -> None:
        """Record the commit of the task finished last."""
        if not self._plans:
            return
        plan = self._plans[-1]
        done = [place for place, task in enumerate(plan.tasks) if task.is_done]
        if done and plan.tasks[done[-1]].commit is None:
            task = replace(plan.tasks[done[-1]], commit=commit)
            tasks = (*plan.tasks[: done[-1]], task, *plan.tasks[done[-1] + 1 :])
            self._plans[-1] = replace(plan, tasks=tasks)

    def result(self) -> tuple[Plan, ...]:
        """Return the plans in order; the task at work is marked in the last."""
        if not self._plans or self._working is None:
            return tuple(self._plans)
        plan = self._plans[-1]
        place = next((n for n, task in enumerate(plan.tasks) if not task.is_done), None)
        if place is None:
            return tuple(self._plans)
        task = replace(plan.tasks[place], is_at_work=True, stage=self._working)
        tasks = (*plan.tasks[:place], task, *plan.tasks[place + 1 :])
        return (*self._plans[:-1], replace(plan, tasks=tasks))


def _counted(text: str) -> list[tuple[int, str]]:
    return list(enumerate(task_titles(text), start=1))
