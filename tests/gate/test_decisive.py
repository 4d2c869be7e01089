"""Files that may decide what a check says, beside the work itself."""

from __future__ import annotations

import pytest

from cuggino.gate import may_decide


@pytest.mark.parametrize(
    "path",
    [
        *("tests/test_a.py", "src/a.test.ts", "conftest.py", "tests/data.txt"),
        *("check.sh", "lib/t.sh", "tools/chk", "Makefile", "build.mk", "ci/py.ini", "a.yml"),
        *("package.json", ".npmrc", ".env", ".gitattributes", "pyproject.toml", "setup.py"),
        *("jest.config.ts", ".eslintrc.js", "gulpfile.js", "tools/verify_all.py", "ci-check.js"),
        *("pytest.py", "pytest/__main__.py", "sitecustomize.py", "pkg/noxfile.py"),
    ],
)
def test_deciding(path: str) -> None:
    assert may_decide(path)


@pytest.mark.parametrize(
    "path",
    [
        *("src/app.py", "app.js", "pkg/m.go", "lib/latest.rs", "a.sql", "src/pytest_helper.py"),
        *("README.md", "docs/page.html", "logo.png", "a.txt", "data.csv", "src/tox_parser.py"),
    ],
)
def test_work(path: str) -> None:
    """Source code and text are the work, unless a pattern names them."""
    assert not may_decide(path)
    assert may_decide(path, patterns=[path])


@pytest.mark.parametrize(
    ("pattern", "path"), [("ci", "ci/run.py"), ("./ci/", "ci/run.py"), ("ci/*.py", "ci/run.py")]
)
def test_patterns(pattern: str, path: str) -> None:
    """A folder names all below it, a glob what it matches."""
    assert may_decide(path, patterns=[pattern])
    assert not may_decide("src/run.py", patterns=[pattern])
