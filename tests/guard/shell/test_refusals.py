"""Refused texts, and similar texts that are not refused."""

from __future__ import annotations

import pytest

from tests.guard.shell.parsed import names, refusal
from tests.vectors import each

QUOTES = "inside `${...}`"
BODY_END = "where a here-document ends"
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
        ("a $(b <<E && c; d\nx\nE\n)", "in a list"),
        ("a $({ b <<E\nx\nE\n})", "in a list"),
        ("a <<$x\nb\n$x\n", "cannot be parsed"),
        ("a <<E'F'\nb\nEF\n", "delimiter"),
        # R6
        ("a $\\\n(b)", "`$\\`"),
        # R7: what runs the value of a variable, and forms that are not judged
        ("a ${!x}", "variable that is not known"),
        ("a ${x@P}", "can run what the variable holds"),
        ("a ${ b; }", "not judged"),
        ("a @(x|y)", "Extended patterns"),
        ("[[ a == +(b) ]]", "Extended patterns"),
        ("coproc a", "coproc"),
        ("coproc X { a; }", "coproc"),
        ("select x in a; do b; done", "select"),
        ("for x in a; { b; }", "not judged"),
        # R8
        ("a | +=[b]", "no plain name"),
        ("f'g'() { a; }", "cannot be parsed"),
        ("a{b}() { c; }", "no plain name"),
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
        ("<&-a b", "put a blank behind it"),
        ("a >&-b", "put a blank behind it"),
        # what bash prints otherwise than it was written
        ("a $(case x in (esac) b;; esac)", "ends `case`"),
        ("a $(b <<E\nc\nE\nd; e)", "in a list"),
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
    "text",
    [
        "a 'b",
        'a "b',
        "a $'b",
        "if a; then b 'c; fi",
        "a \\",
        "a b\\",
        "a \\\n",
        "\\",
    ],
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
