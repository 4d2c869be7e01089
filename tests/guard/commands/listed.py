"""Check each command of a list and return those with the wrong decision."""

from __future__ import annotations

from collections.abc import Iterable

from cuggino.guard.policy import Policy
from tests.guard.judging import reason_of


def allowed(commands: Iterable[str], policy: Policy) -> list[str]:
    """Return the commands that the policy allows."""
    return [command for command in commands if not reason_of(command, policy)]


def denied(commands: Iterable[str], policy: Policy) -> list[str]:
    """Return the commands that the policy denies."""
    return [command for command in commands if reason_of(command, policy)]
