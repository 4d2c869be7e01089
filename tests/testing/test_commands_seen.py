"""Commands of a person in virtual time."""

from __future__ import annotations

from pathlib import Path

from cuggino.events import StopAsked
from cuggino.testing import VirtualRuntime
from tests.testing.one_task import DONE, HOUR, runs


def test_a_command_is_obeyed_when_it_is_sent(tmp_path: Path) -> None:
    """A watch that waits for items ends as soon as a person stops it."""
    cousin = VirtualRuntime(tmp_path, runs(DONE))
    cousin.at("3h", lambda: cousin.runtime.send(StopAsked()))
    story = cousin.play(cousin.runtime.watch(), until="1d")
    assert story.error is not None
    assert 3 * HOUR == cousin.clock.elapsed
