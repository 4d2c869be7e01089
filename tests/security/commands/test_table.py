"""The table of modules is what the modules themselves say."""

from __future__ import annotations

import importlib

import pytest

from cuggino.security.commands.table import MODULES, is_tool, judges_of


@pytest.mark.parametrize("module", MODULES)
def test_a_module_judges_the_programs_of_its_line(module: str) -> None:
    """No program is missing in the table, and none stands there that nothing judges."""
    judges = importlib.import_module(f"cuggino.security.commands.{module}").JUDGES
    assert set(judges) == set(MODULES[module])


def test_a_program_of_two_modules_is_judged_by_both() -> None:
    """`bun` starts other programs, and runs code that it is given."""
    assert 2 == len(judges_of("bun"))
    assert [] == judges_of("vitest")
    assert is_tool("vitest")
    assert is_tool("npm")
    assert not is_tool("git")
