"""Scenarios of the scripted agent for whole runs, one table of an agent at a time."""

from __future__ import annotations

import json

PLANS = """
[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan"
[[planning.steps]]
say = "<PLAN_COMPLETE>one task</PLAN_COMPLETE>"
"""


def implements(path: str = "", text: str = "", *, said: str = "<DONE>Say hello</DONE>") -> str:
    """Return an implementing agent that writes `path`, if given, and outputs `said`."""
    written = _step("implementing", write=path, text=text) if path else ""
    return f"\n[[implementing]]{written}{_step('implementing', say=said)}"


def reviews(said: str) -> str:
    """Return a reviewing agent that outputs `said`."""
    return f"\n[[reviewing]]{_step('reviewing', say=said)}"


def _step(role: str, **fields: str) -> str:
    rows = "".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items())
    return f"\n[[{role}.steps]]\n{rows}"


APPROVES = reviews("<APPROVED>fine</APPROVED>")
