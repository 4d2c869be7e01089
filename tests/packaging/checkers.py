"""Type checkers, run on files that use the installed package."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.real_program import install

ROOT = Path(__file__).resolve().parents[2]
PYRIGHT = "1.1.414"
LIMIT = 600
"""Seconds; packages are downloaded."""

Errors = Mapping[str, int]
"""The number of errors by file name, without files that have none."""


def output(argv: Iterable[object], folder: Path) -> str:
    """Return the output of a checker, which exits with 1 if it reports errors."""
    done = subprocess.run(
        [str(arg) for arg in argv],
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def counted(names: Iterable[str]) -> Errors:
    listed = list(names)
    return {name: listed.count(name) for name in listed}


@dataclass(frozen=True)
class Checkers:
    """mypy of an environment with cuggino, and pyright."""

    python: Path
    pyright: Path

    def mypy(self, folder: Path) -> Errors:
        files = sorted(path.name for path in folder.glob("*.py"))
        argv = (self.python, "-m", "mypy", "--strict", "--no-incremental", *files)
        printed = output(argv, folder)
        assert f"{len(files)} source file" in printed, printed
        return counted(re.findall(r"^(\w+)\.py:\d+: error: ", printed, re.MULTILINE))

    def pyright_strict(self, folder: Path) -> Errors:
        (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
        argv = (self.pyright, "--pythonpath", self.python, "--outputjson")
        printed = json.loads(output(argv, folder))
        assert len(list(folder.glob("*.py"))) == printed["summary"]["filesAnalyzed"], printed
        return counted(Path(each["file"]).stem for each in printed["generalDiagnostics"])


def pyright() -> Path:
    """Return the program; the first call installs it."""
    name, package = f"pyright-{PYRIGHT}", f"pyright@{PYRIGHT}"
    return install(name, package, ".bin/pyright", ROOT / ".cache" / "typed")
