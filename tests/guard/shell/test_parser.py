"""From text to the tree of commands, with the words and redirections of each."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from cuggino.guard.shell.parser import parse
from cuggino.guard.shell.tree import (
    Assignment,
    Binary,
    Case,
    Command,
    Function,
    Group,
    If,
    Loop,
    Refused,
    Timed,
)
from tests.guard.shell.parsed import (
    SHFMT,
    command,
    commands,
    names,
    node,
    refusal,
    script,
    statement,
    values,
)
from tests.vectors import each, not_followed, rows

UNFOLLOWED = not_followed("bash_parser")


def as_row(row: dict[str, Any]) -> object:
    """Return the parser's result for a case, in the form of its output."""
    try:
        found = commands(script(row["input"]))
    except Refused as refused:
        return refused.reason
    if row["kind"] == "split":
        return [one.text for one in found]
    if len(found) != 1 or found[0].assignments:
        return len(found)
    first, *rest = [word.value for word in found[0].words]
    return {"base": str(first).rpartition("/")[2], "fullCommand": first, "args": rest}


@pytest.mark.real_agent
@each("row", rows("bash_parser"))
def test_follows_the_cases(row: dict[str, Any]) -> None:
    """Every case is split and parsed as listed, except those that bash reads otherwise."""
    assert (row["id"] in UNFOLLOWED) == (row["output"] != as_row(row))


class TestStatements:
    @pytest.mark.parametrize("text", ["", " ", "\n", " \t\n\n"])
    def test_blank_text_is_an_empty_script(self, text: str) -> None:
        """Blank text runs nothing."""
        assert () == script(text)

    def test_a_comment_is_an_empty_script(self) -> None:
        """A comment runs nothing."""
        assert () == script("# nothing\n")

    @pytest.mark.parametrize("separator", ["\n", "; ", " & ", "&", ";", "\n\n# x\n"])
    def test_separators_part_statements(self, separator: str) -> None:
        """A newline, `;` and `&` end a statement."""
        assert ["a", "b"] == names(f"a 1{separator}b 2")

    def test_the_text_of_a_statement_is_as_written(self) -> None:
        """The text of a statement has its redirections but not its end; a command's has neither."""
        first, second = script("é  'x'  >f &\n ! b")
        assert ("é  'x'  >f", "b") == (first.text, second.text.removeprefix("! "))
        assert isinstance(first.node, Command)
        assert "é  'x'" == first.node.text
        assert (True, False) == (first.is_background, second.is_background)
        assert (False, True) == (first.is_negated, second.is_negated)

    def test_only_redirections_are_a_statement_without_a_node(self) -> None:
        """`> file` alone writes a file and runs nothing."""
        only = statement("> f 2>&1")
        assert (None, [">", ">&"]) == (only.node, [item.operator for item in only.redirects])

    @pytest.mark.parametrize("operator", ["&&", "||", "|", "|&"])
    def test_operators_join_statements(self, operator: str) -> None:
        """Joined commands are two statements and an operator."""
        joined = node(f"a {operator} b")
        assert isinstance(joined, Binary)
        assert (operator, "a", "b") == (joined.operator, joined.left.text, joined.right.text)

    def test_a_pipe_binds_closer_than_and(self) -> None:
        """`a | b && c` is a pipeline, and then `c`."""
        joined = node("a | b && c | d")
        assert isinstance(joined, Binary)
        assert ("&&", "a | b", "c | d") == (joined.operator, joined.left.text, joined.right.text)

    def test_a_hundred_commands_can_be_joined(self) -> None:
        """A long chain is not nested."""
        assert 100 == len(names(" && ".join(["a"] * 100)))


class TestCompounds:
    @pytest.mark.parametrize(("text", "is_subshell"), [("{ a; b; }", False), ("(a; b)", True)])
    def test_groups(self, text: str, is_subshell: bool) -> None:
        """Groups hold their statements and whether they are subshells."""
        group = node(text)
        assert isinstance(group, Group)
        assert (is_subshell, ["a", "b"]) == (group.is_subshell, [one.text for one in group.body])

    def test_if_with_every_branch(self) -> None:
        """Each `elif` is an `if` in the `otherwise` branch."""
        first = node("if a; then b; elif c; then d; else e; fi")
        assert isinstance(first, If)
        second = first.otherwise[0].node
        assert isinstance(second, If)
        bodies = (first.condition, first.then, second.condition, second.then, second.otherwise)
        assert ["a", "b", "c", "d", "e"] == [one[0].text for one in bodies]

    @pytest.mark.parametrize("kind", ["while", "until"])
    def test_loops_with_a_condition(self, kind: str) -> None:
        """`while` and `until` have a condition and a body."""
        loop = node(f"{kind} a; do b; done")
        assert isinstance(loop, Loop)
        assert (kind, "a", "b") == (loop.kind, loop.condition[0].text, loop.body[0].text)

    def test_for_has_words(self) -> None:
        """`for` has a name and its words, with braces expanded."""
        loop = node("for x in a {b,c} $(d); do e; done")
        assert isinstance(loop, Loop)
        assert ("for", "x", ["a", "b", "c", None]) == (
            loop.kind,
            loop.name,
            [word.value for word in loop.words],
        )
        assert ["d", "e"] == names("for x in a {b,c} $(d); do e; done")

    def test_arithmetic_for_has_the_words_of_its_expressions(self) -> None:
        """Substitutions in the expressions of `for (( ))` are found."""
        loop = node("for ((i = $(a); i < 2; i++)); do b; done")
        assert isinstance(loop, Loop)
        assert ("arithmetic", 5) == (loop.kind, len(loop.words))
        assert ["a", "b"] == names("for ((i = $(a); i < 2; i++)); do b; done")

    def test_case_has_patterns_and_branches(self) -> None:
        """`case` has its word, all patterns, and the statements of each branch."""
        case = node("case $x in a|$(b)) c;; *) d ;& esac")
        assert isinstance(case, Case)
        assert (None, ["a", None, "*"]) == (case.word.value, [one.value for one in case.patterns])
        assert ["b", "c", "d"] == names("case $x in a|$(b)) c;; *) d ;& esac")

    @pytest.mark.parametrize("text", ["f() { a; }", "function f { a; }", "function f() (a)"])
    def test_functions_have_a_body(self, text: str) -> None:
        """A function has a name and a body, which is judged in place."""
        function = node(text)
        assert isinstance(function, Function)
        assert ("f", ["a"]) == (function.name, names(text))

    def test_time(self) -> None:
        """`time` holds a statement or nothing."""
        timed, alone = node("time -p a | b"), node("time")
        assert isinstance(timed, Timed)
        assert ["a", "b"] == names("time -p a | b")
        assert Timed(None) == alone


