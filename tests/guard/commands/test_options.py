"""Options and operands are distinguished as getopt_long does."""

from __future__ import annotations

import pytest

from cuggino.guard.commands.base import plain_word
from cuggino.guard.commands.options import Syntax, parse_options
from cuggino.guard.shell.tree import Word
from tests.vectors import each

SYNTAX = Syntax("to", ("target-directory", "output"), ("verbose", "verify"), attached="i")


@pytest.mark.parametrize(
    ("text", "options", "operands"),
    [
        ("a -t b c", [("-t", "b")], ["a", "c"]),
        ("-tb a", [("-t", "b")], ["a"]),
        ("-vt b a", [("-v", None), ("-t", "b")], ["a"]),
        ("--target=b a", [("--target-directory", "b")], ["a"]),
        ("--targ b a", [("--target-directory", "b")], ["a"]),
        ("--output-x a", [("--output-x", None)], ["a"]),
        ("-i a", [("-i", None)], ["a"]),
        ("-i.bak a", [("-i", ".bak")], ["a"]),
        ("-- -t a", [], ["-t", "a"]),
        ("- a", [], ["-", "a"]),
    ],
)
def test_options_and_operands(
    text: str, options: list[tuple[str, str | None]], operands: list[str]
) -> None:
    """Values follow, adjoin or come after `=`; `--` ends the options; long ones may be short."""
    given = parse_options(tuple(map(plain_word, text.split())), SYNTAX)
    assert options == [(o.name, o.value.value if o.value else None) for o in given.options]
    assert operands == [word.value for word in given.operands]


@each(
    "word, is_unclear",
    [
        (Word('"$f"', None), True),
        (Word('"src/$f"', None, "src/"), False),
        (Word("src/$f", None, "src/"), True),
        (Word('"src/$@"', None, "src/"), True),
        (Word("$(x)", None), True),
        (Word('"$(pwd)/a"', None), False),
        (Word('--since="$(date +"%F")"', None, "--since="), False),
        (Word('-m"a $(x \'"\') $y"', None, "-ma "), False),
        (Word('"src/"$f"/x"', None, "src/"), True),
        (Word('"src/${f[@]}"', None, "src/"), True),
        (Word('"src/$(ls "$x")"', None, "src/"), False),
        (Word('"src/$(ls)"$(ls)', None, "src/"), True),
        (Word("\"$(cat <<'EOF'\nit's (\nEOF\n)\"", None, "x"), False),
        (Word("plain", "plain"), False),
        (Word('"$PWD/a"', None), False),
        (Word('"${PWD}/a"', None), False),
        (Word('"$HOME/a"', None), False),
        (Word('"${HOME}/a"', None), False),
        (Word('"$TMPDIR/a"', None), False),
        (Word('"${TMPDIR}/a"', None), False),
        (Word('"$PWDX/a"', None), True),
        (Word('"$OLDPWD/a"', None), True),
        (Word('"$PWD"', None), True),
        (Word("$PWD/a", None), True),
        (Word('"src/$x"$', None, "src/"), False),
        (Word('"src/$x"$"b"', None, "src/"), False),
        (Word("\"src/$x\"$'b'", None, "src/"), False),
        (Word("src/`ls`", None, "src/"), True),
        (Word('"src/`ls`"', None, "src/"), False),
        (Word('"src/`ls`"$x', None, "src/"), True),
        (Word('"src/`ls', None, "src/"), True),
        (Word("'src/$x", None, "src/"), True),
        (Word("'$x'\"$y\"", None, "s"), False),
        (Word("'$x'$y", None, "s"), True),
        (Word('"src/$x', None, "src/"), True),
        (Word("src/\\$x", None, "src/"), False),
        (Word('"src/\\"$x"', None, "src/"), False),
        (Word('"src/$*"', None, "src/"), True),
        (Word('"src/${@}"', None, "src/"), True),
        (Word('"src/${@:1}"', None, "src/"), True),
        (Word('"src/${*}"', None, "src/"), True),
        (Word('"src/${f[*]}"', None, "src/"), True),
        (Word('"src/${!f[@]}"', None, "src/"), True),
        (Word('"src/${!f@}"', None, "src/"), True),
        (Word('"src/${!f*}"', None, "src/"), True),
        (Word('"src/${f[0]}"', None, "src/"), False),
        (Word('"src/${f#x}"', None, "src/"), False),
        (Word('"src/${f:-"$x"}"', None, "src/"), False),
        (Word('"src/${f:-"${y:-")"}"}"', None, "src/"), False),
        (Word('"src/$(ls "$(x ")")")"', None, "src/"), False),
        (Word('"src/$(ls "${x:-"}"}")"', None, "src/"), False),
        (Word('"src/$(ls "\\"" x)"', None, "src/"), False),
        (Word("\"src/$(ls ')' x)\"", None, "src/"), False),
        (Word('"src/$(ls \\) x)"', None, "src/"), False),
        (Word('"src/$(ls (a) b)"', None, "src/"), False),
        (Word('"src/$(ls"', None, "src/"), True),
        (Word('"src/$(ls \')"', None, "src/"), True),
        (Word('"src/$(ls "$(x")"', None, "src/"), True),
        (Word('"src/$(cat <<E)"', None, "src/"), True),
        (Word('"src/$(ls # )\n)"', None, "src/"), True),
        (Word('"src/$(ls;# )\n)"', None, "src/"), True),
        (Word('"src/$(ls\n# )\n)"', None, "src/"), True),
        (Word('"src/$(ls a#b)"', None, "src/"), False),
        (Word('"$(cat <<EOF\na (\nEOF\n)"', None, "x"), False),
        (Word('"$(cat <<-EOF\na (\n\tEOF\n)"', None, "x"), False),
        (Word('"$(cat << EOF\na (\nEOF\n)"', None, "x"), False),
        (Word('"$(cat <<\\EOF\na (\nEOF\n)"', None, "x"), False),
        (Word('"$(cat <<"EOF"\na (\nEOF\n)"', None, "x"), False),
        (Word('-m"$(cat <<EOF\na (\nEOF\n)"', None, "-m"), False),
        (Word('--message="$(cat <<EOF\na (\nEOF\n)"', None, "--message="), False),
        (Word('"$(cat <<\'EOF\na (\nEOF\n)"', None, "x"), True),
        (Word('"$(cat <<EOF\na (\nEND\n)"', None, "x"), True),
        (Word("xargs{}", None), True),
        (Word('"$(cat <<EOF\na (\n  EOF\n  )"', None, "x"), False),
        (Word('"src/${files[@]}"', None, "src/"), True),
        (Word('"src/${!files@}"', None, "src/"), True),
        (Word('"src/$(ls "${x:-")"$y}")"', None, "src/"), False),
        (Word('"src/$(ls "$(x ")"$y)")"', None, "src/"), False),
        (Word("{}", None, "x"), False),
        (Word("{}", None), True),
    ],
)
def test_unclear_words(word: Word, is_unclear: bool) -> None:
    """Only a double-quoted text that cannot start with a dash is surely one operand."""
    assert is_unclear == bool(parse_options((word,), SYNTAX).unclear)
