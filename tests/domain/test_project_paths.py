"""Names of test files, and differences between two states of paths."""

from __future__ import annotations

import pytest

from cuggino.domain import is_cache, is_test_file, path_changes


@pytest.mark.parametrize(
    "path",
    [
        "tests/a.py",
        "src/test_a.py",
        "pkg/a_test.go",
        "web/a.test.ts",
        "web/a.spec.tsx",
        "spec/a_spec.rb",
        *("spec/a.rb", "e2e/a.ts", "test/a.c"),
        "src/test/java/AppTest.java",
        "a/__tests__/b.js",
        "conftest.py",
    ],
)
def test_names_of_tests(path: str) -> None:
    """The usual names of test files and folders are known."""
    assert is_test_file(path)


@pytest.mark.parametrize("path", ["src/app.py", "src/latest.py", "contest.py", "testing.md"])
def test_names_of_others(path: str) -> None:
    """Words that merely contain `test` are not."""
    assert not is_test_file(path)


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        *(
            (path, True)
            for path in ("tests/__pycache__/a.pyc", "a.pyo", ".coverage", "x.egg-info/")
        ),
        *((path, False) for path in ("src/cache.py", "node_modules/a.js", "a.log", "coverage.py")),
    ],
)
def test_caches(path: str, is_one: bool) -> None:
    """What compilers and tests write again when it is gone."""
    assert is_one == is_cache(path)


def test_changes() -> None:
    """Added, changed and removed paths, sorted."""
    before, after = {"b": "1", "c": "1", "d": "1"}, {"a": "1", "b": "2", "d": "1"}
    assert [("a", "added"), ("b", "changed"), ("c", "removed")] == list(path_changes(before, after))
