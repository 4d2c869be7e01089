"""The wheel: its contents, what runs from it, and its types for mypy and pyright."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.packaging.checkers import LIMIT, ROOT, Checkers, pyright
from tests.real_program import required

pytestmark = [pytest.mark.real_agent, pytest.mark.timeout(2 * LIMIT)]  # packages are downloaded

PACKAGES = ("cuggino", "cuggino_cli")
PROGRAMS = {f"../../../bin/{name}" for name in ("autonoe", "cuggino", "lopen")}

FILES = """
import importlib.metadata, json
print(json.dumps([str(path) for path in importlib.metadata.files("cuggino")]))
"""

IMPORTS = """
import importlib, json, pkgutil
import cuggino, cuggino_cli

NEEDED = {
    "cuggino.placement.dask": {"distributed"},
}
# What a room needs of its own extra.

done = []
# Skip modules that run on import, the demo's project, and what pytest loads.
leave = ("__main__", ".demo.project.test_project", ".pytest_plugin")
for package in (cuggino, cuggino_cli):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name.endswith(leave):
            continue
        try:
            done.append(importlib.import_module(module.name).__name__)
        except ModuleNotFoundError as missing:
            rooms = (room for room in NEEDED if (module.name + ".").startswith(room + "."))
            if missing.name.partition(".")[0] not in NEEDED.get(next(rooms, ""), ()):
                raise
print(json.dumps(done))
"""


def output_of(python: Path, *args: str, folder: Path) -> str:
    """Run a Python with warnings as errors and return its output."""
    done = subprocess.run(
        [python, "-W", "error", *args],
        cwd=folder,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_files(installed: Path, source: Path, tmp_path: Path) -> None:
    """The wheel has every file of the two packages and nothing else."""
    listed = json.loads(output_of(installed, "-c", FILES, folder=tmp_path))
    here = {
        path.relative_to(source).as_posix()
        for package in PACKAGES
        for path in (source / package).rglob("*")
        if path.is_file()
    }
    brought = {path for path in listed if ".dist-info/" not in path and not path.endswith(".pyc")}
    assert here | PROGRAMS == brought
    assert {"cuggino/py.typed", "cuggino_cli/py.typed"} <= brought
    assert "cuggino/report/templates/style.css" in brought
    assert "cuggino_cli/help/loops.md" in brought


def test_imports_without_extras(installed: Path, tmp_path: Path) -> None:
    """Every module can be imported without extras and without warnings, but for those of one."""
    assert len(json.loads(output_of(installed, "-c", IMPORTS, folder=tmp_path))) > 300


def test_demo_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    """The demo runs from the wheel without extras, and its report is written, without warnings."""
    place = str(tmp_path / "demo")
    played = output_of(
        installed, "-m", "cuggino_cli", "demo", "--directory", place, folder=tmp_path
    )
    assert "[Summary] Approved" in played
    output_of(installed, "-m", "cuggino_cli", "report", folder=Path(place))
    assert list(Path(place).rglob("*.html"))


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
