"""The table of rules by program."""

from __future__ import annotations

from cuggino.guard.commands.table import KNOWN, is_tool, judges_of


def test_every_program_has_its_rules() -> None:
    """Each row of the table is a function, with a program of two rows judged by both."""
    assert all(map(callable, (judge for name in KNOWN for judge in judges_of(name))))
    assert 2 == len(judges_of("bun"))
    assert [] == judges_of("vitest")
    assert is_tool("vitest")
    assert is_tool("npm")
    assert not is_tool("git")
    assert not is_tool("rm")
