"""Case files: one tool call to judge per line, each with its own policy."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict

from cuggino.config import load_config, policy_of_run
from cuggino.edited_files import InvalidFile, validated
from cuggino.guard import (
    AllowedCommands,
    Level,
    Mode,
    PermissionSet,
    Policy,
    UnknownProfile,
    Verdict,
    allowed_commands,
    chosen_profiles,
    denied,
)
from cuggino.guard_audit.check import judge_call

PLACEHOLDER = Path("/project")
"""The placeholder for the project in shared case files."""

_MARKS = (".autonoe", ".cuggino", ".cuggino.json", ".git")
"""Files and folders that mark the root of a project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One tool call to judge."""

    id: Any
    tool: str
    input: dict[str, Any]
    cwd: str
    policy: Policy | None
    """None if the guard of the project is off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A line that is not a valid case."""

    number: int
    reason: str
    id: Any = None


def read_cases(
    lines: Iterable[bytes],
    *,
    here: Path,
    role: PermissionSet | None = None,
    level: Level | None = None,
) -> list[Case | BadLine]:
    """Parse the lines of a case file, in order, skipping blank ones.

    The project of a case is its `project_dir`, or the project that contains its `cwd`. A `cwd` in
    no project is taken as outside the project of most other cases. `here` is the default `cwd`.

    A case with a role has the policy of a run in its project, changed by its other options. A case
    without one has the policy of its options alone. `role` and `level` are defaults for each line.

    Raises:
        ConfigError: the settings of a project are unusable.
        StorageError: they cannot be read.
    """
    read = [_read(line, number) for number, line in enumerate(lines, start=1) if line.strip()]
    roots = (_root(line.options, here) for line in read if isinstance(line, _Line))
    most = Counter(root for root in roots if root is not None).most_common(1)
    common = most[0][0] if most else None

    def case(line: _Line) -> Case:
        options = line.options
        cwd = str(here / (options.cwd or ""))
        project = os.path.realpath(_root(options, here) or common or cwd)
        return Case(
            id=line.id,
            tool=line.tool or "Bash",
            input={"command": line.command} if line.input is None else line.input,
            cwd=cwd,
            policy=_policy(
                options,
                project,
                options.role or line.role or role,
                options.level or line.level or level,
            ),
        )

    return [line if isinstance(line, BadLine) else case(line) for line in read]


def judge_case(case: Case | BadLine) -> Verdict:
    """Return the guard's verdict on a case; an invalid line is denied."""
    if isinstance(case, BadLine):
        return denied(f"line {case.number}", case.reason)
    if case.policy is None:
        return Verdict()
    return judge_call(case.policy, case.tool, case.input, case.cwd)


def _profiles(value: object) -> tuple[str, ...] | None:
    try:
        return chosen_profiles(value)
    except UnknownProfile as error:
        raise ValueError(f"{error}; {error.hint}") from error


def _usable(folder: str) -> str:
    if "\0" in folder:
        raise ValueError("the path contains a NUL byte")
    folder.encode()  # a ValueError for text that no file system can store
    return folder


_Place: TypeAlias = Annotated[str, AfterValidator(_usable)]


class _Options(BaseModel):
    model_config = ConfigDict(strict=True)

    profiles: Annotated[Any, AfterValidator(_profiles)] = None
    allow_destructive: bool | None = None
    extra_commands: Annotated[Any, AfterValidator(allowed_commands)] = AllowedCommands()
    extra_pkill_targets: list[str] | None = None
    cwd: _Place | None = None
    project_dir: _Place | None = None
    mode: Mode | None = None
    role: PermissionSet | None = None
    level: Level | None = None


class _Line(BaseModel):
    model_config = ConfigDict(strict=True)

    id: Any = None
    tool: str | None = None
    input: dict[str, Any] | None = None
    command: str | None = None
    """The input of a Bash call without `input`."""
    role: PermissionSet | None = None
    level: Level | None = None
    options: _Options = _Options()


def _read(line: bytes, number: int) -> _Line | BadLine:
    try:
        fields = json.loads(line.decode("utf-8").removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        return BadLine(number=number, reason=f"line {number} is not JSON: {error}")
    try:
        return validated(_Line, fields)
    except InvalidFile as error:
        reason = f"line {number} is not a case: {error}"
        name = fields.get("id") if isinstance(fields, dict) else None
        return BadLine(number=number, reason=reason, id=name)


def _root(options: _Options, here: Path) -> str | None:
    """Return the project that the case itself determines, if any."""
    if options.project_dir is not None:
        return str(here / options.project_dir)
    cwd = here / (options.cwd or "")
    for place in (cwd, *cwd.parents):
        if place == PLACEHOLDER or any(os.path.lexists(place / mark) for mark in _MARKS):
            return str(place)
    return None


def _policy(
    options: _Options, project: str, role: PermissionSet | None, level: Level | None
) -> Policy | None:
    if role is None:
        policy = Policy(project=project, level=level or "full", mode=options.mode or "run")
    else:
        folder = Path(project)
        found = policy_of_run(load_config(folder), role, project=folder, level=level)
        if found is None:
            return None
        policy = found._replace(mode=options.mode or found.mode)
    destructive = options.allow_destructive
    return policy._replace(
        profiles=policy.profiles if options.profiles is None else options.profiles,
        extra_commands=(*policy.extra_commands, *options.extra_commands.of(policy.mode)),
        pkill_targets=(*policy.pkill_targets, *(options.extra_pkill_targets or ())),
        allow_destructive=policy.allow_destructive if destructive is None else destructive,
    )
