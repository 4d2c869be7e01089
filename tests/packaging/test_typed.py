"""`py.typed`: what a user writes on the installed package is checked, by mypy and by pyright."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.packaging.checkers import LIMIT, ROOT, Checkers, pyright
from tests.real_program import required

USER = ROOT / "tests" / "data" / "user_typed.py"


class Slip(NamedTuple):
    """What a user might get wrong: a piece of the file, and what stands in its place."""

    right: str
    wrong: str


SLIPS = {
    "a_category_is_forgotten": Slip("        case PolicyEvent():", "        case Note():"),
    "a_field_that_is_not_there": Slip("return marker.content", "return marker.contents"),
    "a_setting_of_another_type": Slip("max_iterations=3", 'max_iterations="three"'),
    "an_event_is_no_text": Slip("yield told(event)", "yield event"),
    "an_event_of_another_stream": Slip("ops.map(spent)", "ops.map(kept), ops.map(spent)"),
    "an_option_of_another_type": Slip("SpawnOptions(prompt=prompt", "SpawnOptions(prompt=5"),
    "an_option_that_is_not_there": Slip('agent="claude"', 'agnet="claude"'),
    "half_an_agent": Slip("    def check(self)", "    def czech(self)"),
    "no_outcome_is_one_too": Slip("words: str | None =", "words: str ="),
}


@pytest.fixture(scope="module")
def checkers(installed: Path) -> Checkers:
    return Checkers(python=installed, pyright=required(pyright))


@pytest.fixture
def right(tmp_path: Path) -> Path:
    """A folder with the user's file."""
    (tmp_path / USER.name).write_text(USER.read_text())
    return tmp_path


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """A folder with the user's file in several versions, in each of which one thing is wrong."""
    source = USER.read_text()
    for name, slip in SLIPS.items():
        assert 1 == source.count(slip.right), f"{slip.right!r} is not there once"
        (tmp_path / f"{name}.py").write_text(source.replace(slip.right, slip.wrong))
    return tmp_path


@pytest.mark.timeout(2 * LIMIT)
def test_mypy_finds_nothing_to_say(checkers: Checkers, right: Path) -> None:
    """What a user writes passes mypy, strict, with cuggino installed from its wheel."""
    assert {} == checkers.mypy(right)


@pytest.mark.timeout(2 * LIMIT)
def test_pyright_finds_nothing_to_say(checkers: Checkers, right: Path) -> None:
    """What a user writes passes pyright, strict: no type of cuggino is unknown."""
    assert {} == checkers.pyright_strict(right)


@pytest.mark.timeout(2 * LIMIT)
def test_mypy_finds_each_slip(checkers: Checkers, wrong: Path) -> None:
    """Each thing that a user gets wrong is an error to mypy."""
    assert set(SLIPS) == set(checkers.mypy(wrong))


@pytest.mark.timeout(2 * LIMIT)
def test_pyright_finds_each_slip(checkers: Checkers, wrong: Path) -> None:
    """Each thing that a user gets wrong is an error to pyright."""
    assert set(SLIPS) == set(checkers.pyright_strict(wrong))
