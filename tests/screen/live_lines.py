"""Test doubles of the output: a screen with a status area, without a thread."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TextIO

from reactivex.testing import TestScheduler

from cuggino_cli.screen.controls import Controls
from cuggino_cli.screen.fragments import Fragment, Verbosity, paint
from cuggino_cli.screen.terminal import PlainLines, Status

from .screen import Screen


class StatusLines(PlainLines):
    """Lines that keep the status that they are to show."""

    is_live = True

    def __init__(self, screen: Screen, *, height: int = 24, **options: Any) -> None:
        super().__init__(
            screen,
            columns=lambda: screen.columns,
            height=lambda: height,
            is_terminal=True,
            **{"color": False, **options},
        )
        self.screen = screen
        self.status: Status | None = None

    def show(self, status: Status | None) -> None:
        self.status = status

    def rows(self, now: datetime) -> list[str]:
        """Return the rows of the status as texts."""
        if self.status is None:
            return []
        rows = self.status.rows(now, columns=self.columns(), height=self.height())
        return [paint(row, color=False) for row in rows]


def now_of(clock: TestScheduler) -> datetime:
    """Return the virtual time."""
    return clock.now.replace(tzinfo=UTC)


def controls_on(
    lines: PlainLines, verbosity: Verbosity = Verbosity.NORMAL, **options: Any
) -> Controls:
    return Controls(lines, verbosity=verbosity, **options)


def plain_on(stream: TextIO, **options: Any) -> PlainLines:
    """Return lines without color on a stream."""
    return PlainLines(stream, **{"color": False, **options})


def line(text: str) -> list[Fragment]:
    return [Fragment("plain", text)]
