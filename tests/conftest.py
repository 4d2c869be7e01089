"""Fixtures for all tests."""

from __future__ import annotations

import pytest

from tests.real_claude import claude_cli

__all__ = ["claude_cli"]

pytest.register_assert_rewrite("tests.loops.endings")
