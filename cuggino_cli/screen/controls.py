"""The keys of a run: what they ask for, and the status that they change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeAlias

from cuggino import events as ev
from cuggino.errors import CugginoError
from cuggino_cli.screen.fragments import Verbosity
from cuggino_cli.screen.status import Keys, RunStatus
from cuggino_cli.screen.terminal import Lines

Send: TypeAlias = "Callable[[ev.ControlEvent], object]"
"""Give a command to the run."""

_NOTE_S = 5.0


class Controls:
    """What a screen shows, which keys may change while the run works. Used on its lane only.

    Args:
        lines: the output.
        verbosity: how much is shown at first.
        send: gives a command to the run; None if it takes none.
        opening: the event that describes the run.
    """

    def __init__(
        self,
        lines: Lines,
        *,
        verbosity: Verbosity,
        send: Send | None = None,
        opening: ev.Event | None = None,
        has_keys: bool = False,
    ) -> None:
        self.lines = lines
        self.verbosity = verbosity
        self._send = send
        self._opening = opening
        self._has_keys = has_keys
        self._status: RunStatus | None = None
        self._is_still = False

    def begin(self, status: RunStatus, at: datetime) -> None:
        """Show a status from now on; what it shows changes with the events."""
        activity = status.activity
        if self._opening is not None:
            activity = activity.add(self._opening, at=at)
        self._status = replace(status, activity=activity.beginning(at), seen=at)
        self._show()

    def add(self, event: ev.Event, at: datetime) -> None:
        """Follow an event; `show` shows what it changed."""
        status = self._status
        if status is None or isinstance(event, ev.MessageDelta | ev.PingEvent):
            return
        status = status.add(event, at=at)
        if status.note and isinstance(event, ev.ControlEvent):
            status = replace(status, note="")  # the event reports it
        self._status = status

    def show(self) -> None:
        """Show the status after the events added so far."""
        if self._status is not None and not self._is_still:
            self.lines.show(self._status)

    def be_still(self) -> None:
        """Show no status any more."""
        self._is_still = True
        self.lines.show(None)

    def press(self, key: str, at: datetime) -> None:
        """Do what a key stands for: `p`, `q` or `v`."""
        status = self._status
        if key == "v":
            self._change_detail(at)
        elif status is None:
            return
        elif key == "q":
            self._ask(ev.StopAsked(), "Stops after this stage", at)
        elif key == "p" and status.activity.state in ("pausing", "paused"):
            self._ask(ev.ContinueAsked(), "Goes on", at)
        elif key == "p":
            self._ask(ev.PauseAsked(), "Pauses after this stage", at)

    def steer(self, text: str, at: datetime) -> None:
        """Give an agent a message; with several slots, it begins with the slot."""
        items = self._status.activity.at_work if self._status is not None else ()
        first, _, rest = text.partition(" ")
        item = next((one for one in items if first.rstrip(":") == str(one.slot)), None)
        if item is not None and rest.strip():
            said = rest.strip()
            self._ask(
                ev.SteerAsked(text=said, item=item.item), f"Told slot {item.slot}: {said}", at
            )
        elif len(items) > 1:
            self._note(f"Begin with the slot: `{items[0].slot} {text}`", at)
        else:
            name = items[0].item if items else None
            self._ask(ev.SteerAsked(text=text, item=name), f"Told: {text}", at)

    def _ask(self, command: ev.ControlEvent, note: str, at: datetime) -> None:
        if self._send is None:
            return
        try:
            self._send(command)
        except (CugginoError, OSError) as error:
            note = f"Not asked: {error}"
        self._note(note, at)

    def _change_detail(self, at: datetime) -> None:
        is_verbose = self.verbosity >= Verbosity.VERBOSE
        self.verbosity = Verbosity.NORMAL if is_verbose else Verbosity(self.verbosity + 1)
        words = {Verbosity.NORMAL: "Normal detail", Verbosity.VERBOSE: "All detail"}
        self._note(words[self.verbosity], at)

    def _note(self, note: str, at: datetime) -> None:
        if self._status is None:
            return
        until = at + timedelta(seconds=_NOTE_S)
        self._status = replace(self._status, note=note, note_until=until)
        self._show()

    def _show(self) -> None:
        if self._status is not None:
            keys = Keys(more=self.verbosity < Verbosity.VERBOSE, controls=self._send is not None)
            self._status = replace(self._status, keys=keys if self._has_keys else None)
        self.show()
