"""The permissions of a role's sessions, by the settings of a project."""

from __future__ import annotations

from pathlib import Path
from typing import overload

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
) -> Policy | None: ...


def configured_policy(
    settings: GuardSettings,
    permissions: PermissionSet | None,
    *,
    project: Path,
    level: Level | None = None,
    plan: Path | None = None,
    review: Path | None = None,
) -> Policy | None:
    """Return the policy of a session, or None with `guard: "off"`.

    Without permissions, it is the most permissive one. A `level` overrides the one in the settings.
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
    )
    return policy if permissions else policy._replace(role="")


def configured_sandbox(settings: GuardSettings, policy: Policy | None) -> Sandbox | None:
    """Return the sandbox of a session with this policy, or None if it or the guard is off."""
    if policy is None or not settings.sandbox:
        return None
    root = Path(policy.project)
    specs = settings.specs_path
    apart = not root.is_relative_to((root / specs).resolve())
    keep = (specs,) if apart and policy.role in _CODING else ()
    return sandbox_for(policy, keep=keep, domains=settings.sandbox_domains)
