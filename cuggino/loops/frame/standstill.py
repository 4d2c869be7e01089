"""Sessions in a row that fail, or that change nothing: what ends a loop before its work is done."""

from __future__ import annotations

from typing import Literal, NamedTuple

from cuggino.domain import ProgressWatch
from cuggino.events import DeliverSessionEnded, NoProgress, PlanBuildSessionEnded
from cuggino.loops.frame.session import is_failure


class Failures(NamedTuple):
    """Failed sessions in a row."""

    times: int = 0
    message: str = ""
    """The message of the latest one; "" without any."""

    def after(self, ended: DeliverSessionEnded | PlanBuildSessionEnded) -> Failures:
        """Return the failures after another session."""
        if not is_failure(ended.outcome):
            return Failures()
        return Failures(self.times + 1, ended.message or "Unknown error")


def progress_watch(patience: int | None) -> ProgressWatch | None:
    """Return a detector with this patience; None if it is turned off."""
    return ProgressWatch(patience) if patience else None


def standstill(
    progress: ProgressWatch, *, action: Literal["replan", "stop"] = "stop"
) -> NoProgress | None:
    """Return the standstill after the latest agent, or None."""
    if progress.standstill is None:
        return None
    return NoProgress(kind=progress.standstill, agents=progress.agents, action=action)


def described(found: NoProgress, agents: str) -> str:
    """Return the standstill in words; `agents` names what was counted, such as "sessions"."""
    how = "changed nothing" if found.kind == "unchanged" else "came back to the same state"
    return f"{found.agents} {agents} in a row {how}"
