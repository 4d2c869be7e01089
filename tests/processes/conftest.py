"""Fixtures of all tests of processes."""

from __future__ import annotations

from tests.processes.enclosures import enclosed

__all__ = ["enclosed"]
