"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CheckStatus = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of `cuggino doctor`."""

    status: CheckStatus
    """`note` is worth knowing but prevents nothing."""
    what: str
    hint: str | None = None


NEVER_FAILS = "let the command exit with an error if something is wrong"
"""The hint for a check command that cannot fail."""
