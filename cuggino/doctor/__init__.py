"""Checks that a run can work in a project, and an inspection of the installed agents.

    cuggino.run(doctor("my-project"), lambda result: print(result.status, result.what))

Nothing is changed. Every result comes as soon as its check is done.
"""

from cuggino._lazy import lazy

NAMES = {
    "agents": "AgentReport AgentState inspect_agents",
    "machine": "check_machine",
    "project": "doctor",
    "result": "CheckResult CheckStatus",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