@pytest.mark.real_agent
@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.sampled_from("ab '\"\\$(){}[]<>|&;\n#`=*?~!-1,.\té"), max_size=60))
def test_random_text(text: str) -> None:
    """Every text is parsed or refused."""
    assert isinstance(refusal(text), str)


@settings(deadline=None)
@given(st.text(max_size=80))
def test_random_characters(text: str) -> None:
    """Random characters are parsed or refused."""
    assert isinstance(refusal(text), str)


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(
    st.lists(
        st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=8),
        min_size=1,
        max_size=4,
    ),
    st.randoms(use_true_random=False),
)
def test_quoting_does_not_change_the_words(words: list[str], random: Any) -> None:
    """The command gets the same words however they are quoted."""

    def single(text: str) -> str:
        return "'" + text.replace("'", "'\\''") + "'"

    def double(text: str) -> str:
        return '"' + "".join("\\" + sign if sign in '\\$`"' else sign for sign in text) + '"'

    def escaped(text: str) -> str:
        return "".join("\\" + sign for sign in text) or "''"

    def ansi(text: str) -> str:
        return "$'" + "".join(f"\\x{ord(sign):02x}" for sign in text) + "'"

    def mixed(text: str) -> str:
        half = len(text) // 2
        return single(text[:half]) + double(text[half:])

    quoted = [random.choice([single, double, escaped, ansi, mixed])(word) for word in words]
    line = random.choice([" ", "  ", "\t", " \\\n "]).join(["run", *quoted])
    around = random.choice(["{}", "{}\n", " {} ", "{} # x"])
    if line.endswith("\\"):  # a comment right behind a backslash is refused
        around = "{}"
    assert words == values(around.format(line))


def test_a_missing_parser_refuses() -> None:
    """Without the program every text is refused."""
    with pytest.raises(Refused, match="cannot be run"):
        parse("ls", shfmt="/nonexistent/shfmt")


def test_input_of_another_type_is_refused() -> None:
    """Input that is not text is refused and raises nothing else."""
    with pytest.raises(Refused, match="cannot be judged"):
        parse(None, shfmt=SHFMT)  # type: ignore[arg-type]  # what a tool may be given


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
        assert (operator, descriptor, target) == (only.operator, only.descriptor, only.target.value)
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
        *("a $(b)", "a `b`", 'a "$(b)"', 'a "`b`"', "a <(b)", "a > >(b)", "a ${x:-$(b)}"),
        *('a "${x:-$(b)}"', "a ${x/$(b)/c}", "a ${x/c/$(b)}", "a ${x:$(b):1}", "a ${x:1:$(b)}"),
        *("a ${x[$(b)]}", "a $((1 + $(b)))", "a $[1 + $(b)]", "a > $(b)", "a <<< $(b)"),
        *("a <<E\n$(b)\nE\n", "a <<-E\n\t`b`\n\tE\n", "x=$(b) a", "x=$(b); a", "x[$(b)]=1; a"),
        *("x=([$(b)]=1); a", "export x=$(b); a", "[[ $(b) == x ]] && a", "[[ x == $(b) ]] && a"),
        *("[[ ! ( -f $(b) ) ]] && a", "(( $(b) )) && a", 'a $(c "$(b)")', "a $(( ( $(b) ) ))"),
        *("case $(b) in x) a;; esac", "case x in $(b)) a;; esac", "for x in $(b); do a; done"),
        *("for ((;$(b);)); do a; done", "if b; then a; fi", "while b; do a; done"),
        *("f() { b; }; a", "{ b; } && a", "(b) | a", "time b; a", "! b; a", "a $(\nb\n)"),
        *("a {x,$(b)}", "a $'x'\"$(b)\"", "a \"x\"'y'$(b)z", "a ~$(b)", "a $x[$(b)]"),
        *("a $(case y in y) b;; esac)", "a $(b # )\n)", "a \\\n $(b)"),
    ],
)
def test_commands_at_every_place(text: str) -> None:
    """A command is found at every place where bash would run it."""
    assert {"a", "b"} <= set(names(text))
