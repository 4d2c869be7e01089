"""Package doors whose names are imported on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package.

    `names` maps each module, relative to the package, to the public names that it defines,
    separated by spaces. Type checkers read the same names from `__init__.pyi`, which
    `python -m tests.stubs` writes.
    """
    homes = {name: module for module, listed in names.items() for name in listed.split()}
    exported = sorted(homes)

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: list(exported), exported
