"""The enclosure of a program that the operating system confines."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from cuggino.programs import program
from cuggino.sandbox.logins import without_logins


def loader() -> Path:
    """Return a program that confines itself, then becomes another one."""
    return program("sandbox/loader.py")


@dataclass(frozen=True, kw_only=True)
class Enclosure:
    """The words in front of a command that confine it and all its processes.

    It holds no resources: any number of commands can be started in it, also at once.
    """

    words: tuple[str, ...]
    """The program that confines and its options. The last word is `--`."""

    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Environment variables that the command gets in addition."""

    shows: tuple[str, ...] = ()
    """Paths that are accessible although they would be hidden, as in a setting."""

    filter: Path | None = None
    """A filter of system calls that the words take with `--seccomp FD`."""

    reports: bool = False
    """True if the words take `--json-status-fd FD`, to report `child-pid` and `exit-code`."""

    namespace: bool = False
    """True if all processes end with the first one of a PID namespace, the `child-pid`."""

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of the command, without logins that it may not use."""
        return {**without_logins(env, self.shows), **self.env}

    def command(
        self, command: Iterable[str], *, status_fd: int | None = None, options: Iterable[str] = ()
    ) -> tuple[str, ...]:
        """Return the words that start the command, with further options of the confining program.

        Reports go to `status_fd` if it is given.
        """
        status = () if status_fd is None else ("--json-status-fd", str(status_fd))
        first, filtered = self._filtered(status_fd)
        return (*first, *self.words[:-1], *options, *status, *filtered, *self.words[-1:], *command)

    def _filtered(self, status_fd: int | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the words that open the filter, and the option for it."""
        if self.filter is None:
            return (), ()
        free = 9 if status_fd != 9 else 8  # every shell knows these
        opening = f'exec "$0" "$@" {free}<{shlex.quote(str(self.filter))}'
        return ("/bin/sh", "-c", opening), ("--seccomp", str(free))
