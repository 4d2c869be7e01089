"""The end of a run that reports its reason as an event."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cuggino.errors import BudgetExceeded, CugginoError, Interrupted, QuotaExceeded
from cuggino.events import DeliverExit, PlanBuildExit
from cuggino.operators import Flow

Exit = TypeVar("Exit", DeliverExit, PlanBuildExit)


def run_to_its_end(
    story: Flow[tuple[Exit, str]], end: Callable[[Exit, str], Flow[None]]
) -> Flow[None]:
    """Run the story and report its end exactly once (AUT-036): the reason, and its cause or "".

    An interruption is a regular end; every other error is raised again after it.
    """
    try:
        yield from end(*(yield from story))
    except Interrupted:
        yield from end("interrupted", "")
    except QuotaExceeded as error:
        yield from end("quota_exceeded", error.message)
        raise
    except BudgetExceeded as error:
        yield from end("budget_exceeded", error.message)
        raise
    except Exception as error:
        told = error.message if isinstance(error, CugginoError) else str(error)
        yield from end("failed", told or type(error).__name__)
        raise
