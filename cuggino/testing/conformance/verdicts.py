"""The results of rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of one rule."""

    rule: str
    """Its method, without `test_`."""
    outcome: Literal["passed", "failed", "skipped"]
    message: str = ""
    """The reason it did not pass; the message of a failure begins with the rule."""
