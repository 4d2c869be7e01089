"""Words: quotes, braces, patterns and unknown parts; refused texts, and similar ones."""

from __future__ import annotations

import os
import random
import shutil
import subprocess

import pytest

from cuggino.guard.shell.tree import Refused
from tests.growth import is_linear
from tests.guard.shell.parsed import command, names, refusal, values, words
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


QUOTES = "inside `${...}`"
BODY_END = "here-document is ambiguous"
COMMENT = "comment"
EXPRESSION = "expression"


@each(
    "text, part",
    [
        # R1: quotes inside "${...}"
        ("a \"${x:-'$(b)'}\"", QUOTES),
        ("a \"${x:='`b`'}\"", QUOTES),
        ("a <<E\n${x:-'$(b)'}\nE\n", QUOTES),
        # R2: what looks like text inside ${...}
        ("a ${x:+<(b)}", QUOTES),
        ('a "${x:->(b)}"', QUOTES),
        ("[[ a =~ (x|<(b)) ]]", "`<(`"),
        # R3: comments
        ("a # x\\\nb", COMMENT),
        ("# \\\nb", COMMENT),
        ("a $(b #\\\nc\n)", COMMENT),
        ("a $(b 'c'#; d\n)", COMMENT),
        # R4: a line that begins with the delimiter, in a substitution
        ("a \"$(cat <<'E'\nx\nErm -rf x )\nE\n)\"", "begins with its delimiter"),
        ("a <(cat <<'E'\nE b )\nE\n)", "begins with its delimiter"),
        # R5: bodies
        ("a <<E\nx\\\nE\nb\nE\nc", BODY_END),
        ("a <<E\nx \\\ny\nE\n", "ends in a backslash"),
        ("a <<E\n$(b\nc)\nE\n", "several lines"),
        ("a <<E\n$(cat <<F\nx\nF\n)\nE\n", "several lines"),
        ("a $(b <<E)\nx\nE\n", BODY_END),
        ('a <<E "\n"\nx\nE\n', BODY_END),
        ("a $(b <<E && c; d\nx\nE\n)", "part of a list"),
        ("a $({ b <<E\nx\nE\n})", "part of a list"),
        ("a <<$x\nb\n$x\n", "cannot be parsed"),
        ("a <<E'F'\nb\nEF\n", "delimiter"),
        # R6
        ("a $\\\n(b)", "`$\\`"),
        # R7: what runs the value of a variable, and forms that are not judged
        ("a ${!x}", "unknown variable"),
        ("a ${x@P}", "can run what the variable holds"),
        ("a ${ b; }", "not judged"),
        ("a @(x|y)", "Extended patterns"),
        ("[[ a == +(b) ]]", "Extended patterns"),
        ("coproc a", "coproc"),
        ("coproc X { a; }", "coproc"),
        ("select x in a; do b; done", "select"),
        ("for x in a; { b; }", "not judged"),
        # R8
        ("a | +=[b]", "not a plain"),
        ("f'g'() { a; }", "cannot be parsed"),
        ("a{b}() { c; }", "not a plain"),
        # R9: characters
        ("a\0b", "U+0000"),
        ("a\rb", "U+000D"),
        ("a\vb", "U+000B"),
        ("a\fb", "U+000C"),
        ("a \x1b[0m", "U+001B"),
        ("a\x7f", "U+007F"),
        ("a\x85b", "U+0085"),
        ("a\u2028b", "U+2028"),
        ("a\u202eb", "U+202E"),
        ("a\u200bb", "U+200B"),
        ("a\u200db", "U+200D"),
        ("\ufeffa", "U+FEFF"),
        ("a \ud800", "U+D800"),
        ("a \U000e0041", "U+E0041"),
        # R10: text that is taken for an expression
        ("x='a[$(b)]'; echo $((x))", "subscript"),
        ("x='a[$'; y='(b)]'; (( $x$y ))", "subscript"),
        ("x=a[\\`b\\`]; [[ x -eq 1 ]]", "subscript"),
        ("for x in 'a[$(b)]'; do echo ${y[x]}; done", "subscript"),
        ("test -v 'a[$(b)]'", "subscript"),
        ("command printf -v 'a[$(b)]' x", "subscript"),
        ("[[ -v 'a[$(b)]' ]]", "subscript"),
        ("declare -n x='a[$(b)]'", "subscript"),
        ("unset a['$(b)']", "subscript"),
        ("let 'a[$(b)]=1'", "let"),
        ("let a=b>c", "let"),
        ("echo $(( '$(b)' ))", EXPRESSION),
        ("x['$(b)']=1", EXPRESSION),
        ("echo $((1 +\n1))", EXPRESSION),
        ("echo $(( $(case x in x) a;; esac) ))", EXPRESSION),
        # backticks in backticks
        ("a `b \\\\`` c `d`", "use `$( )`"),
        ("a `b \\`c\\``", "use `$( )`"),
        # a word right behind `<&-` is the command
        ("<&-a b", "put a space after it"),
        ("a >&-b", "put a space after it"),
        # what bash prints otherwise than it was written
        ("a $(case x in (esac) b;; esac)", "ends `case`"),
        ("a $(b <<E\nc\nE\nd; e)", "part of a list"),
        # time
        ("time -- a", "`time`"),
        ("a | time b", "`time`"),
        # no bash
        ("a &&", "cannot be parsed"),
        ("a | | b", "cannot be parsed"),
        ("if a; then b", "cannot be parsed"),
        ("(a", "cannot be parsed"),
        ("a )", "cannot be parsed"),
        ("a $(b", "cannot be parsed"),
        ("((a); (b))", "cannot be parsed"),
        ("a <<E\nb", "cannot be parsed"),
    ],
)
def test_refuses(text: str, part: str) -> None:
    """Text that shells read differently or that cannot be judged is refused, with a reason."""
    assert part in refusal(text)


