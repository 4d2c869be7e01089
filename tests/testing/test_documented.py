"""What `docs/testing.md` says is true: its Python runs, its names and links exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cuggino.testing
from cuggino.testing import plugin

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_its_python_runs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """All its blocks are one file of tests, in which every test passes."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    tests = "\n".join(BLOCKS)
    pytester.makepyfile(tests)
    options = ("-p", "cuggino.testing.plugin", "-p", "no:cacheprovider")
    result = pytester.runpytest_subprocess(*options, timeout=100)
    result.assert_outcomes(passed=tests.count("def test_"))
    assert tests.count("def test_") >= 6


def test_its_names_exist() -> None:
    """What it tells of `cuggino.testing` and of the plugin is there."""
    names = set(re.findall(r"`(?:cuggino\.testing\.)?([A-Z]\w+)[`(]", TEXT))
    known = {*cuggino.testing.__all__, *vars(plugin)}
    elsewhere = {"Runtime", "SessionEnded", "AgentFailed"}
    assert names - known - elsewhere == set()
    assert {"Marbles", "VirtualRuntime", "Story", "MakeRuntime"} <= names


def test_its_fixtures_exist() -> None:
    """The table has every fixture of the plugin, and no other."""
    table = TEXT.partition("## Fixtures")[2].partition("\n## ")[0]
    told = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    made = {
        name for name, value in vars(plugin).items() if type(value).__name__.startswith("Fixture")
    }
    assert made == told


def test_its_links_lead_somewhere() -> None:
    """Links to files lead to files, links to sections to sections."""
    sections = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    }
    for link in re.findall(r"\]\(([^)]+)\)", TEXT):
        if link.startswith("#"):
            assert link[1:] in sections
        else:
            assert (PAGE.parent / link).exists(), link


@pytest.mark.parametrize("name", cuggino.testing.__all__)
def test_a_public_name(name: str) -> None:
    """Every public name resolves, and those that are no plain alias say what they are."""
    value = getattr(cuggino.testing, name)
    assert not isinstance(value, type) or value.__doc__


def test_the_public_names() -> None:
    """They are sorted, each has a home, and an unknown one is the usual error."""
    assert sorted(cuggino.testing._HOME) == cuggino.testing.__all__ == dir(cuggino.testing)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = cuggino.testing.nothing
