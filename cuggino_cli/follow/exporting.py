"""The export of a followed run by OpenTelemetry, and its problems as warnings."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click
from reactivex import Observable

from cuggino import Runtime

if TYPE_CHECKING:
    Operator = Callable[[Observable[Any]], Observable[Any]]


@contextlib.contextmanager
def exporting(runtime: Runtime) -> Iterator[Operator]:
    """Yield the operator that exports a run if `OTEL_*` variables ask for it.

    Without any, it does nothing and loads nothing. What the SDK logs is not printed, as the run
    draws on the terminal; whether something was lost is printed at the end.
    """
    if not any(name.startswith("OTEL_") for name in os.environ):
        yield lambda stream: stream
        return
    log, problems = logging.getLogger("opentelemetry"), list[str]()
    propagate = log.propagate
    log.propagate = False
    log.addHandler(silent := logging.NullHandler())
    try:
        operator = runtime.telemetry(on_problem=problems.append)
        _warn(problems)
        yield operator
    finally:
        log.propagate = propagate
        log.removeHandler(silent)
        _warn(problems)


def _warn(problems: list[str]) -> None:
    """Print the problems so far."""
    with contextlib.suppress(OSError):  # the window was closed
        for problem in problems:
            click.echo(f"cuggino: telemetry: {problem}", err=True)
    problems.clear()
