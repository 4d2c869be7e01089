"""What the sessions of a role may do, by the settings of a project."""

from __future__ import annotations

from pathlib import Path
from typing import overload

from cuggino.config.model import LoopSettings
from cuggino.security.extensions import allowed_commands, chosen_profiles
from cuggino.security.policy import Level, Mode, Policy
from cuggino.security.roles import Role, role_policy
from cuggino.security.sandbox import Sandbox, sandbox_for

_CODING: tuple[Role, ...] = ("planning", "implementing", "reviewing", "audit")
"""Who may not change the specifications."""


@overload
def configured_policy(
    settings: LoopSettings,
    role: Role | None,
    *,
    project: Path,
    level: Level,
    plan: Path | None = None,
    review: Path | None = None,
) -> Policy: ...


@overload
def configured_policy(
    settings: LoopSettings,
    role: Role | None,
    *,
    project: Path,
    level: None = None,
    plan: Path | None = None,
    review: Path | None = None,
) -> Policy | None: ...


def configured_policy(
    settings: LoopSettings,
    role: Role | None,
    *,
    project: Path,
    level: Level | None = None,
    plan: Path | None = None,
    review: Path | None = None,
) -> Policy | None:
    """The policy of a role, None with `guard: "off"`; without a role, what any may at most.

    A `level` counts in place of the one in the settings.
    """
    if level is None:
        if settings.guard == "off":
            return None
        level = settings.guard
    mode: Mode = "sync" if role in ("verify", "sync") else "run"
    policy = role_policy(
        role or "deliver",
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
    return policy if role else policy._replace(role="")


def configured_sandbox(settings: LoopSettings, policy: Policy | None) -> Sandbox | None:
    """The sandbox of a session with this policy, None when that is off, or the guard is."""
    if policy is None or not settings.sandbox:
        return None
    root = Path(policy.project)
    apart = not root.is_relative_to((root / settings.specs_path).resolve())
    keep = (settings.specs_path,) if apart and policy.role in _CODING else ()
    return sandbox_for(policy, keep=keep, domains=settings.sandbox_domains)
