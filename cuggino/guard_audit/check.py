"""The verdict on one tool call, by the configuration of a project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cuggino.config import Config, configured_policy
from cuggino.guard import Level, PermissionSet, Verdict, find_shfmt, judge


def check_call(
    tool: str,
    tool_input: Mapping[str, Any],
    *,
    project: Path,
    config: Config,
    role: PermissionSet | None = None,
    level: Level | None = None,
    cwd: Path | None = None,
) -> Verdict:
    """Return the guard's verdict on a tool call.

    Args:
        tool: the tool's name, such as `Bash` or `Write`.
        tool_input: its input.
        project: the folder of the project.
        config: its configuration.
        role: the agent's role; without one only the list of programs is applied.
        level: default `roles` with a role and `full` without one, or if the configuration says so.
        cwd: the agent's current folder; one outside the project is taken for the project.
    """
    place = project if cwd is None else cwd.resolve()
    if not place.is_relative_to(project.resolve()):
        project = place
    if level is None:
        level = "roles" if role is not None and config.guard != "full" else "full"
    policy = configured_policy(config, role, project=project, level=level)
    return judge(policy, tool, dict(tool_input), str(place), shfmt=find_shfmt())
