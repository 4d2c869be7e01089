"""Checks that a run can work in a project, and an inspection of the installed agents.

    cuggino.run(doctor("my-project"), lambda result: print(result.status, result.what))

Nothing is changed. Every result comes as soon as its check is done.
"""

from cuggino.doctor.agents import AgentReport, AgentState, inspect_agents
from cuggino.doctor.checks import doctor
from cuggino.doctor.clean_checkout import CleanTrial, try_clean_checkout
from cuggino.doctor.machine import check_machine
from cuggino.doctor.result import CheckResult, CheckStatus

__all__ = [
    "AgentReport",
    "AgentState",
    "CheckResult",
    "CheckStatus",
    "CleanTrial",
    "check_machine",
    "doctor",
    "inspect_agents",
    "try_clean_checkout",
]
