"""The failures in the output of checks, from outputs of the real programs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st

from cuggino.gate import Failures, failures_in, new_since, same
from tests.growth import is_linear

OUTPUTS = Path(__file__).parents[1] / "data" / "check_outputs"

PYTEST = """
tests/test_a.py::TestC::test_in
tests/test_a.py::U::test_sub(i=0)
tests/test_a.py::U::test_sub(i=2)
tests/test_a.py::U::test_u
tests/test_a.py::test_bad
tests/test_a.py::test_param[a - b]
tests/test_a.py::test_param[a b]
tests/test_a.py::test_param[x[1]]
tests/test_a.py::test_setup
tests/test_b.py
"""

NAMES = {
    "pytest_q": PYTEST,
    "pytest_color": PYTEST,
    "pytest_xdist": PYTEST,
    "pytest_headings": """
        TestC.test_in
        U.test_sub (i=0)
        U.test_sub (i=2)
        U.test_u
        test_bad
        test_param[a - b]
        test_param[a b]
        test_param[x[1]]
        test_setup
        tests/test_b.py
    """,
    "unittest": """
        test_sub (tests.test_a.U.test_sub) (i=0)
        test_sub (tests.test_a.U.test_sub) (i=2)
        test_u (tests.test_a.U.test_u)
        tests.test_b (unittest.loader._FailedTest.tests.test_b)
    """,
    "go": """
        broken/broken.go: undefined: missing
        example.com/demo TestBad
        example.com/demo TestTable
        example.com/demo TestTable/two_words
        example.com/demo/broken
        example.com/demo/other TestBad
    """,
    "go_json": """
        example.com/demo TestBad
        example.com/demo/broken
    """,
    "cargo": """
        src/lib.rs - f (line 1)
        tests::bad
        tests::worse
    """,
    "rustc": """
        src/lib.rs: error[E0308]: mismatched types
        src/lib.rs: error[E0425]: cannot find value `y` in this scope
    """,
    "node_tap": """
        suite > does not
        suite > inner > does not
        top bad
    """,
    "node_spec": """
        a.test.js > does not
        a.test.js > does not (2)
        a.test.js > top bad
    """,
    "junit": """
        test::does not
        test::todo one
        test::top bad
    """,
    "jest": """
        ./a.test.js › suite › does not
        ./a.test.js › top bad
        ./b.test.js › Test suite failed to run
    """,
    "vitest": """
        a.test.mjs > suite > does not
        a.test.mjs > top bad
        b.test.mjs [ b.test.mjs ]
    """,
    "ruff": """
        n.py: F401 [*] `os` imported but unused
        n.py: F821 Undefined name `undefined`
        n.py: I001 [*] Import block is un-sorted or un-formatted
    """,
    "ruff_concise": """
        n.py: F401 [*] `os` imported but unused
        n.py: F821 Undefined name `undefined`
        n.py: I001 [*] Import block is un-sorted or un-formatted
    """,
    "mypy": """
        n.py: error: Incompatible types in assignment (expression has type "str", variable has \
type "int")  [assignment]
        n.py: error: Name "undefined" is not defined  [name-defined]
    """,
}
"""The names in each output."""


def _output(name: str) -> str:
    return (OUTPUTS / f"{name}.txt").read_text(encoding="utf-8")


def _names(text: str) -> set[str]:
    return {line.strip() for line in text.strip().splitlines()}


def _noted(output: str) -> Failures:
    return failures_in(output, folder="/home/me/py")


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    found = _noted(_output(name))
    assert _names(NAMES[name]) == found.names
    assert found.is_complete


def test_every_output_has_its_names() -> None:
    assert {*NAMES, "pytest_inline"} == {path.stem for path in OUTPUTS.iterdir()}


def test_names_without_a_summary() -> None:
    """Without pytest's summary, the lines of its tests count, which are not all failures."""
    found = failures_in(_output("pytest_inline"))
    assert "tests/test_a.py::test_param[a - b]" in found.names
    assert not found.is_complete
    assert None is new_since(found, failures_in(_output("pytest_q")))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "".join(f"\x1b[31m{line}\x1b[0m" for line in text.splitlines(keepends=True)),
        lambda text: "npm run test\n" + "x" * 500 + "\n" + text + "make: *** [test] Error 1\n",
        lambda text: "\n".join(f"{line}   " for line in text.split("\n")),
        lambda text: "50%\r" + text.replace("\n", "\n10%\r20%\r"),
    ],
    ids=["crlf", "colors", "surrounded", "padded", "progress"],
)
def test_names_in_other_shapes(name: str, change: object) -> None:
    assert callable(change)
    found = _noted(change(_output(name)))
    assert _names(NAMES[name]) == found.names
    assert found.is_complete


COUNTED = (
    *("pytest_q", "pytest_color", "unittest", "node_tap", "node_spec"),
    *("ruff", "ruff_concise", "mypy"),
)


