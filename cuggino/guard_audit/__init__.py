"""The guard asked about tool calls outside a run: a single call, a file of cases, a recorded run.

Nothing is executed.
"""

from cuggino.guard_audit.audit import JudgedCall, audit_run
from cuggino.guard_audit.cases import BadLine, Case, judge_case, read_cases
from cuggino.guard_audit.check import CheckedCall, check_call

__all__ = [
    "BadLine",
    "Case",
    "CheckedCall",
    "JudgedCall",
    "audit_run",
    "check_call",
    "judge_case",
    "read_cases",
]
