"""The gate: what the check of a project means.

Pure rules on its command and its output, and the ledger of flaky tests.
"""

from cuggino.gate.cannot_fail import why_it_cannot_fail
from cuggino.gate.failures import Failures, failures_in, new_since, same
from cuggino.gate.flakes import Flake, Flakes, read_flakes, write_flakes

__all__ = [
    "Failures",
    "Flake",
    "Flakes",
    "failures_in",
    "new_since",
    "read_flakes",
    "same",
    "why_it_cannot_fail",
    "write_flakes",
]
