"""The permissions of a role's sessions, by the settings of a project."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import overload

from cuggino.config.agent_file import AgentSettings, joined_settings, read_agent_file
from cuggino.config.model import GuardSettings
from cuggino.guard import (
    Level,
    Mode,
    PermissionSet,
    Policy,
    Sandbox,
    allowed_commands,
    chosen_profiles,
    role_policy,
    sandbox_for,
)

_DELIVERING: tuple[PermissionSet, ...] = ("deliver", "verify", "sync")
"""Permissions of sessions of the deliver loop."""

_CODING: tuple[PermissionSet, ...] = ("planning", "implementing", "reviewing", "audit")
"""Permissions without the specifications."""


@overload
def configured_policy(
    settings: GuardSettings,
    permissions: PermissionSet | None,
    *,
    project: Path,
    level: Level,
    plan: Path | None = None,
    review: Path | None = None,
    apart: Iterable[Path] = (),
) -> Policy: ...


@overload
def configured_policy(
    settings: GuardSettings,
    permissions: PermissionSet | None,
    *,
    project: Path,
    level: None = None,
    plan: Path | None = None,
    review: Path | None = None,
    apart: Iterable[Path] = (),
) -> Policy | None: ...


def configured_policy(
    settings: GuardSettings,
    permissions: PermissionSet | None,
    *,
    project: Path,
    level: Level | None = None,
    plan: Path | None = None,
    review: Path | None = None,
    apart: Iterable[Path] = (),
) -> Policy | None:
    """Return the policy of a session, or None with `guard: "off"`.

    Without permissions, it is the most permissive one. A `level` overrides the one in the settings.
    `apart` are folders of others around a project that is a slot.
    """
    if level is None:
        if settings.guard == "off":
            return None
        level = settings.guard
    mode: Mode = "sync" if permissions in ("verify", "sync") else "run"
    policy = role_policy(
        permissions or "deliver",
        project=project,
        level=level,
        specs=settings.specs_path,
        plan=plan,
        review=review,
        profiles=chosen_profiles(settings.profile),
        extra_commands=allowed_commands(settings.allow_commands).of(mode),
        pkill_targets=settings.allow_pkill_targets,
        allow_destructive=settings.allow_destructive,
        apart=apart,
    )
    return policy if permissions else policy._replace(role="", rules=None)


def deliver_policy(
    settings: GuardSettings, agent: AgentSettings, permissions: PermissionSet, *, project: Path
) -> Policy | None:
    """Return the policy of a session of the deliver loop, or None with `guard: "off"`.

    It has the settings of `.autonoe/agent.json` too, and its level is always `full`.
    """
    if settings.guard == "off":
        return None

    joined = joined_settings(settings, agent)
    policy = configured_policy(joined, permissions, project=project, level="full")
    return policy._replace(rules=(*agent.listed_tools, *agent.permission_rules))


def policy_of_run(
    settings: GuardSettings,
    permissions: PermissionSet | None,
    *,
    project: Path,
    level: Level | None = None,
) -> Policy | None:
    """Return the policy that a run in the project would use now, or None with `guard: "off"`.

    A `level` overrides the level of the run.

    Raises:
        ConfigError: `.autonoe/agent.json` is unusable.
    """
    if level is not None:
        settings = settings.model_copy(update={"guard": level})
    if permissions is None or permissions not in _DELIVERING:
        return configured_policy(settings, permissions, project=project)

    agent = read_agent_file(project).settings
    policy = deliver_policy(settings, agent, permissions, project=project)
    return policy if policy is None or level is None else policy._replace(level=level)


def configured_sandbox(settings: GuardSettings, policy: Policy | None) -> Sandbox | None:
    """Return the sandbox of a session with this policy, or None if it or the guard is off."""
    if policy is None or settings.sandbox == "off":
        return None
    root = Path(policy.project)
    specs = settings.specs_path
    apart = not root.is_relative_to((root / specs).resolve())
    keep = (specs,) if apart and policy.role in _CODING else ()
    return sandbox_for(policy, keep=keep, domains=settings.sandbox_domains)
