"""The table of modules matches the modules."""

from __future__ import annotations

import importlib

import pytest

from cuggino.guard.commands.table import MODULES, is_tool, judges_of


@pytest.mark.parametrize("module", MODULES)
def test_module_checks_the_programs_of_its_row(module: str) -> None:
    """The table lists exactly the programs that its modules check."""
    judges = importlib.import_module(f"cuggino.guard.commands.{module}").JUDGES
    assert set(judges) == set(MODULES[module])


def test_program_of_two_modules_is_checked_by_both() -> None:
    """`bun` starts other programs and runs inline code."""
    assert 2 == len(judges_of("bun"))
    assert [] == judges_of("vitest")
    assert is_tool("vitest")
    assert is_tool("npm")
    assert not is_tool("git")
