"""Waiting for what a killed process has left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuggino.processes import orphans
from cuggino.processes.orphans import guardians_of, orphans_gone
from cuggino.testing import Marbles


class Guardians:
    """The guardians of each process, as the test has them."""

    def __init__(self) -> None:
        self.left: dict[int, int] = {}
        """How often they are still seen."""

    def __call__(self, pid: int) -> Iterator[str]:
        if self.left.get(pid, 0):
            self.left[pid] -= 1
            yield "at work"


@pytest.fixture
def guardians(monkeypatch: pytest.MonkeyPatch) -> Guardians:
    """Guardians that are seen in place of those of the machine."""
    made = Guardians()
    monkeypatch.setattr(orphans, "guardians_of", made)
    return made


@pytest.mark.parametrize(
    ("seen", "when"),
    [(0, 0.0), (1, 0.1), (3, 0.3), (300, 30.0)],
    ids=["none", "one", "some", "all"],
)
def test_it_is_told_as_soon_as_they_are_gone(guardians: Guardians, seen: int, when: float) -> None:
    """It looks every tenth of a second, and for half a minute."""
    guardians.left[7] = seen
    told = Marbles().record(orphans_gone(7), until=60)
    assert [(when, "next", True), (when, "completed", None)] == told


def test_it_gives_up(guardians: Guardians) -> None:
    """A guardian still running at the limit is reported."""
    guardians.left[7] = 1000
    told = Marbles().record(orphans_gone(7, limit=2.0), until=60)
    assert [(2.0, "next", False), (2.0, "completed", None)] == told


def test_a_process_is_no_orphan_of_itself(guardians: Guardians) -> None:
    """A run that begins in the same process waits for nothing."""
    guardians.left[os.getpid()] = 1000
    told = Marbles().record(orphans_gone(os.getpid()), until=60)
    assert [(0.0, "next", True), (0.0, "completed", None)] == told


def test_guardians_are_known_by_their_words(tmp_path: Path) -> None:
    """Of all programs it is those that run the guardian with the id of that process."""
    program = tmp_path / "guardian.py"
    program.write_text("print(flush=True); input()")
    words = [sys.executable, str(program), "/anywhere/4194305-abc", "/anywhere/4194306-4194307-x"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert [process.pid] == [found.pid for found in guardians_of(4194305)]
        assert [] == [*guardians_of(4194306)]
        assert [] == [*guardians_of(419430)]
        process.communicate(b"\n")
    assert [] == [*guardians_of(4194305)]
