"""Fixtures for the tests of the loops."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.loops.crashes import SCENARIOS, Uninterrupted


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Uninterrupted]:
    """The uninterrupted run of a scenario, which tests only read."""
    known: dict[str, Uninterrupted] = {}

    def get(name: str) -> Uninterrupted:
        if name not in known:
            known[name] = Uninterrupted(SCENARIOS[name], tmp_path_factory.mktemp("whole"))
        return known[name]

    return get
