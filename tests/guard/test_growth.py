"""The guard's work on long inputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cuggino.guard.paths import Paths
from cuggino.guard.policy import Level, Policy
from cuggino.guard.shell.shfmt import find_shfmt
from cuggino.guard.tools import judge
from tests.growth import is_linear
from tests.guard.judging import calls

SHFMT = find_shfmt()
LEVELS: tuple[Level, ...] = ("roles", "full")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a project outside the temporary folders."""
    root = tmp_path / "home" / "project"
    (root / "src").mkdir(parents=True)
    return root


def decided(policy: Policy, tool: str, data: Mapping[str, object]) -> str:
    """Return the decision in the project's folder."""
    return judge(policy, tool, data, policy.project, shfmt=SHFMT).decision


COMMANDS: Mapping[str, Callable[[int], str]] = {
    "commands": lambda n: "ls\n" * n,
    "pipes": lambda n: "ls |" * n + "ls",
    "words": lambda n: "echo " + "a " * n,
    "paths": lambda n: "cp " + "src/a " * n + "src",
    "long path": lambda n: "echo x > " + "a/" * n + "b",
    "dots": lambda n: "echo x > " + "a/../" * n + "b",
    "redirections": lambda n: "ls " + "> src/a " * n,
    "quotes": lambda n: "echo " + "'a'\"b\"\\c" * n,
    "directories": lambda n: "cd src; cd ..; " * n + "echo > a",
    "assignments": lambda n: "A=1 " * n + "ls",
    "functions": lambda n: "".join(f"f{i}() {{ ls; }}\n" for i in range(n)) + "f0",
    "lists": lambda n: "true && " * n + "ls",
    "substitutions": lambda n: "echo " + "$(ls) " * n,
    "document": lambda n: "cat <<'E'\n" + "a line\n" * n + "E\n",
    "inline": lambda n: "python3 -c '" + "print(1);" * n + "'",
}


@pytest.mark.parametrize("shape", COMMANDS)
@pytest.mark.parametrize("level", LEVELS)
def test_work_grows_linearly_with_a_command(project: Path, shape: str, level: Level) -> None:
    """Four times the length takes about four times the calls."""
    policy = Policy(project=str(project), level=level)

    def work(size: int) -> int:
        text = COMMANDS[shape](size)
        return calls(lambda: decided(policy, "Bash", {"command": text}))

    work(1)
    assert work(100) < 5 * work(25) + 500


@pytest.mark.parametrize(
    "words", ["/a", "a ", "'", "\\a", "..", "{a,", "$(", "((", "*", "=_", "a:/"]
)
def test_time_grows_linearly_with_a_text(project: Path, words: str) -> None:
    """No repetitive text makes a pattern backtrack."""
    policy = Policy(project=str(project), level="roles")

    def work(size: int) -> None:
        text = words * (size // len(words))
        decided(policy, "mcp__x__y", {"path": text, "args": text, text: text, "x": [text]})
        decided(policy, "Write", {"file_path": text})
        decided(policy, "Bash", {"command": text})

    assert is_linear(work, small=1_000, large=8_000)


def test_each_part_of_a_path_is_looked_up_a_few_times(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part of a path causes only a few look-ups on the disk."""
    asked: list[object] = []
    real = os.readlink

    def readlink(path: str) -> str:
        asked.append(path)
        return str(real(path))

    monkeypatch.setattr("os.readlink", readlink)
    guard = Paths(Policy(project=str(project)))

    def count(size: int) -> int:
        asked.clear()
        guard.write("src/../" * size + "a", [str(project)])
        return len(asked)

    assert count(200) <= 4 * count(50) + 100


def test_nested_links_are_limited(tmp_path: Path) -> None:
    """Links that double at each step are followed only as far as the system follows them."""
    project = tmp_path / "home" / "project"
    project.mkdir(parents=True)
    (project / "l0").symlink_to(".")
    for level in range(1, 30):
        (project / f"l{level}").symlink_to(f"l{level - 1}/l{level - 1}")
    count = calls(lambda: Paths(Policy(project=str(project))).write("l29/a", [str(project)]))
    assert count < 5_000
