"""Count the everyday commands that each role is refused: `python -m tests.guard.daily [FILE]`.

The project has a fitting profile: its languages, and `extended`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from cuggino.guard.paths import Paths
from cuggino.guard.policy import Level
from cuggino.guard.profiles import PROFILES
from cuggino.guard.roles import PERMISSION_SETS, PermissionSet, role_policy
from cuggino.guard.shell.parser import parse
from cuggino.guard.walk import judge_script
from tests.guard.judging import SHFMT, Case, listed_cases, make_project

LIST = Path(__file__).with_name("daily_commands.txt")
WORKERS: tuple[PermissionSet, ...] = ("implementing", "deliver")
"""Roles that may change the project; the others get the commands that only look."""

_FOLDERS = (
    *("packages/api", "packages/web", "frontend", "backend", "api", "scripts", "docs", "tests"),
    *(".venv/bin", "node_modules/.bin", "vendor/bin", "build", "dist", "logs", ".specs"),
)


class Count(NamedTuple):
    """The refusals of one role at one level."""

    level: Level
    role: PermissionSet
    total: int
    refused: dict[str, str]
    """Reasons by command."""

    @property
    def share(self) -> float:
        return len(self.refused) / self.total

    def __str__(self) -> str:
        head = f"{self.level} {self.role}: {len(self.refused)} of {self.total} ({self.share:.1%})"
        rows = (f"  {command!r}\n      {reason}" for command, reason in self.refused.items())
        return "\n".join((head, *rows))


def make_daily_project(folder: Path) -> Path:
    """Create a project with the folders that the commands name."""
    project = make_project(folder / "project")
    for name in _FOLDERS:
        (project / name).mkdir(parents=True, exist_ok=True)
    return project


def counts(
    cases: list[Case], project: Path, levels: Iterable[Level] = ("full", "roles")
) -> Iterator[Count]:
    """Yield the refusals by level and role."""
    scripts = {case.command: parse(case.command, shfmt=SHFMT) for case in cases}
    cwds = frozenset({str(project)})
    for level in levels:
        for role in PERMISSION_SETS:
            policy = role_policy(
                role, project=project, level=level, profiles=(*PROFILES, "extended")
            )
            paths = Paths(policy, temporary=("/tmp",))
            mine = [case for case in cases if case.section == "looks" or role in WORKERS]
            refused: dict[str, str] = {}
            for case in mine:
                script = scripts[case.command]
                parts = judge_script(script, policy=policy, paths=paths, cwds=cwds, shfmt=SHFMT)
                if reason := next((part.reason for part in parts if part.reason), ""):
                    refused[case.command] = reason
            yield Count(level, role, len(mine), refused)


def main() -> None:
    """Print all refusals of a list."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else LIST
    # The temporary folder itself is scratch, so the project must not be next to it.
    with tempfile.TemporaryDirectory() as folder:
        project = make_daily_project(Path(folder) / "home")
        for count in counts(list(listed_cases(path)), project):
            print(count)


if __name__ == "__main__":
    main()
