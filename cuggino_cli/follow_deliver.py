"""Following a deliverables run to its end: its lines, and the exit code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cuggino_cli import following
from cuggino_cli.follow import INTERRUPTED, OutputOptions

if TYPE_CHECKING:
    from reactivex import Observable

    from cuggino.errors import CugginoError
    from cuggino.events import DeliverExit, DeliverStreamEvent
    from cuggino_cli.output.deliver_screen import Wording

EXIT_CODES: Mapping[DeliverExit, int] = {
    "all_passed": 0,
    "all_verified": 0,
    "max_iterations": 11,
    "quota_exceeded": 12,
    "budget_exceeded": 13,
    "stalled": 14,
    "max_retries_exceeded": 14,
    "all_blocked": 15,
    "interrupted": INTERRUPTED,
    "failed": 1,
}
"""Exit codes by why the loop ended; that of `failed` is the error's, where there is one."""

COMPATIBLE: frozenset[DeliverExit] = frozenset(
    {"all_passed", "all_verified", "interrupted", "max_iterations"}
)
"""The ends that are 0 with `--compat-exit-codes`, as Autonoe has it; all else is 1 (AUT-244)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How a run is followed."""

    output: OutputOptions
    wording: Wording
    """What is shown of it."""
    debug: bool = False
    compat: bool = False
    """End with Autonoe's exit codes."""
    go_on: str = ""
    """What goes on with the run when it was cut off; empty when nothing does."""


def follow_deliver(
    start: Callable[[Observable[object]], Observable[DeliverStreamEvent]], ways: Ways
) -> int:
    """Follow the run, as `follow_run` does; gives the exit code."""
    from cuggino.events import DeliverEnded
    from cuggino_cli.output.deliver_screen import with_deliver_output

    return following.follow_run(
        start,
        following.Ways(
            output=ways.output,
            quietly=ways.output.quiet or ways.debug,
            shown=lambda terminal: with_deliver_output(terminal, ways.wording),
            last=DeliverEnded,
            exit_code=lambda end, error: exit_code(end.reason, error, compat=ways.compat),
            go_on=ways.go_on,
        ),
    )


def exit_code(
    reason: DeliverExit, error: CugginoError | None = None, *, compat: bool = False
) -> int:
    """What a command ends with whose loop ended so."""
    if compat:
        return 0 if reason in COMPATIBLE else 1
    if reason == "failed" and error is not None:
        return error.code
    return EXIT_CODES[reason]
