"""`py.typed`: mypy and pyright check code that uses the installed package."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.packaging.checkers import LIMIT, ROOT, Checkers, pyright
from tests.real_program import required

pytestmark = [pytest.mark.real_agent, pytest.mark.timeout(2 * LIMIT)]  # packages are downloaded

USER = ROOT / "tests" / "data" / "user_typed.py"


class Mistake(NamedTuple):
    """A mistake of a user: a part of the file and its replacement."""

    right: str
    wrong: str


MISTAKES = {
    "a_category_is_forgotten": Mistake("        case SupervisionEvent():", "        case Note():"),
    "a_field_that_is_not_there": Mistake("return marker.content", "return marker.contents"),
    "a_setting_of_another_type": Mistake("max_iterations=3", 'max_iterations="three"'),
    "an_event_is_no_text": Mistake("yield told(event)", "yield event"),
    "an_event_of_another_stream": Mistake("ops.map(spent)", "ops.map(kept), ops.map(spent)"),
    "an_option_of_another_type": Mistake("SpawnOptions(prompt=prompt", "SpawnOptions(prompt=5"),
    "an_option_that_is_not_there": Mistake('agent="claude"', 'agnet="claude"'),
    "half_an_agent": Mistake("    def spawn(self", "    def spwan(self"),
    "no_outcome_is_one_too": Mistake("words: str | None =", "words: str ="),
}


@pytest.fixture(scope="module")
def checkers(installed: Path) -> Checkers:
    return Checkers(python=installed, pyright=required(pyright))


@pytest.fixture
def right(tmp_path: Path) -> Path:
    """Create a folder with the user's file."""
    (tmp_path / USER.name).write_text(USER.read_text())
    return tmp_path


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """Create a folder with versions of the user's file, each with one mistake."""
    source = USER.read_text()
    for name, mistake in MISTAKES.items():
        assert 1 == source.count(mistake.right), f"{mistake.right!r} is not there once"
        (tmp_path / f"{name}.py").write_text(source.replace(mistake.right, mistake.wrong))
    return tmp_path


def test_mypy_accepts_correct_code(checkers: Checkers, right: Path) -> None:
    """Correct code passes mypy, strict."""
    assert {} == checkers.mypy(right)


def test_pyright_accepts_correct_code(checkers: Checkers, right: Path) -> None:
    """Correct code passes pyright, strict: no type of cuggino is unknown."""
    assert {} == checkers.pyright_strict(right)


def test_mypy_reports_mistakes(checkers: Checkers, wrong: Path) -> None:
    """mypy reports each mistake."""
    assert set(MISTAKES) == set(checkers.mypy(wrong))


def test_pyright_reports_mistakes(checkers: Checkers, wrong: Path) -> None:
    """pyright reports each mistake."""
    assert set(MISTAKES) == set(checkers.pyright_strict(wrong))
