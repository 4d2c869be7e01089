"""Helpers that judge commands in a project with the folders that the cases use."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cuggino.guard.paths import Paths
from cuggino.guard.policy import Policy
from cuggino.guard.shell.parser import parse
from cuggino.guard.shell.shfmt import find_shfmt
from cuggino.guard.shell.tree import Refused, Script
from cuggino.guard.verdict import Part
from cuggino.guard.walk import judge_script

FOLDERS = ("src", "sub", "bin", ".git/hooks", ".autonoe")
SHFMT = find_shfmt()


def make_project(folder: Path, entries: list[dict[str, Any]] | None = None) -> Path:
    """Create a project with the usual folders, and the files and links of a case."""
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


@cache
def _parsed(command: str) -> Script | Refused:
    """Parse a command, once for all policies that judge it."""
    try:
        return parse(command, shfmt=SHFMT)
    except Refused as refused:
        return refused


def parts_of(command: str, policy: Policy, cwd: str) -> tuple[Part, ...]:
    """Return the judged parts of a command; one part if the whole text is refused."""
    script = _parsed(command)
    if isinstance(script, Refused):
        return (Part(script.part or command, script.reason),)
    # As on a machine without a temporary folder of the user's own, whatever the tests run in.
    paths = Paths(policy, temporary=("/tmp",))
    return judge_script(
        script, policy=policy, paths=paths, cwds=frozenset({cwd} if cwd else ()), shfmt=SHFMT,
    )  # fmt: skip


def reason_of(command: str, policy: Policy, cwd: str | None = None) -> str:
    """Return why the command is denied, or ""."""
    found = parts_of(command, policy, policy.project if cwd is None else cwd)
    return next((part.reason for part in found if part.reason), "")


class Case(NamedTuple):
    """A command from a list, with its section."""

    section: str
    command: str


def listed_cases(path: Path) -> Iterator[Case]:
    """Yield the commands of a list: `## SECTION` begins a section, `json:` a multi-line command."""
    section = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:].strip()
        elif line.startswith("json:"):
            yield Case(section, json.loads(line[5:]))
        elif line.strip() and not line.startswith("// "):
            yield Case(section, line)


def policy_of(section: str, project: str) -> Policy:
    """Return the policy that a section names: `full`, `roles`, `limited`, `destructive`."""
    policy = Policy(project)
    if "destructive" in section:
        policy = policy._replace(allow_destructive=True)
    if "roles" in section:
        policy = policy._replace(level="roles")
    if "limited" in section:
        policy = policy._replace(level="roles", writable=("docs",), role="planning")
    return policy


def calls(action: Callable[[], object]) -> int:
    """Return how many functions the action calls, in Python and in C."""
    count = 0

    def counted(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count
