"""The results of rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from unittest import SkipTest


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of one rule."""

    rule: str
    """Its method, without `test_`."""
    outcome: Literal["passed", "failed", "skipped"]
    message: str = ""
    """The reason it did not pass; the message of a failure begins with the rule."""


def verdict_of(
    rule: str,
    check: Callable[[], str | None],
    *,
    failures: tuple[type[Exception], ...] = (AssertionError,),
) -> Verdict:
    """Return the verdict of a check, which returns a message or raises."""
    try:
        message = check() or ""
    except SkipTest as reason:
        return Verdict(rule=rule, outcome="skipped", message=str(reason))
    except failures as error:
        hint = getattr(error, "hint", None)
        message = f"{error}; {hint}" if hint else str(error)
        return Verdict(rule=rule, outcome="failed", message=message)
    return Verdict(rule=rule, outcome="passed", message=message)
