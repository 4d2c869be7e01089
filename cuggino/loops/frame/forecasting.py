"""The forecast at the start of a run or watch, from the digests of earlier runs."""

from __future__ import annotations

from datetime import datetime

from cuggino.domain import forecast
from cuggino.events import Forecast
from cuggino.loops.frame.options import RunOptions
from cuggino.runs import past_digests
from cuggino.storage import Backlog, Workspace


def forecast_of(
    workspace: Workspace, options: RunOptions, *, run_id: str, now: datetime
) -> Forecast | None:
    """Return the forecast of a run; None while too few earlier runs are comparable.

    Earlier runs that cannot be read are left out, and so is the run `run_id` itself.
    """
    past = (digest.past_run for digest in past_digests(workspace.journal, without=run_id))
    if options.kind != "watch":
        return forecast(past, options.kind)
    made = forecast(past, "item")
    if made is None:
        return None
    backlog = Backlog(workspace)
    items = sum(backlog.may_begin(name, now) for name in backlog.survey().items)
    return made.model_copy(update={"items": items, "slots": options.at_once})
