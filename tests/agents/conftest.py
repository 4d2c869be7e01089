"""Fixtures for all tests of agents."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.agents.demo")
