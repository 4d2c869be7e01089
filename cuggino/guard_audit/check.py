"""The verdict on one tool call, by the policy that a run in the project would use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuggino.config import Config, policy_of_run
from cuggino.guard import Level, PermissionSet, Policy, Verdict, find_shfmt, judge, with_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCall:
    """The verdict on a tool call, and the level that it was judged at."""

    verdict: Verdict
    level: Level | None
    """None if the guard is off: every call is allowed."""


def check_call(
    tool: str,
    tool_input: Mapping[str, Any],
    *,
    project: Path,
    config: Config,
    role: PermissionSet | None = None,
    level: Level | None = None,
    cwd: Path | None = None,
) -> CheckedCall:
    """Return the guard's verdict on a tool call, by the policy of a run in the project.

    The roles of the deliver loop also have the settings of `.autonoe/agent.json`.

    Args:
        tool: the tool's name, such as `Bash` or `Write`.
        tool_input: its input.
        project: the folder of the project.
        config: its configuration.
        role: the agent's role; without one it may write any file that an agent may write.
        level: default the level of the run.
        cwd: the agent's current folder; one outside the project is taken for the project.

    Raises:
        ConfigError: `.autonoe/agent.json` names an unknown profile.
        StorageError: it cannot be read.
    """
    place = project if cwd is None else cwd.resolve()
    if not place.is_relative_to(project.resolve()):
        project = place
    policy = policy_of_run(config, role, project=project, level=level)
    if policy is None:
        return CheckedCall(verdict=Verdict(), level=None)
    verdict = judge_call(policy, tool, tool_input, str(place))
    return CheckedCall(verdict=verdict, level=policy.level)


def judge_call(policy: Policy, tool: str, tool_input: Mapping[str, Any], cwd: str) -> Verdict:
    """Return the verdict of the guard and of the policy's permission rules."""
    verdict = judge(policy, tool, dict(tool_input), cwd, shfmt=find_shfmt())
    return with_rules(verdict, policy, tool, tool_input, cwd)
