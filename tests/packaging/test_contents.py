"""Contents of the wheel, and what runs from it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.packaging.checkers import LIMIT

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
