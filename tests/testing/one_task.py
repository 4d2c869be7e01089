"""A loop that plans and reviews immediately, shared by the tests of the virtual runtime."""

from __future__ import annotations

from typing import Any

from cuggino.agents.base import Role
from cuggino.events import SessionEnded
from cuggino.testing import AgentRun, Say

HOUR = 3600.0
PLANNED = AgentRun([Say("<PLAN_COMPLETE>One task.</PLAN_COMPLETE>")], plan="# Plan\n\n## Task 1\n")
DONE = [Say("<DONE>The page</DONE>")]
APPROVED = [Say("<APPROVED>Fine.</APPROVED>")]
ENDED = SessionEnded(outcome="completed", cost_usd=0.5)


def runs(*implementing: Any) -> dict[Role, list[Any]]:
    """Return the sessions of the loop, with these for the implementer."""
    return {"planning": [PLANNED], "implementing": list(implementing), "reviewing": [APPROVED]}
