"""What the plan/build loop says in blocks and lines, as plain text (LOP-053, LOP-080, LOP-095)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

LoopPhase: TypeAlias = Literal["PLAN", "BUILD", "VERIFY"]

_PHASE_RULE = "-" * 12
_ITERATION_RULE = "-" * 30


def phase_header(phase: LoopPhase) -> str:
    """The block before a phase begins, its last newline included."""
    return _block(_PHASE_RULE, f"Mode: {phase}")


def iteration_complete(number: int) -> str:
    """The block after an iteration, its last newline included; planning is iteration 1."""
    return _block(_ITERATION_RULE, f"Completed iteration {number}")


def jobs_line(*, still_open: int, done: int, blocked: int = 0) -> str:
    """How many jobs there are; the blocked ones are among those that are open."""
    of_them = f" ({blocked} blocked)" if blocked else ""
    return f"Jobs: {still_open} open{of_them}, {done} done"


def build_verified(*, succeeds: bool, issues: Iterable[str] = ()) -> str:
    """What the verification of the build has come to, with a line for each issue when it failed."""
    if succeeds:
        return "Build verified"
    return "\n".join(["Build verification failed", *(_item(issue) for issue in issues)])


def _block(rule: str, text: str) -> str:
    return f"{rule}\n{text}\n{rule}\n"


def _item(issue: str) -> str:
    return "  - " + issue.strip().replace("\n", "\n    ")
