"""Lines that wait to be drawn."""

from __future__ import annotations

import pytest

from cuggino_cli.screen import waiting
from cuggino_cli.screen.waiting import WaitingLines


class Asked:
    """Counts how often somebody is asked to take the lines."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


def test_lines_are_asked_for_once_until_they_are_taken() -> None:
    """Lines are taken together, in order; the next one asks again."""
    asked = Asked()
    lines = WaitingLines(asked)
    assert lines.put("a\n")
    assert lines.put("b\n")
    assert (1, "a\nb\n", "") == (asked.times, lines.take(), lines.take())
    lines.put("c\n")
    assert 2 == asked.times


def test_lines_of_a_block_are_drawn_together() -> None:
    """Within it nobody is asked to take them, so that a part of it is never on the screen."""
    asked = Asked()
    lines = WaitingLines(asked)
    with lines.at_once():
        lines.put("a\n")
        lines.put("b\n")
        assert 0 == asked.times
    assert 1 == asked.times


def test_a_full_queue_waits_for_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more lines than the limit wait, also within a block."""
    monkeypatch.setattr(waiting, "_LIMIT", 2)
    lines, taken = WaitingLines(Asked()), list[str]()
    monkeypatch.setattr(lines._changed, "wait", lambda _seconds: taken.append(lines.take()))
    with lines.at_once():
        for line in "abcde":
            lines.put(line)
    assert (["ab", "cd"], "e") == (taken, lines.take())


def test_nothing_is_put_when_nobody_draws() -> None:
    """The caller learns that it has to write the line itself; what waited is still there."""
    lines = WaitingLines(Asked())
    lines.put("a\n")
    lines.close()
    assert not lines.put("b\n")
    assert "a\n" == lines.take()
