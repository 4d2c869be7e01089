"""A short comparison with bash; the long one is `python -m tests.fuzz_shell`."""

from __future__ import annotations

import os
import shutil

import pytest

from cuggino.guard.shell.parser import parse
from cuggino.guard.shell.shfmt import find_shfmt
from tests.fuzz_shell import bash_version, compare, is_seen, is_target, isolation, main, runs
from tests.fuzz_shell_grammar import Snippets

BASH = shutil.which("bash") or ""
pytestmark = pytest.mark.skipif(
    not os.environ.get("CI") and (not BASH or bash_version(BASH) < 5),
    reason="the parser is compared with bash from version 5 on",
)


@pytest.mark.real_agent
def test_every_command_of_bash_is_in_the_tree() -> None:
    """Of 150 snippets, every command that bash would run is in the tree."""
    made = Snippets(4)
    found = compare(
        [made.snippet() for _ in range(150)], shfmt=find_shfmt(), bash=BASH, wrapper=isolation()
    )
    assert [] == found.misses
    assert 40 < found.counts["snippets that ran something"]


def test_the_oracle() -> None:
    """The oracle reports the words that bash would run for each branch, and its files."""
    first, second = runs(["w1 'a b' $(w2); w3 || w4", "w5 > o6"], bash=BASH, wrapper=isolation())
    assert {("w1", "a b"), ("w2",), ("w3",), ("w4",)} == {tuple(words) for words in first.commands}
    assert ([["w5"], ["w5"]], ["o6"]) == second


@pytest.mark.parametrize(
    ("ran", "is_there"),
    [
        (["w1", "a b", "x", "y"], True),
        (["w1", "a b"], True),
        (["w1", "a", "b"], False),
        (["w2", "a b"], False),
        (["w3"], True),
    ],
)
def test_a_miss_is_seen(ran: list[str], is_there: bool) -> None:
    """A command that bash ran is compared by its words; an unknown word matches any."""
    tree = parse("w1 'a b' $(w3)", shfmt=find_shfmt())
    assert is_there == is_seen(ran, tree)


@pytest.mark.parametrize(("name", "is_there"), [("o1", True), ("x y", True), ("o2", False)])
def test_an_unexpected_file_is_a_miss(name: str, is_there: bool) -> None:
    """A file that bash created is compared with the targets of the tree."""
    tree = parse("w1 > o1; w2 $(w3 2>> 'x y')", shfmt=find_shfmt())
    assert is_there == is_target(name, tree)


def test_the_command_counts(capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints its counts and exits with 0 when nothing was missed."""
    assert 0 == main(["--count", "20", "--seed", "3"])
    assert "snippets: 20" in capsys.readouterr().out
