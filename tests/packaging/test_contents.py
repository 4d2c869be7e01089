"""What the wheel brings, and what runs from it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.packaging.checkers import LIMIT

PACKAGES = ("cuggino", "cuggino_cli")
PROGRAMS = {"../../../bin/cuggino", "../../../bin/lopen"}

FILES = """
import importlib.metadata, json
print(json.dumps([str(path) for path in importlib.metadata.files("cuggino")]))
"""

IMPORTS = """
import importlib, json, pkgutil
import cuggino, cuggino_cli

done = []
# Not what runs on its import, what is somebody else's project, and what pytest loads.
leave = ("__main__", ".demo.project.test_project", ".testing.plugin")
for package in (cuggino, cuggino_cli):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith(leave):
            done.append(importlib.import_module(module.name).__name__)
print(json.dumps(done))
"""


def said(python: Path, *args: str, folder: Path) -> str:
    """What a Python prints; no warning is let pass."""
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


@pytest.mark.timeout(2 * LIMIT)
def test_all_of_the_packages_and_nothing_else(
    installed: Path, source: Path, tmp_path: Path
) -> None:
    """The wheel has each file of the two packages: no cache, no test, and no other package."""
    listed = json.loads(said(installed, "-c", FILES, folder=tmp_path))
    here = {
        path.relative_to(source).as_posix()
        for package in PACKAGES
        for path in (source / package).rglob("*")
        if path.is_file()
    }
    brought = {path for path in listed if ".dist-info/" not in path and not path.endswith(".pyc")}
    assert here | PROGRAMS == brought
    assert {"cuggino/py.typed", "cuggino_cli/py.typed", "cuggino/report/page.js"} <= brought


@pytest.mark.timeout(2 * LIMIT)
def test_every_module_without_an_extra(installed: Path, tmp_path: Path) -> None:
    """Every module can be imported where no extra is installed, and none gives a warning."""
    assert len(json.loads(said(installed, "-c", IMPORTS, folder=tmp_path))) > 300


@pytest.mark.timeout(2 * LIMIT)
def test_the_demo_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    """The demo plays from what the wheel brings, and no Python that it starts gives a warning."""
    place = str(tmp_path / "demo")
    played = said(installed, "-m", "cuggino_cli", "demo", "--directory", place, folder=tmp_path)
    assert "[Summary] Approved" in played
