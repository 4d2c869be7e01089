"""Lines drawn below the printed ones: their number, their width, and where warnings go."""

from __future__ import annotations

import io

import pytest

from cuggino_cli.screen.fragments import Fragment
from cuggino_cli.screen.terminal import Terminal, rows_of
from cuggino_cli.screen.text import fit, rows, width

from .screen import Screen


def terminal_on(screen: Screen, *, height: int = 24, errors: io.StringIO | None = None) -> Terminal:
    return Terminal(
        screen,
        color=False,
        interactive=True,
        columns=lambda: screen.columns,
        height=lambda: height,
        errors=errors,
        error_color=True,
    )


def lines(*texts: str) -> list[list[Fragment]]:
    return [[Fragment("plain", text)] for text in texts]


def test_drawing_replaces_the_previous_lines() -> None:
    """Fewer or more lines than before leave nothing behind, and printed lines go above."""
    screen = Screen(20)
    terminal = terminal_on(screen)
    terminal.draw(lines("a", "b", "c"))
    terminal.draw(lines("d"))
    assert ["d"] == screen.visible()
    terminal.draw(lines("d", "e"))
    terminal.print([Fragment("plain", "printed")])
    terminal.draw(lines("d", "f"))
    assert ["printed", "d", "f"] == screen.visible()
    terminal.draw([])
    assert ["printed"] == screen.visible()


def test_changed_line_rewrites_the_rest() -> None:
    """Lines are rewritten from the first changed one on."""
    screen = Screen(20)
    terminal = terminal_on(screen)
    terminal.draw(lines("a", "b", "c"))
    before = len(screen.getvalue())
    terminal.draw(lines("a", "x", "c"))
    assert "\x1b[2K\x1b[1A\x1b[2K\rx\nc" == screen.getvalue()[before:]
    assert ["a", "x", "c"] == screen.visible()


def test_only_erasable_lines_are_drawn() -> None:
    """When the lines exceed the height, only the last ones are drawn, with a row to spare."""
    screen = Screen(20)
    terminal_on(screen, height=3).draw(lines("a", "b", "c", "d"))
    assert ["c", "d"] == screen.visible()


def test_fragments_share_a_line() -> None:
    """A line of several fragments is cut as a whole, before the last column."""
    screen = Screen(10)
    terminal_on(screen).draw([[Fragment("success", "✓ 漢字"), Fragment("prose", "abcdef")]])
    assert ["✓ 漢字abc"] == screen.visible()
    assert 9 == width(screen.visible()[0])


def test_warning_goes_to_its_own_stream() -> None:
    """A warning is written to its own stream, in its own color, after erasing the drawing."""
    screen, errors = Screen(20), io.StringIO()
    terminal = terminal_on(screen, errors=errors)
    terminal.draw(lines("a", "b"))
    terminal.print([Fragment("error", "broken")], is_complaint=True)
    assert ([""], "\x1b[31mbroken\x1b[0m\n") == (screen.visible(), errors.getvalue())


def test_warning_without_standard_error_is_a_line() -> None:
    """Without standard error a warning is printed like other lines."""
    screen = Screen(20)
    terminal_on(screen).print([Fragment("error", "broken")], is_complaint=True)
    assert "broken\n" == screen.getvalue()


@pytest.mark.parametrize(
    ("expected", "text", "columns"),
    [
        (1, "", 5),
        (1, "abcde", 5),
        (2, "abcdef", 5),
        (2, "漢字漢", 5),
        (3, "漢字漢字漢", 5),
        (3, "漢字漢", 2),
        (2, "ab", 1),
        (1, "e\u0301e\u0301", 2),
    ],
)
def test_rows(expected: int, text: str, columns: int) -> None:
    """A wide character that does not fit moves to the next row; a combining one has no width."""
    assert expected == rows(text, columns)
    screen = Screen(columns)
    screen.write(text)
    assert expected == len(screen.cells) or columns < 2


def test_long_text_is_cut_quickly() -> None:
    """Cutting a text of a million characters reads only the part that is shown."""
    assert "漢" * 39 == fit("漢" * 1_000_000, 80)


def test_height_without_a_terminal_is_24() -> None:
    """Without a terminal the height is 24 rows."""
    assert 24 == rows_of(io.StringIO())()
