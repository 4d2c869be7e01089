"""An environment with cuggino installed from its wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.checkers import LIMIT, ROOT
from tests.real_program import required


def _environment(folder: Path, source: Path) -> Path:
    python = folder / "bin" / "python"
    pip = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check")
    for argv in ((sys.executable, "-m", "venv", folder), (*pip, source, "mypy>=1.15")):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"cuggino cannot be installed: {done.stderr.strip()[-2000:]}")
    return python


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the sources of the wheel, so that they do not change during the tests."""
    folder = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in ("cuggino", "cuggino_cli"):
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=leave)
    return folder


@pytest.fixture(scope="session")
def installed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of the environment, which also has mypy."""
    folder = tmp_path_factory.mktemp("installed") / "environment"
    return required(lambda: _environment(folder, source))
