"""Fixtures of the live page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.server import Page, page


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project without runs."""
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.fixture
def served(project: Path) -> Iterator[Page]:
    """A served page of the project, on a port of its own."""
    with page(project) as made:
        yield made
