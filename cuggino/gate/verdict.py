"""The result of a check, compared with the one before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from cuggino.gate.failures import Failures, failures_in, new_since, same


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check command."""

    exit_code: int
    failures: Failures

    @classmethod
    def of(cls, exit_code: int | None, output: str) -> CheckResult:
        """Return the result of a command that printed this."""
        return cls(1 if exit_code is None else exit_code, failures_in(output))

    @property
    def passed(self) -> bool:
        return self.exit_code == 0

    @property
    def failing(self) -> tuple[str, ...]:
        """The failing tests, if the output names them."""
        return () if self.passed else tuple(sorted(self.failures.names))

    def is_like(self, other: CheckResult) -> bool:
        """Return whether both say the same: passed, or failed in the same way."""
        if self.passed or other.passed:
            return self.passed == other.passed
        return self.exit_code == other.exit_code and same(self.failures, other.failures)


def judge_check(
    now: CheckResult, baseline: CheckResult | None
) -> Literal["passed", "known", "failed"]:
    """Return the verdict on a check: `known` if all that fails failed before the first agent.

    That takes failures that can be distinguished. A check that is red as a whole, before and now,
    may be red for what was to be done, so it has to pass.
    """
    if now.passed:
        return "passed"
    if baseline is None or baseline.passed:
        return "failed"
    new = new_since(now.failures, baseline.failures) if now.failures.names else None
    return "known" if new is not None and not new else "failed"


def hidden_failures(work: CheckResult, at_start: CheckResult) -> tuple[bool, tuple[str, ...]]:
    """Return whether the files of the start bring out failures that the work does not show, which.

    `work` is the check on the work as it is, `at_start` with the files of the start.
    """
    if at_start.passed:
        return False, ()
    if work.passed:
        return True, at_start.failing
    more = new_since(at_start.failures, work.failures)
    return bool(more), tuple(sorted(more or ()))


@dataclass(frozen=True, slots=True)
class Repeats:
    """Count how often in a row approvals failed for one reason although agents worked on it."""

    times: int = 0
    reason: str = ""
    result: CheckResult | None = None

    def after(self, check: CheckResult) -> Repeats:
        """Return the count after the check of another review: one that passes ends a row of red."""
        return Repeats() if check.passed and self.reason == "check" else self

    def add(self, reason: str, result: CheckResult | None = None) -> Repeats:
        """Return the count after another failure."""
        is_same = reason == self.reason and (
            result is None or self.result is None or result.is_like(self.result)
        )
        return replace(self, times=self.times + 1 if is_same else 1, reason=reason, result=result)
