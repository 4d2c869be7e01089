"""Files that may decide what a check says, beside the work itself."""

from __future__ import annotations

import pytest

from cuggino.gate import deciding_files, ran_nothing

CHANGED = (
    *("tests/test_a.py", "src/a.test.ts", "conftest.py", "tests/data.txt"),
    *("check.sh", "lib/t.sh", "tools/chk", "Makefile", "build.mk", "ci/py.ini", "Taskfile.yml"),
    *("package.json", ".npmrc", ".env", ".gitattributes", "pyproject.toml", "setup.py"),
    *("jest.config.ts", ".eslintrc.js", "gulpfile.js", "tools/verify_all.py", "ci-check.js"),
    *("pytest.py", "pytest/__main__.py", "pkg/noxfile.py", "pom.xml"),
    *("scripts/common.inc", "ci/rules.json", "t/a.t", "expected.txt", "pkg/testdata/a.json"),
)
ADDED = (
    *("tests/test_a.py", "tests/conftest.py", "setup.cfg", "pytest.toml", ".pytest.ini"),
    *("pytest.py", "unittest/case.py", "sitecustomize.py", "tools/make", "GNUmakefile", ".npmrc"),
    *("vitest.config.ts", "pyproject.toml", "mypy.ini", "src/ruff.toml", "biome.json", "pylintrc"),
    *("local.mk", "scripts/local.sh", "settings_local.py"),
)
WORK = (
    *("src/app.py", "app.js", "pkg/m.go", "lib/latest.rs", "a.sql", "src/pytest_helper.py"),
    *("README.md", "docs/page.html", "logo.png", "a.txt", "data.csv", "src/tox_parser.py"),
    *("data.json", "locales/de.yml"),
)


@pytest.mark.parametrize("path", CHANGED)
def test_changed(path: str) -> None:
    """Tests, scripts and settings that the start had in another version."""
    assert (path,) == deciding_files([path], [], had_tests=False)


@pytest.mark.parametrize("path", ADDED)
def test_added(path: str) -> None:
    """Tests, and what changes how programs check as soon as it exists."""
    assert (path,) == deciding_files([], [path], had_tests=True)


@pytest.mark.parametrize("path", ["correct", "run.sh", "Makefile", "package.json", *WORK])
def test_added_work(path: str) -> None:
    """New scripts and build files are the work: nothing was there to be weakened."""
    assert () == deciding_files([], [path], had_tests=True)


def test_the_first_tests() -> None:
    """They can weaken nothing, and go with the settings on which they rest."""
    assert () == deciding_files([], ["tests/test_a.py", "src/a_test.go"], had_tests=False)
    added = ["pyproject.toml", "src/x.py", "tests/test_a.py"]
    expected = ("pyproject.toml", "tests/test_a.py")
    assert expected == deciding_files([], added, had_tests=False)
    assert expected == deciding_files(["pyproject.toml"], added[1:], had_tests=False)


@pytest.mark.parametrize("path", WORK)
def test_work(path: str) -> None:
    """Source code and text are the work, unless a pattern names them."""
    assert () == deciding_files([path], [], had_tests=True)
    assert (path,) == deciding_files([path], [path], had_tests=True, patterns=[path])


@pytest.mark.parametrize("pattern", ["ci", "./ci/", "ci/*.py"])
def test_patterns(pattern: str) -> None:
    """A folder names all below it, a glob what it matches."""
    paths = ["ci/run.py", "src/run.py"]
    assert ("ci/run.py",) == deciding_files(paths, paths, had_tests=False, patterns=[pattern])


@pytest.mark.parametrize(
    ("output", "nothing"),
    [
        ("no tests ran in 0.01s", True),
        ("Ran 0 tests in 0.000s", True),
        ("No test files found, exiting with code 1", True),
        ("Error: no test specified", True),
        ('npm error Missing script: "test"', True),
        ("ImportError: Start directory is not importable: 'tests'", True),
        ("Could not find 'test/*.test.js'", True),
        ("make: *** No rule to make target 'test'.  Stop.", True),
        ("make: *** No rule to make target 'a.c', needed by 'test'.  Stop.", False),
        ("1 failed in 0.01s", False),
        ("Ran 10 tests in 0.1s", False),
    ],
)
def test_ran_nothing(output: str, nothing: bool) -> None:
    """A check that finds no test says nothing about the work."""
    assert nothing == ran_nothing(output)


def test_not_executable() -> None:
    """A script that could not be executed at the start has said nothing."""
    assert ran_nothing("sh: ./app.sh: Permission denied", exit_code=126)
    assert not ran_nothing("open: Permission denied", exit_code=1)
