"""The file in which a person finds what reviews ask for again and again."""

from __future__ import annotations

from cuggino.domain.findings import Finding, as_markdown


def test_a_file_for_a_person() -> None:
    """The file has a title, the place, the reviewer's words, and what to do."""
    text = as_markdown(Finding("1. **No check**\nof `x`", "src/a.py:3"), reviews=3)
    assert (
        "# No check\n\nWhere: `src/a.py:3`\n\n1. **No check**\nof `x`\n\n3 reviews in a row "
        "asked for this, and no plan settled it. Decide what is right: mend the code, or "
        "change the specification. Then delete this file.\n"
    ) == text


def test_a_long_title_is_cut() -> None:
    """A first line above 100 characters is cut in the title and whole below it."""
    title, _, rest = as_markdown(Finding("word " * 60)).partition("\n")
    assert "# " + ("word " * 20).strip() + "…" == title
    assert ("word " * 60).strip() in rest
    assert as_markdown(Finding("w" * 100)).startswith("# " + "w" * 100 + "\n")
    assert as_markdown(Finding("w" * 101)).startswith("# " + "w" * 99 + "…\n")


def test_a_line_is_not_said_twice() -> None:
    """A finding that its title says in full has no text below it."""
    text = as_markdown(Finding("No help text"))
    assert 1 == text.count("No help text")
    assert "Where" not in text


def test_a_title_without_words() -> None:
    """A finding of nothing but marks is called one."""
    assert as_markdown(Finding("***")).startswith("# Finding\n")
