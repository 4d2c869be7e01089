"""Names that are imported, and patterns that are compiled, on first use."""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, AnyStr, cast


def lazy(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package.

    `names` maps each module to the names that the package exports from it, separated by spaces.
    Modules are relative to the package, or begin with `cuggino.`. Type checkers read the same names
    from `__init__.pyi`, which `python -m tests.stubs` writes.
    """
    homes = {name: module for module, listed in names.items() for name in listed.split()}
    exported = sorted(homes)

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(module_name(package, homes[name])), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: list(exported), exported


def module_name(package: str, module: str) -> str:
    """Return the full name of a module in the table of a package."""
    return module if module.startswith("cuggino.") else f"{package}.{module}"


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern whose methods work as those of `re.compile`, which is called on first use.

    For modules with long patterns that most runs never search for.
    """
    return cast("re.Pattern[AnyStr]", _Pattern(text, flags))


class _Pattern:
    def __init__(self, text: str | bytes, flags: int) -> None:
        self._compile: Callable[[], re.Pattern[Any]] = functools.partial(re.compile, text, flags)

    @functools.cached_property
    def _compiled(self) -> re.Pattern[Any]:
        return self._compile()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._compiled, name)
        setattr(self, name, value)
        return value
