"""Judges commands in a project of their own: the folders that the cases speak of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cuggino.security.paths import Paths
from cuggino.security.policy import Policy
from cuggino.security.shell.parser import parse
from cuggino.security.shell.shfmt import find_shfmt
from cuggino.security.shell.tree import Refused
from cuggino.security.verdict import Part
from cuggino.security.walk import judge_script

FOLDERS = ("src", "sub", "bin", ".git/hooks", ".autonoe")
SHFMT = find_shfmt()


def make_project(folder: Path, entries: list[dict[str, Any]] | None = None) -> Path:
    """A project with the usual folders, and the files and links of a case."""
    for name in FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for entry in entries or []:
        path = folder / entry["path"]
        if "symlink" in entry:
            path.symlink_to(entry["symlink"])
        elif entry.get("dir"):
            path.mkdir(exist_ok=True)
        else:
            path.write_text(entry.get("file") or "", encoding="utf-8")
    return folder


def parts_of(command: str, policy: Policy, cwd: str) -> tuple[Part, ...]:
    """What is said of each part; one part when the text is refused as a whole."""
    try:
        script = parse(command, shfmt=SHFMT)
    except Refused as refused:
        return (Part(refused.part or command, refused.reason),)
    # As on a machine without a temporary folder of the user's own, whatever the tests run in.
    paths = Paths(policy, temporary=("/tmp",))
    return judge_script(
        script, policy=policy, paths=paths, cwds=frozenset({cwd} if cwd else ()), shfmt=SHFMT,
        source=command,
    )  # fmt: skip


def reason_of(command: str, policy: Policy, cwd: str | None = None) -> str:
    """Why the command is denied; empty when it is allowed."""
    found = parts_of(command, policy, policy.project if cwd is None else cwd)
    return next((part.reason for part in found if part.reason), "")


class Case(NamedTuple):
    """A line of a list of commands."""

    section: str
    command: str


def listed_cases(path: Path) -> Iterator[Case]:
    """The commands of a list: `## SECTION` begins one, `json:` a command of several lines."""
    section = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:].strip()
        elif line.startswith("json:"):
            yield Case(section, json.loads(line[5:]))
        elif line.strip() and not line.startswith("// "):
            yield Case(section, line)


def policy_of(section: str, project: str) -> Policy:
    """The policy that a section's name speaks of: `full`, `roles`, `limited`, `destructive`."""
    policy = Policy(project)
    if "destructive" in section:
        policy = policy._replace(allow_destructive=True)
    if "roles" in section:
        policy = policy._replace(level="roles")
    if "limited" in section:
        policy = policy._replace(level="roles", writable=("docs",), role="planning")
    return policy
