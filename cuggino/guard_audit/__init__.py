"""The guard asked about tool calls outside a run: a single call, a file of cases, a recorded run.

Nothing is executed.
"""

from cuggino._lazy import lazy

NAMES = {
    "audit": "JudgedCall audit_run",
    "cases": "BadLine Case judge_case read_cases",
    "check": "CheckedCall check_call",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
