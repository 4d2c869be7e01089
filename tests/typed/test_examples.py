"""The examples of README, help pages, docstrings and `examples` satisfy mypy and pyright."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.typed.checkers import pyright
from tests.typed.examples import EXAMPLES, GIVEN, ROOT, Example, module_of, names_given

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every example as a module."""
    folder = tmp_path_factory.mktemp("examples")
    shutil.copy(GIVEN, folder)
    for example in EXAMPLES:
        (folder / example.file).write_text(module_of(example), encoding="utf-8")
    return folder


def test_examples_are_found() -> None:
    """Pages and docstrings have examples, each with a file of its own."""
    places = {example.place.split(" ")[0] for example in EXAMPLES}
    assert {"README", "library", "testing", "cuggino.__init__", "cuggino.runtime"} <= places
    assert len({example.file for example in EXAMPLES}) == len(EXAMPLES) > 25


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.place for example in EXAMPLES])
def test_an_example_compiles(example: Example) -> None:
    """With the imports that it needs, an example is a module."""
    assert "<module>" == compile(module_of(example), example.place, "exec").co_name


def test_every_given_name_is_needed() -> None:
    """A name that no example uses is not offered."""
    given = GIVEN.read_text(encoding="utf-8")
    modules = "\n".join(map(module_of, EXAMPLES))
    unused = [name for name in names_given() if not re.search(rf"import .*\b{name}\n", modules)]
    assert [] == [name for name in unused if len(re.findall(rf"\b{name}\b", given)) < 2]


@pytest.mark.real_agent
@pytest.mark.skipif(find_spec("mypy") is None, reason="no mypy here: pip install -e '.[dev]'")
def test_mypy(folder: Path) -> None:
    """No example has an error with `strict`."""
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    files = [*sorted(folder.glob("*.py")), *SCRIPTS]
    env = {**os.environ, "MYPYPATH": str(folder)}
    done = subprocess.run(
        [*command, *map(str, files)], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert (0, "") == (done.returncode, done.stderr), done.stdout


@pytest.mark.real_agent
@pytest.mark.skipif(find_spec("mypy") is None, reason="no mypy here: pip install -e '.[dev]'")
@pytest.mark.parametrize("package", ["cuggino", "cuggino_cli"])
def test_a_misspelled_name(package: str, tmp_path: Path) -> None:
    """What is imported on first use has names that a type checker knows, and no others."""
    file = tmp_path / "misspelled.py"
    file.write_text(f"import {package}\n\n{package}.nothing\n")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    done = subprocess.run([*command, str(file)], cwd=ROOT, capture_output=True, text=True)
    assert 'Module has no attribute "nothing"' in done.stdout


@pytest.mark.real_agent
def test_pyright(folder: Path) -> None:
    """No example has an error or a warning."""
    program = pyright("pyright")
    scripts = os.path.relpath(ROOT / "examples", folder)
    # The agent of Harbor needs its package, and with it Python 3.12.
    foreign = [f"{scripts}/harbor_agent.py"]
    settings = {
        "include": [".", scripts],
        "exclude": [f"{scripts}/own_project", *foreign],
        "pythonVersion": "3.11",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [program, "--pythonpath", sys.executable, "--project", str(folder), "--outputjson"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    report = json.loads(done.stdout)
    problems = [
        f"{one['file']}:{one['range']['start']['line'] + 1}: {one['message']}"
        for one in report["generalDiagnostics"]
    ]
    assert [] == problems
    checked = len(list(folder.glob("*.py"))) + len(SCRIPTS) - len(foreign)
    assert checked == report["summary"]["filesAnalyzed"]
