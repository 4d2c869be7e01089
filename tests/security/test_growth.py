"""How much work the guard makes of long inputs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cuggino.security.paths import Paths
from cuggino.security.policy import Level, Policy
from cuggino.security.shell.shfmt import find_shfmt
from cuggino.security.tools import judge

SHFMT = find_shfmt()
LEVELS: tuple[Level, ...] = ("roles", "full")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in a folder that is no scratch."""
    root = tmp_path / "home" / "project"
    (root / "src").mkdir(parents=True)
    return root


def decided(policy: Policy, tool: str, data: Mapping[str, object]) -> str:
    """The decision in the project's folder."""
    return judge(policy, tool, data, policy.project, shfmt=SHFMT).decision


def calls(action: Callable[[], object]) -> int:
    """How many functions were called for it, in Python and in C."""
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
def test_the_work_grows_with_the_length_of_a_command(
    project: Path, shape: str, level: Level
) -> None:
    """Four times the length is no more than some four times the calls."""
    policy = Policy(project=str(project), level=level)

    def work(size: int) -> int:
        text = COMMANDS[shape](size)
        return calls(lambda: decided(policy, "Bash", {"command": text}))

    work(1)
    assert work(100) < 5 * work(25) + 500


@pytest.mark.parametrize(
    "words", ["/a", "a ", "'", "\\a", "..", "{a,", "$(", "((", "*", "=_", "a:/"]
)
def test_the_time_grows_with_the_length_of_a_text(project: Path, words: str) -> None:
    """No text of one piece makes any pattern go back over it again and again."""
    policy = Policy(project=str(project), level="roles")

    def seconds(size: int) -> float:
        text = words * (size // len(words))
        spent = []
        for _ in range(3):
            start = time.process_time()
            decided(policy, "mcp__x__y", {"path": text, "args": text, text: text, "x": [text]})
            decided(policy, "Write", {"file_path": text})
            decided(policy, "Bash", {"command": text})
            spent.append(time.process_time() - start)
        return min(spent)

    assert seconds(24_000) < 25 * (seconds(3_000) + 0.01)


def test_a_long_path_is_looked_up_once_a_part(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is asked at most some times for each part of a path."""
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


def test_links_upon_links_are_given_up(tmp_path: Path) -> None:
    """Links that double at each step are followed no further than the system follows them."""
    project = tmp_path / "home" / "project"
    project.mkdir(parents=True)
    (project / "l0").symlink_to(".")
    for level in range(1, 30):
        (project / f"l{level}").symlink_to(f"l{level - 1}/l{level - 1}")
    count = calls(lambda: Paths(Policy(project=str(project))).write("l29/a", [str(project)]))
    assert count < 5_000
