"""The roles of sessions, and their permissions as a policy (CUG-006, CUG-007, CUG-094)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from cuggino.guard.paths import NOTE
from cuggino.guard.places import fold
from cuggino.guard.policy import PROTECTED, Level, Policy

if TYPE_CHECKING:  # the hook, which starts for every call, does without it
    from pathlib import Path

Role: TypeAlias = Literal[
    "planning",
    "implementing",
    "reviewing",
    "audit",
    "initializer",
    "coding",
    "sync",
    "verify",
    "plan",
    "build",
    "judge",
]
"""The task of a session within its loop."""

ROLES: tuple[Role, ...] = get_args(Role)

PermissionSet: TypeAlias = Literal[
    "planning", "implementing", "reviewing", "audit", "pm", "deliver", "verify", "sync"
]
"""The write permissions of a session; `pm` is for a person's session with the project manager."""

PERMISSION_SETS: tuple[PermissionSet, ...] = get_args(PermissionSet)

PERMISSIONS: Mapping[str, PermissionSet] = MappingProxyType(
    {
        "planning": "planning",
        "implementing": "implementing",
        "reviewing": "reviewing",
        "audit": "audit",
        "initializer": "deliver",
        "coding": "deliver",
        "sync": "sync",
        "verify": "verify",
        "plan": "implementing",
        "build": "implementing",
        "judge": "audit",
    }
)
"""The permissions by role."""

_PM_PLACES = ("spec-issues", "backlog", "tbd", "memory.md")


def role_policy(
    permissions: PermissionSet,
    *,
    project: Path,
    level: Level,
    specs: str = ".specs",
    plan: Path | None = None,
    review: Path | None = None,
    profiles: Iterable[str] | None = None,
    extra_commands: Iterable[str] = (),
    pkill_targets: Iterable[str] = (),
    allow_destructive: bool = False,
    rules: Iterable[str] = (),
    apart: Iterable[Path] = (),
) -> Policy:
    """Return the policy of a session with these permissions. Scratch files are always writable.

    - `planning`: only its `plan`. `reviewing`: only its `review`. `audit`: nothing.
    - `implementing`: the project except the `specs` and protected files.
    - `pm`: the `specs`, and in `.cuggino` the spec issues, the backlog, the findings, the memory.
    - `deliver`: the project except protected files. Its file tools read only the project, and web
      and MCP tools need one of the `rules`, as with `verify` and `sync`.
    - `verify`, `sync`: only the note for the next session, and no destructive command.

    Reads the disk once, before the agent starts: links are followed now, so that links made later
    grant nothing. If the `specs` are the project itself or above it, implementing may write them,
    as they cannot be separated from the project.
    """
    root = project.resolve()
    common = Policy(
        project=str(root),
        level=level,
        role=permissions,
        profiles=None if profiles is None else tuple(profiles),
        extra_commands=tuple(extra_commands),
        pkill_targets=tuple(pkill_targets),
        allow_destructive=allow_destructive,
        apart=tuple(str(folder.resolve()) for folder in apart),
    )
    match permissions:
        case "planning":
            return common._replace(writable=(), granted=_own(root, plan))
        case "reviewing":
            return common._replace(writable=(), granted=_own(root, review))
        case "audit":
            return common._replace(writable=())
        case "implementing":
            beside = not root.is_relative_to((root / specs).resolve())
            return common._replace(read_only=(specs,) if beside else ())
        case "pm":
            places = tuple(f".cuggino/{name}" for name in _PM_PLACES)
            return _with_specs(common._replace(writable=(), granted=places), root, specs)
        case "deliver":
            return common._replace(rules=tuple(rules))
        case "verify" | "sync":
            return common._replace(
                mode="sync", writable=(NOTE,), allow_destructive=False, rules=tuple(rules)
            )


def _own(root: Path, file: Path | None) -> tuple[str, ...]:
    """Return the role's own file; a link in its place does not count."""
    if file is None:
        return ()
    full = root / file
    return (_relative(root, full.parent.resolve() / full.name),)


def _with_specs(policy: Policy, root: Path, specs: str) -> Policy:
    """Make the specifications writable; grant them if they are protected or outside the project."""
    place = _relative(root, (root / specs).resolve())
    names = {fold(name) for name in PROTECTED}
    if place.startswith("/") or any(fold(part) in names for part in place.split("/")):
        return policy._replace(granted=(place, *policy.granted))
    return policy._replace(writable=(place,))


def _relative(root: Path, place: Path) -> str:
    return str(place.relative_to(root) if place.is_relative_to(root) else place)
