"""A repository for the tests of git."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.git_project import GitProject


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    project = GitProject(tmp_path / "project")
    project.write("a.txt", "a\n")
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "start")
    return project
