"""`flake_stage`: a check that failed and passes on the same files is reported and counted."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from reactivex import Observable

from cuggino.errors import StorageError
from cuggino.events import CheckFlaky
from cuggino.gate import CheckResult, add_flake
from cuggino.operators import Flow, ask, emit, flow
from cuggino.stages.acts import clock

_SHOWN = 4_000
"""Characters of the output that the event shows."""


def flake_stage(
    output: str,
    *,
    command: str,
    exit_code: int | None = 1,
    ledger: Path | None = None,
    iteration: int = 1,
) -> Observable[CheckFlaky]:
    """Emit `CheckFlaky` for a check that failed with this output, and passed when repeated.

    Its tests are counted in the `ledger` (`Workspace.flakes`); the `command` is, if the output
    names none. A ledger that cannot be written counts nothing.
    """

    def run() -> Flow[None]:
        tests = CheckResult.of(exit_code, output).failing
        now = yield from ask(clock())
        times = 1
        if ledger is not None and now is not None:
            with suppress(StorageError):
                times = add_flake(ledger, tests or (command,), now=now)
        yield from emit(
            CheckFlaky(iteration=iteration, tests=tests, times=times, output=output[-_SHOWN:])
        )

    return flow(run)
