"""Fixtures of all tests of processes."""

from __future__ import annotations

import pytest

from cuggino.processes import process_run, reading
from tests.processes.enclosures import enclosed

__all__ = ["enclosed"]


@pytest.fixture(autouse=True)
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time that others may hold a pipe, and that leftovers have to end."""
    monkeypatch.setattr(reading, "DRAIN", 0.2)
    monkeypatch.setattr(process_run, "LEFTOVER_GRACE", 0.2)
