"""The stages of a run, with those that were cut off and repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import get_args

from cuggino import events as ev
from cuggino.domain import Spending
from cuggino.runs.state.values import Ending, StageKind, StageTry

_SESSIONS = frozenset(get_args(ev.DeliverInstruction))
_SNAPSHOTS = "refs/cuggino/snapshots/"
_AUDIT = "audit"
_KINDS: Mapping[str, StageKind] = MappingProxyType(
    {
        **{kind: kind for kind in get_args(StageKind)},
        "verify-build": "judge",
        "verify-job": "judge",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Every attempt at every stage."""

    tries: tuple[StageTry, ...] = ()
    """In the order of their start; those that run have no cost and no end yet."""
    finished: int = 0
    """Stages that have an outcome."""
    latest: Mapping[str, int] = field(default_factory=dict)
    """The index of each stage's latest attempt."""
    running: Mapping[str, Spending] = field(default_factory=dict)
    """The stages that run, with their spending."""
    session: int | None = None
    """The number of the last session of the deliver loop."""

    def add(self, event: ev.Event, at: datetime, stage: str | None, *, last: datetime) -> Stages:
        """Return the stages after an event; `last` is the time of the one before."""
        match event:
            case ev.StageStarted(name=name):
                return self._begun(stage or name, name, at)
            case ev.StageFinished(outcome=outcome):
                stages = replace(self, finished=self.finished + 1)
                if stage is None or stage not in self.running:
                    return stages
                changed = stages._changed(stage, lambda one: replace(one, outcome=outcome))
                return changed._closed(stage, at, "finished")
            case ev.WatchAuditStarted():
                name = stage or _AUDIT  # another one, not a repetition
                left = {one: index for one, index in self.latest.items() if one != name}
                return replace(self, latest=left)._begun(name, _AUDIT, at)
            case ev.WatchAuditEnded():
                return self._closed(stage or _AUDIT, at, "finished")
            case ev.WatchAuditInterrupted() | ev.WatchAuditFailed():
                return self._closed(stage or _AUDIT, at, "unfinished")
            case ev.DeliverSessionStarted(session=session):
                return replace(self, session=session)
            case ev.RunContinued():
                return self._all_closed(last)
            case ev.RunEnded():
                return self._all_closed(at)
            case ev.SnapshotTaken(ref=ref) if stage is not None and stage in self.running:
                if self.tries[self.latest[stage]].snapshot:
                    return self
                name = ref.removeprefix(_SNAPSHOTS)
                return self._changed(stage, lambda one: replace(one, snapshot=name))
            case _ if stage is not None and stage in self.running:
                before = self.running[stage]
                after = before.add(event)
                if after is before:
                    return self
                return replace(self, running={**self.running, stage: after})
            case _:
                return self

    def place(self, stage: str | None) -> int | None:
        """Return the index of the latest attempt at this stage."""
        return None if stage is None else self.latest.get(stage)

    @property
    def last_tries(self) -> tuple[StageTry, ...]:
        """The last attempt at each stage, in the order in which they first started."""
        return tuple({one.stage: one for one in self.tries}.values())

    def until(self, end: datetime, *, is_running: bool) -> tuple[StageTry, ...]:
        """Return all attempts; those that run end with the run, at `end`."""
        stages = self
        for stage in self.running:
            stages = stages._closed(stage, end, "running" if is_running else "unfinished")
        return stages.tries

    def _begun(self, stage: str, name: str, at: datetime) -> Stages:
        attempt, stages = 1, self
        before = self.latest.get(stage)
        if before is not None:
            attempt = self.tries[before].attempt + 1
            closed = self._closed(stage, at, "repeated")
            stages = closed._changed(stage, lambda one: replace(one, ending="repeated"))
        begun = StageTry(
            stage=stage,
            name=name,
            kind=_KINDS.get(name, "other"),
            start=at,
            end=at,
            ending="running",
            attempt=attempt,
            session=self.session if name in _SESSIONS else None,
        )
        return replace(
            stages,
            tries=(*stages.tries, begun),
            latest={**stages.latest, stage: len(stages.tries)},
            running={**stages.running, stage: Spending()},
        )

    def _changed(self, stage: str, change: Callable[[StageTry], StageTry]) -> Stages:
        """Return the stages with a change of the latest attempt at this one."""
        place = self.latest[stage]
        changed = change(self.tries[place])
        return replace(self, tries=(*self.tries[:place], changed, *self.tries[place + 1 :]))

    def _closed(self, stage: str, at: datetime, ending: Ending) -> Stages:
        spent = self.running.get(stage)
        if spent is None:
            return self
        closed = self._changed(
            stage,
            lambda one: replace(
                one,
                end=max(one.start, at),
                ending=ending,
                cost_usd=spent.cost_usd,
                cost_estimated=spent.cost_estimated,
                usage=spent.usage,
            ),
        )
        running = {one: each for one, each in self.running.items() if one != stage}
        return replace(closed, running=running)

    def _all_closed(self, at: datetime) -> Stages:
        stages = self
        for stage in self.running:
            stages = stages._closed(stage, at, "unfinished")
        return stages
