"""The file for a person about findings that reviews keep repeating."""

from __future__ import annotations

from cuggino.domain.findings import Finding, finding_as_markdown


def test_a_file_for_a_person() -> None:
    """The file has a title, the location, the reviewer's text, and the next steps."""
    text = finding_as_markdown(Finding("1. **No check**\nof `x`", "src/a.py:3"))
    assert (
        "# No check\n\nWhere: `src/a.py:3`\n\n1. **No check**\nof `x`\n\nReviews requested "
        "this, and no plan resolved it. Decide what is right: fix the code, or change the "
        "specification. Then delete this file.\n"
    ) == text


def test_a_long_title_is_cut() -> None:
    """A first line above 100 characters is truncated in the title and kept whole below it."""
    title, _, rest = finding_as_markdown(Finding("word " * 60)).partition("\n")
    assert "# " + ("word " * 20).strip() + "…" == title
    assert ("word " * 60).strip() in rest
    assert finding_as_markdown(Finding("w" * 100)).startswith("# " + "w" * 100 + "\n")
    assert finding_as_markdown(Finding("w" * 101)).startswith("# " + "w" * 99 + "…\n")


def test_a_line_is_not_repeated() -> None:
    """A finding that fits into its title has no text below it."""
    text = finding_as_markdown(Finding("No help text"))
    assert 1 == text.count("No help text")
    assert "Where" not in text


def test_a_title_without_words() -> None:
    """A finding of nothing but punctuation gets a generic title."""
    assert finding_as_markdown(Finding("***")).startswith("# Finding\n")


def test_an_improvement() -> None:
    """The file of an improvement has neither id nor label, and other next steps."""
    finding = Finding("F3: [improvement] Shorter names", "src/a.py")
    text = finding_as_markdown(finding, is_improvement=True)
    assert text.startswith("# Shorter names\n\nWhere: `src/a.py`\n\nA review suggested this")