@pytest.mark.parametrize("name", COUNTED)
def test_a_cut_output_is_not_complete(name: str) -> None:
    """Where summaries count failures, a failure that was cut off is noticed."""
    lines = _output(name).splitlines()
    whole = _noted("\n".join(lines)).names
    cut = [_noted("\n".join(lines[index:])) for index in range(len(lines))]
    partial = [found for found in cut if found.names and found.names != whole]
    assert partial
    assert {False} == {found.is_complete for found in partial}


MIXED = [
    ("pytest_q", "jest"),
    ("unittest", "go"),
    ("mypy", "pytest_xdist"),
    ("ruff", "cargo"),
    ("node_tap", "vitest"),
    ("go_json", "ruff_concise"),
]


@pytest.mark.parametrize(("first", "second"), MIXED)
def test_several_programs(first: str, second: str) -> None:
    found = _noted(f"{_output(first)}\n{_output(second)}")
    assert _names(NAMES[first]) | _names(NAMES[second]) == found.names


OTHER = {
    "tsc": (
        "src/a.ts(3,5): error TS2322: Type 'string' is not assignable.\n"
        "src/b.ts:7:1 - error TS1005: ';' expected.\n\nFound 2 errors in 2 files.\n",
        {
            "src/a.ts: error TS2322: Type 'string' is not assignable.",
            "src/b.ts: error TS1005: ';' expected.",
        },
    ),
    "gcc": (
        "src/a.c: In function 'main':\nsrc/a.c:3:5: error: 'x' undeclared\n"
        "src/a.c:9:1: warning: unused\nsrc/a.c:8:5: error: 'x' undeclared\n",
        {"src/a.c: error: 'x' undeclared", "src/a.c: error: 'x' undeclared (2)"},
    ),
    "bats": (
        "1..2\nok 1 works\nnot ok 2 fails\n# (in test file a.bats, line 3)\n",
        {"fails"},
    ),
    "tap without names": ("1..2\nnot ok 1\nok 2\nnot ok # TODO later\n", {"not ok 1"}),
    "older unittest": (
        "======\nERROR: setUpClass (tests.test_a.U)\n------\nRan 0 tests\n\nFAILED (errors=1)\n",
        {"setUpClass (tests.test_a.U)"},
    ),
    "expected failures": (
        "FAIL: test_a (t.T.test_a)\n\nFAILED (failures=1, skipped=2, expected failures=3)\n",
        {"test_a (t.T.test_a)"},
    ),
    "log lines": (
        "ERROR app.db - connection refused\nERROR: could not find a version\n"
        "FAIL\n2026-01-01 ERROR root:app.py:3 no\n",
        set(),
    ),
    "jest with a project": (
        "FAIL web src/a.test.tsx (5.123 s)\n  ● shows › a list\n",
        {"src/a.test.tsx › shows › a list"},
    ),
    "maven report": (
        '<testsuite name="A"><testcase name="ok" classname="A"/>'
        "<testcase classname='A' name='a &lt; b'>\n<failure>no</failure></testcase>"
        '<testcase name="skipped" classname="A"><skipped/></testcase></testsuite>',
        {"A::a < b"},
    ),
}


@pytest.mark.parametrize(("output", "names"), OTHER.values(), ids=OTHER)
def test_documented_formats(output: str, names: set[str]) -> None:
    found = failures_in(output)
    assert names == found.names
    assert found.is_complete


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("took 0.12s", "took 11.5s"),
        ("done in 3 seconds", "done in 1 second"),
        ("at 12:34:56", "at 01:02:03.456"),
        ("2026-01-02T03:04:05Z start", "2025-12-31 13:14:15 start"),
        ("Fri Jan  2 2026", "Sat Jan  3 2026"),
        ("<Foo object at 0x7f0123456789>", "<Foo object at 0x55aabbccddee>"),
        ("/tmp/pytest-of-me/pytest-12/test_a0/x", "/tmp/pytest-of-you/pytest-3/test_a0/x"),
        ("/private/var/folders/ab/x/T/tmp1 gone", "/var/folders/cd/y/T/tmp2 gone"),
        ("pid 123 died", "pid 4567 died"),
        ("thread 'main' (16058) panicked", "thread 'main' (7) panicked"),
        ("--randomly-seed=123", "--randomly-seed=98765"),
        ("http://127.0.0.1:54321/a", "http://127.0.0.1:8080/a"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("b\na", "a\nb\n"),
        ("py311: FAIL code 1 (2.54=setup[2.01]+cmd[0.53] seconds)",
         "py311: FAIL code 1 (9.1=setup[8.2]+cmd[0.9] seconds)"),
        ("target/debug/deps/demo-0123456789abcdef", "target/debug/deps/demo-fedcba9876543210"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-e89b-12d3-a456-426614174fff"),
    ],
)  # fmt: skip
def test_what_differs_from_run_to_run(before: str, after: str) -> None:
    a, b = failures_in(f"Error\n{before}\n"), failures_in(f"Error\n{after}\n")
    assert a == b
    assert same(a, b)
    assert frozenset() == new_since(b, a)


