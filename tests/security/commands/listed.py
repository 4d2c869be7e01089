"""Judges each entry of a list of commands, and names those that are not decided as wanted."""

from __future__ import annotations

from collections.abc import Iterable

from cuggino.security.policy import Policy
from tests.security.judging import reason_of


def allowed(commands: Iterable[str], policy: Policy) -> list[str]:
    """Those of the commands that the policy lets pass."""
    return [command for command in commands if not reason_of(command, policy)]


def denied(commands: Iterable[str], policy: Policy) -> list[str]:
    """Those of the commands that the policy stops."""
    return [command for command in commands if reason_of(command, policy)]
