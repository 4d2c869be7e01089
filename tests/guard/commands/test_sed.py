"""Files that a sed script writes and commands that it runs."""

from __future__ import annotations

import pytest

from cuggino.guard.commands.sed import Effect, effects


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("s/a/b/", []),
        ("s/w x/e y/g", []),
        ("s|w /x|y|", []),
        ("s/a/b/w out", [Effect(file="out")]),
        ("s/a/b/gw out", [Effect(file="out")]),
        ("s/[/]\\/w/b/e", [Effect(runs=True)]),
        ("1e id", [Effect(runs=True)]),
        ("/x/,$ e id", [Effect(runs=True)]),
        ("/w/w out", [Effect(file="out")]),
        ("1,3{p;w out\n}", [Effect(file="out")]),
        ("$!W out", [Effect(file="out")]),
        ("\\,w a,d", []),
        ("a\\\nw out\np", []),
        ("a w out", []),
        ("y/we/xy/;p", []),
        ("/word w x/p", []),
        ("r in;w out", []),
        (":w;b w", []),
        ("# w out\ne", [Effect(runs=True)]),
    ],
)
def test_effects_of_a_script(script: str, found: list[Effect]) -> None:
    """Addresses, texts, labels and delimiters are parsed as in sed."""
    assert found == list(effects(script))
