"""A project with a remote, on real git."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.forge.proposed import Proposed
from tests.git_project import isolate_git


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proposed:
    isolate_git(monkeypatch, tmp_path / "home")
    return Proposed(tmp_path)
