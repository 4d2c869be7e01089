"""The front matter of backlog items."""

from __future__ import annotations

import pytest

from cuggino.domain import (
    after_of,
    attempts_of,
    held_of,
    is_marked_imported,
    needs_of,
    split_front_matter,
    title_of,
    with_held,
)


@pytest.mark.parametrize(
    ("front", "names"),
    [
        ("after: 001-login.md", ["001-login.md"]),
        ("after: a.md, b.md", ["a.md", "b.md"]),
        ("after: [a.md, b]", ["a.md", "b"]),
        ("after: []", []),
        ("after:", []),
        ("after: [ a.md ,b.md, ]", ["a.md", "b.md"]),
        ("after:\n  - a.md\n  - b.md", ["a.md", "b.md"]),
        ("after:\n- a.md\n-\n- b.md", ["a.md", "b.md"]),
        ("after: [a.md,\n  b.md]", ["a.md", "b.md"]),
        ("after: [a.md, a.md]", ["a.md"]),
        ("after: a b.md", ["a b.md"]),
        ("after: 'a, b.md'", ["a, b.md"]),
        ('after: ["[x] c.md", d.md] # first', ["[x] c.md", "d.md"]),
        ("after: a.md # because", ["a.md"]),
        ("after: a#1.md", ["a#1.md"]),
        ("# a comment\nafter: a.md", ["a.md"]),
        ("priority: 1\nafter: a.md\nlabels:\n  - x", ["a.md"]),
        ("labels:\n  - x\n\nafter: ünïcode.md", ["ünïcode.md"]),
        ("hereafter: a.md", []),
    ],
)
def test_names_under_after(front: str, names: list[str]) -> None:
    """A value, a list on one line and a list of lines are read, with quotes and comments."""
    for newline in ("\n", "\r\n"):
        text = f"---\n{front}\n---\n# Title\n\nafter: z.md\n".replace("\n", newline)
        assert tuple(names) == after_of(text)
        assert f"# Title{newline}{newline}after: z.md{newline}" == split_front_matter(text)[1]
        assert "Title" == title_of(text)


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("after: a.md", None),
        ("attempts: 3", 3),
        ("after: a.md\nattempts: 8 # costs", 8),
        ("attempts: '2'", 2),
        ("attempts:", None),
        *((f"attempts: {bad}", ValueError) for bad in ("0", "9", "30", "three", "[2, 3]", "-1")),
    ],
)
def test_number_of_attempts(front: str, expected: int | type[ValueError] | None) -> None:
    """A number from 1 to 8 under `attempts`; anything else is an error that says so."""
    text = f"---\n{front}\n---\n# Title\n"
    if isinstance(expected, type):
        with pytest.raises(expected, match="attempts must be a number from 1 to 8"):
            attempts_of(text)
    else:
        assert expected == attempts_of(text)


def test_words_under_needs() -> None:
    """`needs` is read like `after`, beside it."""
    text = "---\nafter: a.md\nneeds: [gpu, memory=64]\n---\n# Title\n"
    assert ("gpu", "memory=64") == needs_of(text)
    assert ("a.md",) == after_of(text)
    assert () == needs_of("# Title\n\nneeds: gpu\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Title\n\nafter: a.md\n",
        "---\nafter: a.md\n",
        "---\n\nSome text\n\n---\n",
        "---\n---\n",
        "---\n# only a heading\n---\n",
        "---\n- after: a.md\n---\n",
        "---\nNote to myself: after: x\n---\n",
        " ---\nafter: a.md\n---\n",
        "----\nafter: a.md\n----\n",
        "---\nafter: a.md\nand then some prose\n---\n",
    ],
)
def test_text_without_front_matter(text: str) -> None:
    """Markdown with rules, and front matter without an end, is text."""
    assert ("", text) == split_front_matter(text)
    assert () == after_of(text)


def test_a_byte_order_mark_and_other_ends() -> None:
    """Front matter may follow a byte order mark and end with three dots."""
    assert ("after: a\n", "text") == split_front_matter("\ufeff---\nafter: a\n...\ntext")
    assert ("after: a\n", "") == split_front_matter("--- \nafter: a\n---")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Title\n\nheld: no\n",
        "---\nafter: a.md\nneeds: gpu\n---\n# Title\n",
        "---\n# a comment\nafter:\n  - a.md\n---\n",
    ],
)
def test_an_item_is_held_and_let_go(text: str, newline: str) -> None:
    """The reason replaces an earlier one, and all else stays as it is."""
    text = text.replace("\n", newline)
    held = with_held(with_held(text, "broken\n build"), 'by "me", until #1')
    assert "by 'me', until #1" == held_of(held)
    assert (after_of(text), needs_of(text)) == (after_of(held), needs_of(held))
    assert split_front_matter(text)[1] == split_front_matter(held)[1]
    assert "" == held_of(text)
    assert text == with_held(held, "") == with_held(text, " ")


def test_the_lines_of_an_earlier_reason_go_with_it() -> None:
    """A list of reasons is replaced by one line, at the end."""
    text = "---\nheld:\n  - a\n  - b\nafter: a.md\n---\ntext"
    assert "a, b" == held_of(text)
    assert '---\nafter: a.md\nheld: "c"\n---\ntext' == with_held(text, "c")
    assert "---\nafter: a.md\n---\ntext" == with_held(text, "")


def test_line_ends_of_two_kinds() -> None:
    """The front matter may end its lines in another way than the text."""
    text = "---\rneeds: gpu\r---\rfirst\nsecond"
    assert '---\rneeds: gpu\rheld: "c"\n---\rfirst\nsecond' == with_held(text, "c")


@pytest.mark.parametrize(
    ("front", "is_imported"),
    [("source: forge\nid: 1", True), ("source: forge", False), ("id: 1", False), ("id:", False)],
)
def test_imported_items(front: str, is_imported: bool) -> None:
    """An imported item has both `source` and `id`."""
    assert is_marked_imported(f"---\n{front}\n---\n") == is_imported


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("", ""),
        ("\n \n", ""),
        ("\n  first\tline\n\nsecond", "first line"),
        ("text\n\n## A  heading ##\n", "A heading"),
        ("# " + "x" * 120, "x" * 120),
        ("# " + "x" * 121, "x" * 119 + "…"),
    ],
)
def test_titles(text: str, title: str) -> None:
    """The first heading, else the first line, at most 120 characters of it."""
    assert title == title_of(text)
