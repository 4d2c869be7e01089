"""Commands with their words, assignments and redirections, at every place in a script."""

from __future__ import annotations

import pytest

from cuggino.guard.shell.tree import Assignment, Command
from tests.guard.shell.parsed import command, names, script, statement
from tests.vectors import each


class TestCommands:
    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("a", "call"),
            ("export A=1", "declare"),
            ("[[ -f $(a) ]]", "test"),
            ("(( x + 1 ))", "arithmetic"),
            ("let x=1", "let"),
        ],
    )
    def test_kinds(self, text: str, kind: str) -> None:
        """A command has a kind."""
        assert (kind, text) == (command(text).kind, command(text).text)

    def test_assignments_in_front(self) -> None:
        """Assignments are separate from words."""
        found = command("A=1 B+='x y' C= cmd D=2")
        assert [("A", ["1"], False), ("B", ["x y"], True), ("C", [], False)] == [
            (one.name, [value.value for value in one.values], one.appends)
            for one in found.assignments
        ]
        assert ["cmd", "D=2"] == [word.value for word in found.words]

    def test_arrays(self) -> None:
        """Every element of an array is a value, including its index."""
        first, second = script("a=(x {y,z} [$(b)]=c); d[$(e)]=f")
        assert isinstance(first.node, Command)
        assert isinstance(second.node, Command)
        assert ["x", "y", "z", None, "c"] == [
            word.value for word in first.node.assignments[0].values
        ]
        assert [None, "f"] == [word.value for word in second.node.assignments[0].values]
        assert ["b", "e"] == names("a=(x {y,z} [$(b)]=c); d[$(e)]=f")

    def test_export_has_words_and_assignments(self) -> None:
        """Assignments of `export` are found in quotes and braces too."""
        found = command("export -x A=1 B 'C=2' D{1,2}=3 E={4,5} \"$f\"")
        assert ["export", "-x", "B", "C=2", "D1=3", "D2=3", None] == [
            word.value for word in found.words
        ]
        assert {"A": ["1"], "C": ["2"], "D1": ["3"], "D2": ["3"], "E": ["4", "5"]} == {
            one.name: [value.value for value in one.values] for one in found.assignments
        }

    def test_an_empty_word_of_braces_is_none(self) -> None:
        """bash drops empty unquoted words: `{,a} b` runs `a`."""
        assert ["a", "b"] == [word.value for word in command("{,a} b").words]

    def test_a_subscript_is_a_value(self) -> None:
        """An assignment to `x[...]` keeps the variable's name."""
        assert "x" == command("x[1]=a").assignments[0].name
        assert isinstance(command("x[1]=a").assignments[0], Assignment)


class TestRedirects:
    @pytest.mark.parametrize(
        ("text", "operator", "descriptor", "target"),
        [
            ("a > f", ">", "", "f"),
            ("a 2>> 'f g'", ">>", "2", "f g"),
            ("a >| f", ">|", "", "f"),
            ("a < f", "<", "", "f"),
            ("a <> f", "<>", "", "f"),
            ("a 2>&1", ">&", "2", "1"),
            ("a <&-", "<&", "", "-"),
            ("a &> f", "&>", "", "f"),
            ("a &>> f", "&>>", "", "f"),
            ("a <<< 'x y'", "<<<", "", "x y"),
            ("a {fd}> f", ">", "{fd}", "f"),
            ("a > $f", ">", "", None),
            ("a > {f,g}", ">", "", None),
        ],
    )
    def test_each_operator(
        self, text: str, operator: str, descriptor: str, target: str | None
    ) -> None:
        """Every redirection has an operator, a descriptor and a target."""
        (only,) = statement(text).redirects
        assert (operator, descriptor, target) == (
            only.operator,
            only.descriptor,
            only.target.value,
        )
        assert text[2:] == only.text

    def test_redirections_do_not_end_the_words(self) -> None:
        """Words may follow a redirection."""
        assert ["a", "b", "c"] == [word.value for word in command(">f a b 2>g c").words]

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("cat <<'E'\na $(b)\n\nE\n", "a $(b)\n\n"),
            ("cat <<\\E\n`b`\nE", "`b`\n"),
            ('cat <<E\na \\$b \\\\ "q"\nE\n', 'a $b \\ "q"\n'),
            ("cat <<E\nE\n", ""),
            ("cat <<-E\n\ta\n\t\tb\n\tE\n", "a\nb\n"),
            ("cat <<E\na $b\nE\n", None),
        ],
    )
    def test_the_body_of_a_here_document(self, text: str, value: str | None) -> None:
        """A body is known unless something in it is expanded."""
        body = statement(text).redirects[0].body
        assert body is not None
        assert value == body.value

    def test_two_bodies_follow_each_other(self) -> None:
        """Two here-documents on one line have a body each."""
        first, second = statement("cat <<A - <<'B'\n$(a)\nA\nb\nB\n").redirects
        assert first.body is not None
        assert second.body is not None
        assert ("A", None, "B", "b\n") == (
            first.target.value,
            first.body.value,
            second.target.value,
            second.body.value,
        )


@each(
    "text",
    [
        "a $(b)",
        "a `b`",
        'a "$(b)"',
        'a "`b`"',
        "a <(b)",
        "a > >(b)",
        "a ${x:-$(b)}",
        'a "${x:-$(b)}"',
        "a ${x/$(b)/c}",
        "a ${x/c/$(b)}",
        "a ${x:$(b):1}",
        "a ${x:1:$(b)}",
        "a ${x[$(b)]}",
        "a $((1 + $(b)))",
        "a $[1 + $(b)]",
        "a > $(b)",
        "a <<< $(b)",
        "a <<E\n$(b)\nE\n",
        "a <<-E\n\t`b`\n\tE\n",
        "x=$(b) a",
        "x=$(b); a",
        "x[$(b)]=1; a",
        "x=([$(b)]=1); a",
        "export x=$(b); a",
        "[[ $(b) == x ]] && a",
        "[[ x == $(b) ]] && a",
        "[[ ! ( -f $(b) ) ]] && a",
        "(( $(b) )) && a",
        'a $(c "$(b)")',
        "a $(( ( $(b) ) ))",
        "case $(b) in x) a;; esac",
        "case x in $(b)) a;; esac",
        "for x in $(b); do a; done",
        "for ((;$(b);)); do a; done",
        "if b; then a; fi",
        "while b; do a; done",
        "f() { b; }; a",
        "{ b; } && a",
        "(b) | a",
        "time b; a",
        "! b; a",
        "a $(\nb\n)",
        "a {x,$(b)}",
        "a $'x'\"$(b)\"",
        "a \"x\"'y'$(b)z",
        "a ~$(b)",
        "a $x[$(b)]",
        "a $(case y in y) b;; esac)",
        "a $(b # )\n)",
        "a \\\n $(b)",
    ],
)
def test_commands_at_every_place(text: str) -> None:
    """A command is found at every place where bash would run it."""
    assert {"a", "b"} <= set(names(text))
