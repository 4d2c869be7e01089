"""Words: quotes, braces, patterns and unknown parts."""

from __future__ import annotations

import os
import random
import shutil
import subprocess

import pytest

from cuggino.guard.shell.tree import Refused
from tests.growth import is_linear
from tests.guard.shell.parsed import command, refusal, values, words
from tests.vectors import each


@each(
    "text, value",
    [
        ("x'y'\"z\"", "xyz"),
        ("r\\m", "rm"),
        ("a\\\nb", "ab"),
        ("'a\\\nb'", "a\\\nb"),
        ('"a\\\nb"', "ab"),
        ('"\\$x \\` \\" \\\\ \\n"', '$x ` " \\ \\n'),
        ("a\\\\\\\nb", "a\\b"),
        ('"a\\\\\\\nb"', "a\\b"),
        ("\\a\\\n\\\nb", "ab"),
        ("''", ""),
        ("\\$x", "$x"),
        ("a\\ b", "a b"),
        ("$'a\\n\\t\\x41\\101\\u0041\\e\\\\\\'\\q'", "a\n\tAAA\x1b\\'\\q"),
        ("$'\\xc3\\xa9'", "é"),
        ("$'\\u00e9'", None),
        ("$'a\\0b'", None),
        ("$'\\xff'", None),
        ("$'\\cA'", None),
        ('$"a"', None),
        ("$x", None),
        ("${x}", None),
        ("$(b)", None),
        ("`b`", None),
        ("$((1))", None),
        ("<(b)", None),
        ('"$@"', None),
        ("$", "$"),
        ('"$"', "$"),
        ("a#b", "a#b"),
        ("a=b", "a=b"),
        ("[", "["),
        ("{}", "{}"),
    ],
)
def test_the_value(text: str, value: str | None) -> None:
    """A word has the value that the program would get, or none."""
    assert [value] == values(f"a {text}")


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("ab$x", "ab"),
        ('"a b"$x', "a b"),
        ("$x", ""),
        ("a*b$x", "a"),
        ("a'*'b$x", "a*b"),
        ("ab", ""),
    ],
)
def test_the_prefix(text: str, prefix: str) -> None:
    """A word without a value has its certain beginning."""
    assert prefix == words(f"a {text}")[0].prefix


@pytest.mark.parametrize(
    ("text", "has_glob"),
    [
        ("*.c", True),
        ("a?", True),
        ("[ab]", True),
        ("[!a]x", True),
        ("'*'", False),
        ("\\*", False),
        ("[", False),
        ("a[", False),
        ("]", False),
        ("[]", False),
        ('"[a]"', False),
        ("[']']", True),
    ],
)
def test_patterns(text: str, has_glob: bool) -> None:
    """Only unquoted characters make a pattern."""
    assert has_glob == words(f"a {text}")[0].has_glob


@pytest.mark.parametrize(
    ("text", "has_tilde"),
    [
        ("~", True),
        ("~/x", True),
        ("~user/x", True),
        ("'~'", False),
        ("\\~", False),
        ("a~", False),
        ("x=~/y", True),
        ("x=a:~/y", True),
        ("--x=~/y", False),
        ("a:~/y", False),
    ],
)
def test_home_folders(text: str, has_tilde: bool) -> None:
    """A tilde expands at the start, and after `=` and `:` of an assignment."""
    assert has_tilde == words(f"a {text}")[0].has_tilde


def test_a_home_folder_in_an_assignment() -> None:
    """An assigned value may begin with a home folder."""
    assert command("x=~/y a").assignments[0].values[0].has_tilde


@pytest.mark.parametrize(
    ("text", "is_quoted"), [("a", False), ("'a'", True), ("a\\b", True), ('a""', True)]
)
def test_quotes_are_known(text: str, is_quoted: bool) -> None:
    """A word records whether any of it was quoted."""
    assert is_quoted == words(f"a {text}")[0].is_quoted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{a,b}", ["a", "b"]),
        ("x{a,b}y{c,d}", ["xayc", "xayd", "xbyc", "xbyd"]),
        ("{a,b{c,d}}", ["a", "bc", "bd"]),
        ("{1..3}", ["1", "2", "3"]),
        ("{3..1}", ["3", "2", "1"]),
        ("{01..10..4}", ["01", "05", "09"]),
        ("{-01..1}", ["-01", "000", "001"]),
        ("{a..e..2}", ["a", "c", "e"]),
        ("{a,}", ["a"]),
        ('{a,""}', ["a", ""]),
        ("{a}", ["{a}"]),
        ("{a{b,c}}", ["{ab}", "{ac}"]),
        ("'{a,b}'", ["{a,b}"]),
        ("\\{a,b}", ["{a,b}"]),
        ("{a\\,b}", ["{a,b}"]),
        ("{'a,b',c}", ["a,b", "c"]),
        ("{},a}", ["{},a}"]),
        ("{$x,b}", [None, "b"]),
        ("{a,{b}", ["{a,{b}"]),
        ("{a},b}", ["a}", "b"]),
        ("a{},b}", ["a}", "ab"]),
        ("HEAD@{1}..HEAD@{0}", ["HEAD@{1}..HEAD@{0}"]),
        ("{'a,b'..c}", [None]),
        ("{A..c}", [None]),
    ],
)
def test_braces(text: str, expected: list[str | None]) -> None:
    """Braces are expanded first; unbalanced ones have no value."""
    assert expected == values(f"a {text}")


def test_substitutions_next_to_braces() -> None:
    """A substitution next to braces is judged once."""
    assert [1, 0] == [len(word.scripts) for word in words("a $(b){c,d}")]


@pytest.mark.real_agent
@pytest.mark.skipif(
    not os.environ.get("CI") and shutil.which("bash") is None,
    reason="there is no bash to compare with",
)
def test_braces_expand_as_in_bash() -> None:
    """Random words with braces become the words that bash makes of them."""
    made = random.Random(5)
    signs = ["{", "}", ",", "{", "}", ",", "a", "b", "1", "..", "'x'", '"{"', "\\,", "\\}", "''"]
    texts = ["".join(made.choices(signs, k=made.randint(2, 12))) for _ in range(400)]
    texts += [f"{{{made.choice(['1', '-2', '03', 'a', 'Z'])}..{end}}}" for end in "359cX"]
    known = []
    for text in texts:
        try:
            got = values(f"a {text} end")
        except Refused:
            continue
        if None not in got:
            known.append((text, got[:-1]))
    program = "\n".join(f"set -- {text}; printf '%s\\1' \"$@\"; echo" for text, _ in known)
    printed = subprocess.run(
        ["bash", "-c", program.replace("; printf", "; [ $# = 0 ] || printf")],
        capture_output=True,
        text=True,
        check=True,
        env={},
    ).stdout
    assert 200 < len(known)
    assert [
        (text, line.split("\1")[:-1])
        for (text, _), line in zip(known, printed.split("\n")[:-1], strict=True)
    ] == known


@pytest.mark.parametrize(
    "sign", ["{", "{a}", "[", "''", "\\a", "a=~:", "{a,", "}", "{}", "{a..", "~"]
)
def test_a_word_of_many_signs_takes_linear_time(sign: str) -> None:
    """Braces, quotes and brackets that never end are read in one pass."""

    def work(size: int) -> None:
        refusal("a " + sign * (size // len(sign)))

    assert is_linear(work, small=2_000, large=16_000)
