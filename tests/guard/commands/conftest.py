"""A project in which commands are checked."""

from __future__ import annotations

import pytest

from tests.guard.judging import make_project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return one project shared by all commands of a module."""
    return str(make_project(tmp_path_factory.mktemp("commands") / "project"))
