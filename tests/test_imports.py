"""Every module can be the first of the package that a program imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import cuggino

ROOT = Path(cuggino.__file__).parent.parent
PACKAGES = ("cuggino", "cuggino_cli")

ALONE = """
import importlib, os, sys
import git, mcp, prompt_toolkit, psutil, pydantic, reactivex.operators, watchdog.observers

for name in sys.stdin.read().split():
    if (child := os.fork()) == 0:
        try:
            importlib.import_module(name)
        except BaseException as error:
            print(f"{name}: {error!r}", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
"""Imports each in a copy of an interpreter that has the libraries, but nothing of the package."""


PARTS = 4
"""Of all modules, so that none takes too long on a slow machine."""


@pytest.mark.parametrize("part", range(PARTS))
def test_each_module_alone(part: int) -> None:
    """No module needs another one to have been imported before, and none goes round in circles."""
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    files = [file for file in files if file.stem != "__main__"]
    names = sorted(".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files)
    assert len(names) > 300
    ran = subprocess.run(
        [sys.executable, "-c", ALONE],
        input="\n".join(name.removesuffix(".__init__") for name in names[part::PARTS]),
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert ("", "") == (ran.stdout, ran.stderr)
