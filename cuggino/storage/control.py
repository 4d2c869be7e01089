"""The control folder of a workspace: what a person asks of the run that holds it.

Each command is a file, so that it outlasts the run that it was meant for: a run that was killed
while it was paused is still paused when it is resumed. A command carries a signature by a key that
only the user can read, and that no view of an agent shows.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cuggino.errors import ConfigError, StorageError
from cuggino.events import (
    ControlEvent,
    ControlIgnored,
    Event,
    SteerAsked,
    dump_event,
    is_control_event,
    parse_event,
)
from cuggino.files import describe, parse_json, read_regular, storing, write_atomic
from cuggino.storage.ids import new_id

LONGEST_MESSAGE = 16_000
"""The most characters of a message to an agent."""

KEY_FILE = "control.key"
"""The name of the key in the state folder of the user."""

_BIGGEST = 128 * 1024
_SUFFIX = ".json"
_IGNORED = ".ignored"


class Command(NamedTuple):
    """A file of the folder, and what it says."""

    path: Path
    event: ControlEvent
    """The command; `ControlIgnored` if the file is none."""


class ControlFolder:
    """The commands in one folder, in the order in which they were sent.

    Args:
        folder: the folder, which need not exist.
        key: the file of the user's key; it is created by the first command. None accepts and sends
            nothing.
    """

    def __init__(self, folder: Path, *, key: Path | None) -> None:
        self.folder = folder
        self._key = key

    def prepare(self) -> None:
        """Make the key if there is none, so that views can hide it; a failure is told by `send`."""
        if self._key is not None and self._read_key() is None:
            with suppress(StorageError):
                self._make_key()

    def send(self, command: ControlEvent) -> None:
        """Write a signed command.

        Raises:
            ConfigError: there is no key to sign it with, or the message is empty or too long.
            StorageError: it could not be written.
        """
        if isinstance(command, SteerAsked):
            if not command.text.strip():
                raise ConfigError("the message is empty", hint="say what the agent is to do")
            if len(command.text) > LONGEST_MESSAGE:
                raise ConfigError(
                    f"the message is longer than {LONGEST_MESSAGE:,} characters",
                    hint="put it into a file of the project, and name that",
                )
        key = self._read_key() or self._make_key()
        said = {"at": datetime.now(UTC).isoformat(), "command": json.loads(dump_event(command))}
        with storing("send command", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps({**said, "signature": self._signature(key, said)})
            write_atomic(self.folder / f"{new_id()}{_SUFFIX}", text + "\n", private=True)

    def pending(self) -> list[Command]:
        """Return the commands that no run has dealt with, the oldest first."""
        return [self._read(path) for path in self._paths()]

    def new(self, seen: set[str]) -> list[ControlEvent]:
        """Return the commands whose names are not among those `seen`, and add them there.

        A file that is no command, or was not signed by the user, is renamed to `*.ignored` and
        returned as `ControlIgnored`.
        """
        commands: list[ControlEvent] = []
        for path in self._paths():
            if path.name in seen:
                continue
            seen.add(path.name)
            commands.append(self._read(path).event)
            if isinstance(commands[-1], ControlIgnored):
                with suppress(OSError):
                    path.rename(path.with_suffix(_IGNORED))
        return commands

    def settle(self, command: ControlEvent) -> None:
        """Remove the files of a command that has taken effect."""
        for pending in self.pending():
            if pending.event == command:
                with suppress(OSError):
                    pending.path.unlink(missing_ok=True)

    def clear(self, *, messages: bool = True) -> None:
        """Remove all commands, which were for a run that is over; optionally keep messages."""
        for pending in self.pending():
            if messages or not isinstance(pending.event, SteerAsked):
                with suppress(OSError):
                    pending.path.unlink(missing_ok=True)

    def _paths(self) -> list[Path]:
        try:
            with os.scandir(self.folder) as entries:
                names = [entry.name for entry in entries if entry.name.endswith(_SUFFIX)]
        except OSError:
            return []
        return [self.folder / name for name in sorted(names)]

    def _read(self, path: Path) -> Command:
        try:
            event = self._command(parse_json(read_regular(path, biggest=_BIGGEST)))
        except (OSError, ValueError) as error:
            event = ControlIgnored(source=path.name, reason=describe(error))
        return Command(path, event)

    def _command(self, said: object) -> ControlEvent:
        if not isinstance(said, dict) or not isinstance(said.get("command"), dict):
            raise ValueError("it is not a command of cuggino")
        signature, key = said.pop("signature", None), self._read_key()
        if key is None or not isinstance(signature, str):
            raise ValueError("it is not signed")
        if not hmac.compare_digest(self._signature(key, said).encode(), signature.encode()):
            raise ValueError("it is not signed by this user")
        event: Event = parse_event(json.dumps(said["command"]))
        if not is_control_event(event):
            raise ValueError("this version does not know the command")
        return event

    def _signature(self, key: bytes, said: dict[str, object]) -> str:
        """Return the signature of the command for this folder, so that no other takes it."""
        content = json.dumps([str(self.folder.resolve()), said], sort_keys=True)
        return hmac.new(key, content.encode(), hashlib.sha256).hexdigest()

    def _read_key(self) -> bytes | None:
        if self._key is None:
            return None
        try:
            return bytes.fromhex(read_regular(self._key).decode("ascii").strip()) or None
        except (OSError, ValueError):
            return None

    def _make_key(self) -> bytes:
        if self._key is None:
            raise ConfigError("commands cannot be signed: there is no home folder", hint="set HOME")
        with storing("make key", self._key):
            self._key.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            own = self._key.with_name(f"{self._key.name}.{new_id()}")
            write_atomic(own, secrets.token_hex(32) + "\n", private=True)
            try:
                os.link(own, self._key)  # of two at once, the first one's counts
            except FileExistsError:
                if self._read_key() is None:
                    own.replace(self._key)
            own.unlink(missing_ok=True)
        key = self._read_key()
        assert key is not None
        return key
