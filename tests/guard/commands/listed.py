"""Check each command of a list and return those with the wrong decision."""

from __future__ import annotations

from collections.abc import Iterable

from cuggino.guard.policy import Policy
from tests.guard.judging import reason_of


def with_program(policy: Policy, command: str) -> Policy:
    """Return the policy of a user who also allows the command's own program."""
    return policy._replace(extra_commands=(*policy.extra_commands, command.split()[0].lstrip("\\")))


def allowed_when_listed(commands: Iterable[str], project: str) -> list[str]:
    """Return the commands that level `full` allows when the user allows the program."""
    policy = Policy(project, allow_destructive=True)
    return [
        command for command in commands if not reason_of(command, with_program(policy, command))
    ]


def allowed(commands: Iterable[str], policy: Policy) -> list[str]:
    """Return the commands that the policy allows."""
    return [command for command in commands if not reason_of(command, policy)]


def denied(commands: Iterable[str], policy: Policy) -> list[str]:
    """Return the commands that the policy denies."""
    return [command for command in commands if reason_of(command, policy)]
