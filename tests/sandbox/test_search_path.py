"""The search path of programs outside of any view."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from cuggino.sandbox.search_path import STARTED, outside_environment, own_programs


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    project = tmp_path / "repo" / "app"
    project.mkdir()
    return project


def test_folders_of_the_repository_are_left_out(project: Path, tmp_path: Path) -> None:
    """So are links to them, relative ones and empty ones; the order of the others stays."""
    (tmp_path / "link").symlink_to(project)
    entries = ["/usr/bin", f"{project}/bin", "bin", "", f"{project.parent}/x", f"{tmp_path}/link"]
    env = outside_environment(project, {"PATH": os.pathsep.join([*entries, "/bin"]), "A": "1"})
    assert {"PATH": "/usr/bin:/bin", "A": "1"} == env


def test_programs_below_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names in its folders of the search path, and the environment of Python in it."""
    monkeypatch.setenv("PATH", f"/usr/bin:{project}/bin::tools:..")
    wanted = {project / folder / name for folder in ("bin", "tools") for name in STARTED}
    assert wanted == set(own_programs(project))
    monkeypatch.setattr(sys, "prefix", f"{project}/.venv")
    assert project / ".venv" in set(own_programs(project))
