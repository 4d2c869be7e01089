"""Type stubs of the packages whose public names are imported on first use.

`python -m tests.stubs` writes them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path

from cuggino._lazy import module_name

PACKAGES = (
    "cuggino",
    "cuggino.agents",
    "cuggino.agents.cassettes",
    "cuggino.config",
    "cuggino.doctor",
    "cuggino.domain",
    "cuggino.events",
    "cuggino.forge",
    "cuggino.guard",
    "cuggino.guard_audit",
    "cuggino.loops",
    "cuggino.notify",
    "cuggino.placement",
    "cuggino.placement.dask",
    "cuggino.prompts",
    "cuggino.report",
    "cuggino.runs",
    "cuggino.sandbox",
    "cuggino.sources",
    "cuggino.stages",
    "cuggino.stages.slots",
    "cuggino.storage",
    "cuggino.storage.journal",
    "cuggino.telemetry",
    "cuggino.testing",
    "cuggino.trust",
    "cuggino.web",
)


def stub_file(package: str) -> Path:
    """Return the path of a package's stub."""
    return Path(str(importlib.import_module(package).__file__)).with_suffix(".pyi")


def ruff_sorted(names: Iterable[str], key: Callable[[str], str] = str) -> list[str]:
    """Return the names as ruff sorts them: constants, classes, functions."""
    return sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), key(name)))


def stub_text(package: str) -> str:
    """Return the stub that a package's table of names stands for."""
    door = importlib.import_module(package)
    lines = [f'"""Public names of `{package}`; written by `python -m tests.stubs`."""', ""]
    tables = sorted((module_name(package, module), names) for module, names in door.NAMES.items())
    for module, names in tables:
        lines.append(f"from {module} import (")
        lines += [f"    {name}," for name in ruff_sorted(names.split(), str.lower)]
        lines.append(")")
    lines += ["", "__all__ = ["]
    lines += [f'    "{name}",' for name in ruff_sorted(door.__all__)]
    return "\n".join([*lines, "]", ""])


if __name__ == "__main__":
    for name in PACKAGES:
        stub_file(name).write_text(stub_text(name), encoding="utf-8")
