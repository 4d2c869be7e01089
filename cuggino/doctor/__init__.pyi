"""Public names of `cuggino.doctor`; written by `python -m tests.stubs`."""

from cuggino.doctor.agents import (
    AgentReport,
    AgentState,
    inspect_agents,
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
    "doctor",
    "inspect_agents",
]
