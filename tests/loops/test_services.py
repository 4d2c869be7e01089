"""The services of a project without version control."""

from __future__ import annotations

from pathlib import Path

from reactivex import operators as ops

from cuggino import run
from cuggino.loops import Services
from cuggino.storage import Workspace
from cuggino.testing import InMemoryAgent


def test_without_a_repository(tmp_path: Path) -> None:
    """The run has no starting commit, and none is made or pushed."""
    services = Services(agent=InMemoryAgent({}), workspace=Workspace(tmp_path))
    repository = services.repository
    assert [None] == run(repository.head().pipe(ops.to_list()))
    assert [] == run(repository.commit("work").pipe(ops.to_list()))
    assert [] == run(repository.push("origin", "main").pipe(ops.to_list()))
    assert [] == list(tmp_path.iterdir())
