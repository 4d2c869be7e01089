"""Fixtures for tests of providers."""

from __future__ import annotations

from tests.real_claude import claude_cli

__all__ = ["claude_cli"]
