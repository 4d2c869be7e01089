"""A project that commands are judged in."""

from __future__ import annotations

import pytest

from tests.security.judging import make_project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One project for all commands of a module."""
    return str(make_project(tmp_path_factory.mktemp("commands") / "project"))
