"""Profiles as a user chooses them, up to what may run then."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.security.extensions import chosen_profiles
from cuggino.security.roles import role_policy
from tests.security.judging import reason_of

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
def test_the_chosen_profiles_decide_which_programs_run(
    given: object, expected: list[str], tmp_path: Path
) -> None:
    """`extended` is a profile like a language: it comes only when named, and alone if alone."""
    policy = role_policy(
        "implementing", project=tmp_path, level="full", profiles=chosen_profiles(given)
    )
    assert expected == [command for command in COMMANDS if not reason_of(command, policy)]
