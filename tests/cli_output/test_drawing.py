"""Lines that are drawn below the printed ones: how many, how wide, and where complaints go."""

from __future__ import annotations

import io

import pytest

from cuggino_cli.output.terminal import Terminal, rows_of
from cuggino_cli.output.theme import Fragment
from cuggino_cli.output.widths import fit, rows, width

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


def test_lines_are_drawn_in_the_place_of_the_last_ones() -> None:
    """Fewer or more lines than before leave nothing behind, and a printed line goes above."""
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


def test_a_line_in_the_middle_changes() -> None:
    """From the first line that has changed on all are written again."""
    screen = Screen(20)
    terminal = terminal_on(screen)
    terminal.draw(lines("a", "b", "c"))
    before = len(screen.getvalue())
    terminal.draw(lines("a", "x", "c"))
    assert "\x1b[2K\x1b[1A\x1b[2K\rx\nc" == screen.getvalue()[before:]
    assert ["a", "x", "c"] == screen.visible()


def test_more_lines_than_rows() -> None:
    """What could not be erased is not drawn: the last lines are, with a row to spare."""
    screen = Screen(20)
    terminal_on(screen, height=3).draw(lines("a", "b", "c", "d"))
    assert ["c", "d"] == screen.visible()


def test_fragments_share_a_line() -> None:
    """A line of several fragments is cut as a whole, short of the last column."""
    screen = Screen(10)
    terminal_on(screen).draw([[Fragment("success", "✓ 漢字"), Fragment("prose", "abcdef")]])
    assert ["✓ 漢字abc"] == screen.visible()
    assert 9 == width(screen.visible()[0])


def test_a_complaint_elsewhere() -> None:
    """A complaint is written to its own stream, in its own colour, below erased lines."""
    screen, errors = Screen(20), io.StringIO()
    terminal = terminal_on(screen, errors=errors)
    terminal.draw(lines("a", "b"))
    terminal.print([Fragment("error", "broken")], is_complaint=True)
    assert ([""], "\x1b[31mbroken\x1b[0m\n") == (screen.visible(), errors.getvalue())


def test_a_complaint_without_a_stream_of_its_own() -> None:
    """Where there is no standard error a complaint is a line like others."""
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
    """A wide character that does not fit goes to the next row; a combining one takes no column."""
    assert expected == rows(text, columns)
    screen = Screen(columns)
    screen.write(text)
    assert expected == len(screen.cells) or columns < 2


def test_a_long_text_is_cut_quickly() -> None:
    """Of a text of a million characters no more is looked at than is shown."""
    assert "漢" * 39 == fit("漢" * 1_000_000, 80)


def test_height_without_a_terminal() -> None:
    """Where there is no terminal it is 24 rows high."""
    assert 24 == rows_of(io.StringIO())()
