"""Fixtures of all tests of sources."""

from __future__ import annotations

from tests.sources.enclosures import enclosed

__all__ = ["enclosed"]
