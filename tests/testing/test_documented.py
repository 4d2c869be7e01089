"""`cuggino_cli/help/testing.md` is correct: its Python runs, its names and links exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cuggino.testing
from cuggino import pytest_plugin as plugin
from tests.limits import LIMIT
from tests.vectors import each

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[2] / "cuggino_cli" / "help" / "testing.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.real_agent
def test_documented_python_runs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """All code blocks form one test file in which every test passes."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    tests = "\n".join(BLOCKS)
    pytester.makepyfile(tests)
    options = ("-p", "cuggino.pytest_plugin", "-p", "no:cacheprovider")
    result = pytester.runpytest_subprocess(*options, timeout=LIMIT)
    result.assert_outcomes(passed=tests.count("def test_"))
    assert tests.count("def test_") >= 6


def test_documented_names_exist() -> None:
    """Documented names of `cuggino.testing` and of the plugin exist."""
    names = set(re.findall(r"`(?:cuggino\.testing\.)?([A-Z]\w+)[`(]", TEXT))
    known = {*cuggino.testing.__all__, *vars(plugin)}
    elsewhere = {"Runtime", "SessionEnded", "AgentFailed"}
    assert names - known - elsewhere == set()
    assert {"Marbles", "VirtualRuntime", "Story", "MakeRuntime"} <= names


def test_documented_fixtures_are_complete() -> None:
    """The table lists exactly the fixtures of the plugin."""
    table = TEXT.partition("## Fixtures")[2].partition("\n## ")[0]
    told = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    made = {
        name for name, value in vars(plugin).items() if type(value).__name__.startswith("Fixture")
    }
    assert made == told


def test_documented_links_resolve() -> None:
    """Links to files and to sections resolve."""
    sections = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    }
    for link in re.findall(r"\]\(([^)]+)\)", TEXT):
        if link.startswith("#"):
            assert link[1:] in sections
        else:
            assert (PAGE.parent / link).exists(), link


@each("name", cuggino.testing.__all__)
def test_public_name(name: str) -> None:
    """Every public name resolves and has a docstring unless it is a plain alias."""
    value = getattr(cuggino.testing, name)
    assert not isinstance(value, type) or value.__doc__
