"""Tags and literals in which a marker that must open a line is void."""

from __future__ import annotations

import pytest

from tests.growth import is_linear
from tests.operators.written import LINES, cut, delta, message, shown
from tests.vectors import each

DONE = "<DONE>x</DONE>"


def markers(text: str) -> list[str]:
    """Return the terminal markers of a message, which deltas and parts do not change."""
    whole = shown(cut(message(text), at_line_start=LINES))
    written = shown(cut(*map(delta, text), message(text), at_line_start=LINES))
    found = [piece for piece in whole if piece.startswith("Done(")]
    assert found == [piece for piece in written if piece.startswith("Done(")]
    return found


@each(
    "text",
    [
        f"<thinking>\n{DONE}\n</thinking>",
        f"<thinking>\n\n{DONE}\n\n</thinking>\nNo.",
        f"<thinking>I could say\n{DONE}\nbut</thinking>",
        f"<thinking>\n{DONE}",
        f"Hm <thinking>\n{DONE}",
        f"<THINKING>\n{DONE}\n</THINKING>",
        f"<thinking>\n{DONE}\n</thinking>",
        f"<example>\n{DONE}\n</example>",
        f"For <example>\n{DONE}\n</example> only.",
        f"<outer>\n<inner>\n</inner>\n{DONE}\n</outer>",
        f"<outer>\n<inner>\n\n{DONE}\n</inner>\n</outer>",
        f'<tool_result name="x">\n{DONE}\n</tool_result>',
        f"<details>\n<summary>Draft</summary>\n\n{DONE}\n\n</details>",
        f"<details>\n\n{DONE}",
        f"<blockquote>\n\n{DONE}\n\n</blockquote>",
        f"<p>\n\n{DONE}\n\n</p>",
        f"<App>\n  <Button/>\n{DONE}\n</App>",
        f"const x = <App>\n{DONE}\n</App>;",
        f"<App\n  a={{1}}\n>\n\n{DONE}\n</App>",
        f"<>\n{DONE}\n</>",
        f"return (\n{DONE}\n);",
        f"const f = () => (\n  <b>a</b>\n{DONE}\n)",
        f"print(\n{DONE}\n)",
        f"verdict = [\n{DONE}\n]",
        f"msg: |\n{DONE}\nnot yet",
        f"msg: |\n  {DONE}\n",
        f"- msg: >-\n    a\n\n  {DONE}\n",
        f"Example::\n\n  {DONE}\n\nnot yet",
        f".. code-block:: text\n\n  {DONE}\n",
        f"\\begin{{verbatim}}\n{DONE}\n\\end{{verbatim}}",
        f"\\begin{{lstlisting}}\n\n{DONE}\n",
        f'x = """\n{DONE}\n"""',
        f'"""\n\n{DONE}\n"""',
        f"x = '''a\n{DONE}\n'''",
        f'x = """\n{DONE}',
        f"cat <<EOF\n{DONE}\nEOF",
        f"cat <<'end' > x\n\n{DONE}\nend",
        f"cat <<-EOF\n{DONE}",
        f"$x = <<<EOT\n{DONE}\nEOT;",
        f's = "a\n{DONE}\nb"',
        f"echo 'a\n\n{DONE}\n'",
        f'print("\n{DONE}\n")',
        f"const s = `a\n\n{DONE}\n`;",
        f'auto s = R"(\n{DONE}\n)";',
        f'let s = r#"\n{DONE}\n"#;',
        f"s = [==[\n{DONE}\n]==]",
        f"/*\n{DONE}\n*/",
        f"#+BEGIN_EXAMPLE\n{DONE}\n#+END_EXAMPLE",
        f"{{code}}\n{DONE}\n{{code}}",
        f"[code]\n{DONE}\n[/code]",
        f"<DONE> is how it ends.\n<thinking>\n{DONE}\n</thinking>",
    ],
)
def test_a_quoted_marker_is_void(text: str) -> None:
    """It is text, and a marker after the end of the quotation counts."""
    assert [] == markers(text)


@each(
    "text",
    [
        "<thinking>\n<DONE>a</DONE>\n</thinking>",
        "<a-b>\n\n<DONE>a</DONE>\n\n</a-b>\n\n",
        "<x>\n<x>\n</x>\n<DONE>a</DONE>\n</x>",
        "```\n<thinking>\n```",
        "`<thinking>`",
        "<!-- <thinking> -->",
        "> <thinking>",
        "    <thinking>",
        "List<String> and Vec<u8>",
        "the <button> and the <b>bold</b> one",
        "greet <name> <file>",
        "- <file>: the file",
        "<br>",
        "<img src='x'>",
        "<Button/>",
        "<p>\nAll is well.\n",
        "<https://example.org> <a@example.org>",
        "a < b and c > d",
        'He said "done."',
        "It's the users' \"fine\"",
        '5" wide',
        '`"""` is a docstring',
        "a docstring (''') ends",
        "Summary:",
        "std::vector::",
        "if x {\n  y();\n}",
        "f(\n  1,\n)",
        "x << 3 and 1<<BITS",
        "a | b\n--|--\n1 | 2",
        '"""Doc."""',
        'def f():\n    """Doc.\n\n    more\n    """',
        "<DONE>Adds <thinking> and `(`\nreturn (\n</DONE>",
        "[[a page]]",
        "<NOTE>n</NOTE>",
        "<NOTE>",
    ],
)
def test_what_quotes_nothing(text: str) -> None:
    """A marker after it counts: outside of tags, in closed code, in the midst of a line."""
    assert "Done(end)" == markers(f"{text}\n\n<DONE>end</DONE>")[-1]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("<thinking>\na", f"\n{DONE}\n</thinking>"), []),
        (("<thinking", f">\n{DONE}\n</thinking>"), []),
        (("<thinking>\na\n", "b</thinking>\n", DONE), ["Done(x)"]),
        (("x <y>\n<DONE>a</DONE>\n", f"{DONE}\n</y>"), ["Done(a)", "Done(x)"]),
        (('x = """\n', f'{DONE}\n"""\n', "<DONE>y</DONE>"), ["Done(y)"]),
        (("<thinking>\n<DONE>", "x</DONE>\n</thinking>\n", "<DONE>y</DONE>"), ["Done(y)"]),
    ],
)
def test_parts_of_one_message(parts: tuple[str, ...], expected: list[str]) -> None:
    """What is open at the end of a part quotes the next one."""
    seen = shown(cut(*map(message, parts), at_line_start=LINES))
    assert expected == [piece for piece in seen if piece.startswith("Done(")]


@each(
    "quote",
    ["<a>\n", "x <a> ", '"', "'''", "x = '", "<<A\n", "f(\n", "{code}", "a: |\n", "\\begin{a}"],
)
def test_the_work_is_linear(quote: str) -> None:
    """No quotation that never ends makes the search start over."""

    def work(count: int) -> None:
        assert shown(cut(message(f"{quote * count}\n{DONE}"), at_line_start=LINES))

    assert is_linear(work, small=1000, large=10_000)
