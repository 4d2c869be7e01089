"""Where pyright is: it needs Node.js, which not every machine has."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

import pytest


def pyright(name: str) -> str:
    """Return the path of pyright's program; skip the test where it cannot run, but not in CI."""
    program = Path(sysconfig.get_path("scripts"), name)
    missing = "pyright is not installed" if not program.exists() else ""
    missing = missing or ("" if shutil.which("node") else "Node.js is not installed")
    if missing and os.environ.get("CI") == "true":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    return str(program)
