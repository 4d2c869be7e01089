"""Files that a check command rests on, test files, and differences between two states."""

from __future__ import annotations

import pytest

from cuggino.domain import (
    begins_test,
    files_of_command,
    is_named,
    is_test_file,
    path_changes,
    skips_tests,
)


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("./check.sh", {"check.sh"}),
        ("sh ci/check.sh --fast", {"ci/check.sh"}),
        ("make test", {"Makefile", "GNUmakefile"}),
        ("npm ci && npm test", {"package.json"}),
        ("cd app && ./run.sh", {"app/run.sh", "run.sh"}),
        ("bash -c 'ruff check . && scripts/test.sh'", {"scripts/test.sh"}),
        ('FAST=1 "./my check.sh"', {"my check.sh"}),
        ("(cd a; make)&&b.sh>out", {"a/Makefile", "b.sh"}),
        ("unclosed 'quote check.sh", {"check.sh"}),
        ("sh ci/check@2,fast.sh", {"ci/check@2,fast.sh"}),
        ("cd && check.sh", {"check.sh"}),
    ],
)
def test_files_of_a_command(command: str, files: set[str]) -> None:
    """Words, also within quotes and after `cd`, and what programs read by themselves."""
    assert files <= set(files_of_command(command))


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


def test_changes() -> None:
    """Added, changed and removed paths, sorted."""
    before, after = {"b": "1", "c": "1", "d": "1"}, {"a": "1", "b": "2", "d": "1"}
    assert [("a", "added"), ("b", "changed"), ("c", "removed")] == list(path_changes(before, after))


@pytest.mark.parametrize("path", ["ci/check.sh", "check.sh"])
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("check.sh is new", True),
        ("see ci/check.sh.", True),
        ("recheck.sh", False),
        ("ci/check.shell", False),
    ],
)
def test_named(path: str, text: str, named: bool) -> None:
    """A text names a file by its path or its name, as a whole word."""
    assert named == is_named(path, text)


@pytest.mark.parametrize(
    "line",
    [
        *("@pytest.mark.skip", '    @pytest.mark.skipif(True, reason="x")', "@mark.xfail"),
        *('    pytest.skip("later")', "pytestmark = pytest.mark.skip", "@unittest.skip('x')"),
        *("@skip('x')", "        self.skipTest('x')", "@expectedFailure"),
        *("it.skip('a', () => {", "test.only('a', f)", "describe.only('a', f)", "it.todo('a')"),
        *("xit('a', f)", "  fdescribe('a', f)", "@Disabled", '@Disabled("x")', "@Ignore"),
        *("[Ignore]", '[Fact(Skip = "x")]', 't.Skip("x")', "\tt.SkipNow()", "#[ignore]"),
        *("throw XCTSkip()", "$this->markTestSkipped('x');", "  skip 'later'", "  pending"),
    ],
)
def test_skip_markers(line: str) -> None:
    """The usual ways to skip a test, or to run only another, are recognized."""
    assert skips_tests(line)


@pytest.mark.parametrize(
    "line",
    [
        *("assert skip(it)", "def test_skip() -> None:", "skipped = 3", "rows.skip(2)"),
        *("xit = 3", "fit(model)", "expect(only).toBe(1)", "exit('a')", "transmit('x')"),
        *("skip = read()", "state = pending", "await page.skip()", "@only_linux", "git.Skip"),
    ],
)
def test_other_lines(line: str) -> None:
    """Code that is merely called alike is none."""
    assert not skips_tests(line)


@pytest.mark.parametrize(
    "line",
    [
        *("def test_a() -> None:", "    async def test_b(self):", "func TestA(t *testing.T) {"),
        *("@Test", "[Fact]", "#[test]", "#[tokio::test]", "it('adds', f)", 'test("adds", f)'),
        *("  it.each('a', f)", "test.only('a', f)", "  it 'adds' do"),
    ],
)
def test_beginnings_of_tests(line: str) -> None:
    """The usual ways to begin a test are recognized."""
    assert begins_test(line)


@pytest.mark.parametrize("line", ["    assert test(x)", "attest('x')", "exit('a')", "testing = 1"])
def test_no_beginnings_of_tests(line: str) -> None:
    """Other lines begin none."""
    assert not begins_test(line)
