"""The command in this process, and what it prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pytest

from cuggino_cli.main import main


class Printed(NamedTuple):
    """What was printed on standard output and on standard error."""

    out: str
    err: str


@dataclass(frozen=True)
class Cli:
    """Runs the command in the working directory, and asserts its exit code if it is not None."""

    capture: pytest.CaptureFixture[str]

    def __call__(self, *words: str, code: int | None = 0) -> str:
        """Return what it has printed on standard output."""
        return self.both(*words, code=code).out

    def err(self, *words: str, code: int | None = 2) -> str:
        """Return what it has printed on standard error: by default, why it was refused."""
        return self.both(*words, code=code).err

    def both(self, *words: str, code: int | None = 0) -> Printed:
        """Return all that it has printed."""
        ended = main([*words])
        assert code in (None, ended)
        return self.printed()

    def printed(self) -> Printed:
        """Return what has been printed since the last look."""
        return Printed(*self.capture.readouterr())
