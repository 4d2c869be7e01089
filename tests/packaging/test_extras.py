"""The extra `test`, all that README's command for the tests installs."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TESTS = Path(__file__).parents[1]
KNOWN = {*sys.stdlib_module_names, "cuggino", "cuggino_cli", "tests"}


def installed_by(extra: str) -> set[str]:
    """Return the distributions that an extra of cuggino names, with those of its own extras."""
    named = [
        requirement
        for requirement in map(Requirement, requires("cuggino") or ())
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra})
    ]
    inner = {inner for item in named if item.name == "cuggino" for inner in item.extras}
    return {canonicalize_name(item.name) for item in named}.union(*map(installed_by, inner))


def imported(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the first names of the modules that a file imports whenever it is loaded."""
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from (alias.name.split(".")[0] for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module.split(".")[0]


def test_every_test_loads_with_the_extra_test() -> None:
    """No test file imports what only the extra `dev` installs, or what came with something else."""
    owners = packages_distributions()
    given = installed_by("test")
    missing = {
        (str(file.relative_to(TESTS)), module)
        for file in TESTS.rglob("*.py")
        for module in imported(ast.parse(file.read_text(encoding="utf-8")).body)
        if module not in KNOWN
        and not given & {canonicalize_name(name) for name in owners.get(module, ())}
    }
    assert set() == missing
