"""Public names of `cuggino.doctor`; written by `python -m tests.stubs`."""

from cuggino.doctor.agents import (
    AgentReport,
    AgentState,
    inspect_agents,
)
from cuggino.doctor.machine import (
    check_machine,
)
from cuggino.doctor.project import (
    doctor,
)
from cuggino.doctor.result import (
    CheckResult,
    CheckStatus,
)

__all__ = [
    "AgentReport",
    "AgentState",
    "CheckResult",
    "CheckStatus",
    "check_machine",
    "doctor",
    "inspect_agents",
]
