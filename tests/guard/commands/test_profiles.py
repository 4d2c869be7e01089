"""Profiles of the user and the programs they allow."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.guard.extensions import chosen_profiles
from cuggino.guard.roles import role_policy
from tests.guard.judging import reason_of

COMMANDS = ("ls", "rg x", "sed -n 1p a", "pytest -q", "npm test")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ["ls", "pytest -q", "npm test"]),
        ([], ["ls", "pytest -q", "npm test"]),
        ("base", ["ls"]),
        ("extended", ["ls", "rg x", "sed -n 1p a"]),
        (["base", "extended"], ["ls", "rg x", "sed -n 1p a"]),
        (["extended", "python"], ["ls", "rg x", "sed -n 1p a", "pytest -q"]),
    ],
)
def test_chosen_profiles_decide_the_programs(
    given: object, expected: list[str], tmp_path: Path
) -> None:
    """`extended` must be named like a language, and can be the only profile."""
    policy = role_policy(
        "implementing", project=tmp_path, level="full", profiles=chosen_profiles(given)
    )
    assert expected == [command for command in COMMANDS if not reason_of(command, policy)]
