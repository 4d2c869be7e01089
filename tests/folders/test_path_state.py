"""`state_of_paths` on real files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuggino.folders import state_of_paths


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for path in ("check.sh", "ci/a.yml", "ci/deep/b.yml", "other.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("patterns", "paths"),
    [
        (["./check.sh", "none.sh"], ["check.sh"]),
        (["ci"], ["ci/a.yml", "ci/deep/b.yml"]),
        (["ci/*.yml"], ["ci/a.yml"]),
        (["ci/**/*.yml"], ["ci/a.yml", "ci/deep/b.yml"]),
        (["../*", "/etc/passwd", "\0", "", "check.sh/x"], []),
    ],
)
def test_patterns(project: Path, patterns: list[str], paths: list[str]) -> None:
    """Paths, folders and globs of the project; nothing outside, nothing that is not there."""
    assert paths == list(state_of_paths(project, patterns))


def test_what_counts(project: Path) -> None:
    """Content and the executable bit count, times do not; a link counts with its target."""
    check = project / "check.sh"
    states = [state_of_paths(project, ["check.sh"])]
    os.utime(check, (1, 1))
    assert states == [state_of_paths(project, ["check.sh"])]
    check.chmod(0o755)
    states.append(state_of_paths(project, ["check.sh"]))
    check.write_text("exit 0", encoding="utf-8")
    states.append(state_of_paths(project, ["check.sh"]))
    check.unlink()
    check.symlink_to("other.txt")
    states.append(state_of_paths(project, ["check.sh"]))
    assert 4 == len({state["check.sh"] for state in states})


def test_package_that_is_no_json(project: Path) -> None:
    """A broken package, or one nested beyond any parser, counts as a whole."""
    package = project / "package.json"
    states = []
    for text in ("{", '{"scripts":' * 100_000):
        package.write_text(text, encoding="utf-8")
        states.append(state_of_paths(project, ["package.json"])["package.json"])
    assert states[0] != states[1]


def test_scripts_of_a_package(project: Path) -> None:
    """A new dependency is not a change of the check; a new script is."""
    package = project / "package.json"
    package.write_text('{"scripts": {"test": "jest"}}', encoding="utf-8")
    before = state_of_paths(project, ["package.json"])
    package.write_text('{"scripts": {"test": "jest"}, "dependencies": {"a": "1"}}')
    assert before == state_of_paths(project, ["package.json"])
    package.write_text('{"scripts": {"test": "true"}}', encoding="utf-8")
    assert before != state_of_paths(project, ["package.json"])
