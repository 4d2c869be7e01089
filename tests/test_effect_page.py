"""`cuggino help effect` is complete, what it says exists and runs, and rows not followed exist."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import reactivex as rx
from reactivex import operators as ops

import cuggino
from cuggino import operators
from tests.documents.effect_names import NAMES
from tests.vectors import DATA, rows

PAGE = (Path(__file__).parents[1] / "cuggino_cli/help/effect.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+?) \| (.+?) \|(?: (.+?))? \|$", PAGE, re.MULTILINE)
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

SECTIONS = {
    "Stream": r"## Stream: .*?(?=\n## Schedule\n)",
    "Schedule": r"\n## Schedule\n.*?(?=\n## )",
    "Scope": r"\n## Scope\n.*?(?=\n## )",
    "Layer": r"\n## Layer\n.*?(?=\n## )",
    "Ref": r"\n## Ref\n.*?(?=\n## )",
    "Deferred": r"\n## Deferred\n.*?(?=\n## )",
    "Cause": r"\n\| Effect: Cause \|.*?(?=\n\n)",
    "Exit": r"\n\| Effect: Exit \|.*?(?=\n\n)",
    "TestClock": r"\n## TestClock\n.*",
}
REFS = ("Ref", "SubscriptionRef", "SynchronizedRef")
SECTIONS |= dict.fromkeys(REFS, SECTIONS["Ref"])
OTHERS = {"Schedule": {"union", "intersect"}}
"""Names of Effect 3 that the tables give as well."""


def listed(module: str) -> list[str]:
    """Return the names in the first column of the module's tables."""
    found = re.search(SECTIONS[module], PAGE, re.DOTALL)
    assert found is not None
    first = re.findall(r"^\| (.+?) \|", found.group(), re.MULTILINE)
    return [name for cell in first for name in re.findall(r"`(\w+)`", cell)]


@pytest.mark.parametrize("module", NAMES)
def test_every_function_of_effect_has_a_row(module: str) -> None:
    """Each name of the module is in one row of its tables, and no row has another name."""
    names, public = listed(module), set(NAMES[module].split())
    if module in REFS:  # one table for the three
        public = {name for ref in REFS for name in NAMES[ref].split()}
    assert sorted(public | OTHERS.get(module, set())) == sorted(names)


def test_every_row_has_an_answer() -> None:
    """A row names what serves, or says why nothing is needed."""
    assert len(ROWS) > 90
    for effect, here, note in ROWS:
        answers = "`" in here or re.search(r"not needed: \w+", f"{here} {note}")
        assert effect.startswith(("Effect", "---")) or here == "here" or answers, effect


def test_names_of_this_side_exist() -> None:
    """Operators of RxPY, of `cuggino.operators`, and names of `cuggino` exist."""
    second = " ".join(f"{here} {note}" for _, here, note in ROWS)
    assert [] == [n for n in re.findall(r"`ops\.(\w+)", second) if not hasattr(ops, n)]
    assert [] == [n for n in re.findall(r"`rx\.(\w+)", second) if not hasattr(rx, n)]
    for name in re.findall(r"`cuggino\.(\w+)", second):
        assert hasattr(cuggino, name) or find_spec(f"cuggino.{name}"), name
    ours = {"flow", "retry_session", "repeat_on", "only", "merge_at_most", "StateRef", "managed"}
    ours |= {"interrupt_when", "acquire_release", "scoped", "catch_tag", "idle_timeout"}
    for name in ours:
        assert f"`{name}" in PAGE
        assert hasattr(operators, name)


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them in a row, with the assertions that they contain."""
    monkeypatch.chdir(tmp_path)
    code = "\n".join(BLOCKS)
    assert code.count("\nassert ") >= 10
    exec(compile(code, "effect.md", "exec"), {"__name__": "effect"})


@pytest.mark.parametrize("wrong", ["assert seen == []", "assert changes == [2]"])
def test_a_wrong_example_fails(wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The assertions are executed."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError):
        exec(compile("\n".join([*BLOCKS, wrong]), "effect.md", "exec"), {"__name__": "effect"})


NOT_FOLLOWED = (DATA / "NOT_FOLLOWED.md").read_text(encoding="utf-8")
LEFT_OUT = dict(re.findall(r"^## (\w+)$(.*?)(?=^## |\Z)", NOT_FOLLOWED, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("name", LEFT_OUT)
def test_sections_list_rows_of_their_file(name: str) -> None:
    """Each section is a case file, each line a distinct row of it with a reason."""
    lines = [line for line in LEFT_OUT[name].splitlines() if line.startswith("| ")][1:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert {2} == {len(row) for row in cells}
    ids = [row[0].strip("`") for row in cells]
    assert len(set(ids)) == len(ids) > 0
    assert set(ids) <= {row["id"] for row in rows(name)}
    assert all(len(row[1]) > 10 for row in cells)