@pytest.mark.parametrize(
    "text", ["a 'b", 'a "b', "a $'b", "if a; then b 'c; fi", "a \\", "a b\\", "a \\\n", "\\"]
)
def test_unbalanced_quotes_are_named(text: str) -> None:
    """An open quote or a backslash at the end is named in the reason (AUT-217)."""
    assert "Unbalanced quotes" in refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "a ${x:-b} ${x#b} ${x%%.*} ${x/b/c} ${#x} ${x^^} ${x:1:2}",
        'a "${x:-\'b\'}" ${!x[@]} "${!x*}" ${x[@]}',
        "a # it's a \\ comment",
        "a; # x\n b & # y\n(# z\n c)",
        "a 'b'#c \"d\"#e",
        "git commit -m \"$(cat <<'EOF'\nfeat: x\n\nEOF-style (x\nEOF\n)\"",
        "git commit -m \"$(cat <<'EOF' | tr a b\nx\nEOF\n)\"",
        "cat <<'A' && cat <<\"B\" > f\n'\\\nA\n$(\nB\nb",
        "cat <<-E\n\t$(a)\n\tE\n",
        'echo $((1 + 2)) $(( $(a) * x )) "$((x++))" $((16#ff))',
        "((x += 1)); let x=1 y+=2 'z = 3'",
        "x='$5'; y='`'; echo 'a[$(b)]'",
        "awk '{ a[$(NF)] = 1 }'; echo $((1 << 2))",
        "price='a'; n=$((n + 1)); awk '{print $1}' f",
        "git commit -m '\u2728 \U0001f468\u200d\U0001f469 \u26a0\ufe0f caf\u00e9\u00a0!'",
        "a \\\n  --b \\\n  c",
        "[[ $x =~ ^[a-z]+$ && -f y || ! ( a -lt 2 ) ]]",
        "a {} \\; {b} x{ }",
        "time a; ! b 2>&1 <&- >&3-",
        "a `b \\$c '\\n'` \"\\`d\\`\"",
    ],
)
def test_does_not_refuse(text: str) -> None:
    """Similar but unambiguous text is accepted."""
    assert "" == refusal(text)


class TestLimits:
    def test_length(self) -> None:
        """Text may have 64 KiB, counted in bytes."""
        assert "" == refusal("a " + "b" * (65536 - 2))
        assert "64 KiB" in refusal("a " + "b" * 65535)
        assert "64 KiB" in refusal("a " + "é" * 32768)

    def test_commands(self) -> None:
        """There may be 500 commands."""
        assert 500 == len(names("a\n" * 500))
        assert "more than 500 commands" in refusal("a\n" * 501)

    @pytest.mark.parametrize(
        ("opening", "closing"),
        [("(", ")"), ("{ ", "; }"), ("$(", ")"), ("if ", "; then b; fi"), ("${x:-", "}")],
    )
    def test_depth(self, opening: str, closing: str) -> None:
        """There may be 40 levels."""
        space = " " if opening == "(" else ""

        def nested(depth: int) -> str:
            return (opening + space) * depth + "a" + (space + closing) * depth

        assert "" == refusal(nested(40))
        assert "nested too deeply" in refusal(nested(41))

    def test_joined(self) -> None:
        """A hundred operators may join commands."""
        assert "" == refusal(" | ".join(["a"] * 101))
        assert "nested too deeply" in refusal(" | ".join(["a"] * 102))

    @pytest.mark.parametrize(
        ("fits", "is_too_much"),
        [
            ("a {" + "b," * 63 + "b}", "a {" + "b," * 64 + "b}"),
            ("a {1..64}", "a {1..65}"),
            ("a {b,c}{b,c}{b,c}{b,c}{b,c}{b,c}", "a {b,c}{b,c}{b,c}{b,c}{b,c}{b,c}{b,c}"),
            ("a {1..1000000..100000}", "a {1..1000000}"),
        ],
    )
    def test_braces(self, fits: str, is_too_much: str) -> None:
        """A word with braces may expand to 64 words."""
        assert "" == refusal(fits)
        assert "more than 64 words" in refusal(is_too_much)
