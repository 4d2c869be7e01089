"""The commands of a person as a stream, in virtual time."""

from __future__ import annotations

from pathlib import Path

from cuggino.events import ContinueAsked, ControlIgnored, Event, PauseAsked, StopAsked
from cuggino.stages import control_commands
from cuggino.storage import ControlFolder
from cuggino.testing import VirtualClock


def test_commands_come_as_they_are_sent(tmp_path: Path) -> None:
    """Pending commands come at once, later ones within a period, and each once."""
    control = ControlFolder(tmp_path / "control", key=tmp_path / "key")
    control.send(PauseAsked())

    def forge(*_: object) -> None:
        (control.folder / "0.json").write_text("{}")

    clock, seen = VirtualClock(), list[tuple[float, Event]]()
    stream = control_commands(control, period=2)
    listening = stream.subscribe(lambda event: seen.append((clock.elapsed, event)), scheduler=clock)
    clock.schedule_relative(3, lambda *_: control.send(ContinueAsked()))
    clock.schedule_relative(5, forge)
    clock.schedule_relative(6.5, lambda *_: control.send(StopAsked()))
    clock.schedule_relative(7, lambda *_: listening.dispose())
    clock.schedule_relative(7.5, lambda *_: control.send(StopAsked()))
    clock.start()
    assert [(0.0, PauseAsked()), (4.0, ContinueAsked())] == seen[:2]
    (at, event) = seen[2]
    assert 6.0 == at
    assert isinstance(event, ControlIgnored)
    assert 3 == len(seen)


def test_each_subscription_begins_anew(tmp_path: Path) -> None:
    """A run that is resumed hears what another process has heard before."""
    control = ControlFolder(tmp_path / "control", key=tmp_path / "key")
    control.send(PauseAsked())
    stream = control_commands(control)
    for _ in range(2):
        seen: list[Event] = []
        stream.subscribe(seen.append, scheduler=VirtualClock()).dispose()
        assert [PauseAsked()] == seen
