"""Public names of `cuggino.guard_audit`; written by `python -m tests.stubs`."""

from cuggino.guard_audit.audit import (
    JudgedCall,
    audit_run,
)
from cuggino.guard_audit.cases import (
    BadLine,
    Case,
    judge_case,
    read_cases,
)
from cuggino.guard_audit.check import (
    CheckedCall,
    check_call,
)

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