@pytest.mark.parametrize(
    ("before", "after"),
    [("expected 1", "expected 2"), ("a.c: 3 errors", "a.c: 4 errors"), ("no x", "no y")],
)
def test_other_outputs_differ(before: str, after: str) -> None:
    a, b = failures_in(before), failures_in(after)
    assert not same(a, b)
    assert None is new_since(b, a)


def test_cut_outputs_are_the_same() -> None:
    """The end of an output is compared, whatever the times before it have taken away."""
    lines = [f"step {number}: word {'x' * (number % 7)}" for number in range(3000)]
    short = "".join(f"{line} in 0.1s\n" for line in lines)[-30_000:]
    long = "".join(f"{line} in 123.456 seconds\n" for line in lines)[-30_000:]
    assert same(failures_in(short), failures_in(long))


def _pytest_output(names: set[str], *, rest: str = "") -> str:
    listed = "".join(f"FAILED {name} - assert 0\n" for name in sorted(names))
    return f"{listed}{len(names)} failed, 3 passed in 0.12s\n{rest}"


_SETS = st.sets(st.sampled_from([f"tests/test_{x}.py::test_{x}" for x in "abcdef"]), min_size=1)


@given(_SETS, _SETS)
def test_new_failures(now: set[str], before: set[str]) -> None:
    a, b = failures_in(_pytest_output(now)), failures_in(_pytest_output(before))
    assert frozenset(now - before) == new_since(a, b)
    assert same(a, b) == (now == before)


def test_new_failures_after_the_summary() -> None:
    """What fails after the tests, without a name, may be new."""
    before = failures_in(_pytest_output({"a.py::a", "b.py::b"}))
    assert None is new_since(
        failures_in(_pytest_output({"a.py::a"}, rest="build: no such target\n")), before
    )
    assert frozenset({"c.py::c"}) == new_since(
        failures_in(_pytest_output({"c.py::c"}, rest="build: no such target\n")), before
    )


def test_another_checkout() -> None:
    """The folder of the project does not count."""
    texts = [f"{place}/src/a.py:3: error: no\nin {place}/b\n" for place in ("/home/me/p", "/srv/x")]
    a, b = (
        failures_in(text, folder=place)
        for text, place in zip(texts, ("/home/me/p", "/srv/x/"), strict=True)
    )
    assert a == b


@given(st.text(max_size=300))
@example("FAILED \x1b[")
@example("\r\r\n\r")
@example('{"Action":"fail"')
@example('{"Action":"fail","Package":["x"]} "fail"')
@example("<testcase name=")
def test_any_text(text: str) -> None:
    found = failures_in(text)
    assert same(found, found)
    assert found == failures_in(text)
    assert frozenset() == new_since(found, found)


_PIECES = [line for path in sorted(OUTPUTS.iterdir()) for line in path.read_text().split("\n")]


@given(st.lists(st.sampled_from(_PIECES), max_size=60))
@settings(max_examples=50)
def test_any_mixture(lines: list[str]) -> None:
    """Interleaved lines are read without an error, and their names are lines of text."""
    for name in failures_in("\n".join(lines)).names:
        assert name.strip()
        assert "\n" not in name


HARD = [
    *("FAILED a.py::", "FAILED a.py::a[", "a::a", "a.py::a FAILED ", "[gw0] [ 1%] FAILED "),
    *("___ a ", "_", "1 failed, ", "not ok 1 - ", "ok ", " ", "  ● a", "FAIL ", "FAIL  "),
    *("<testcase ", '<testcase name="', "<testcase a='", "<failure", "</testcase>"),
    *("a:1:1: error ", "a:1", "E1", "error[", " --> a", "--- FAIL: a (", "failures:"),
    *("0", "0.", "0x", "a1", "/tmp/", "/tmp/a", "1 s", "12:34:", "2026-01-01", "Jan "),
    *("test a ... ", "\x1b[", "\x1b]", "{", '{"fail"', "[", "(", "\t", "é", "pid ", "seed"),
]  # fmt: skip


@pytest.mark.parametrize("piece", HARD)
@pytest.mark.parametrize("line", [40, 2000, 30_000])
def test_time_grows_linearly(piece: str, line: int) -> None:
    """No repetitive text makes a pattern backtrack."""
    repeated = piece * (line // len(piece))

    def work(size: int) -> None:
        failures_in((f"{repeated}\n" * (size // len(repeated) + 1))[:size])

    assert is_linear(work, small=3_000, large=30_000)


def test_random_text() -> None:
    chosen = random.Random(1)
    text = "".join(chosen.choice([*HARD, "\n", "\r\n"]) for _ in range(10_000))[:30_000]
    assert failures_in(text) == failures_in(text.replace("\n", "\r\n").replace("\r\r", "\r"))
