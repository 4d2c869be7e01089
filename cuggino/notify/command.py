"""Notifications through a shell command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from reactivex import Observable, operators as ops, throw, timer

from cuggino.errors import CugginoError, ProcessError, ProcessFailed
from cuggino.operators import interrupt_when
from cuggino.processes import process_output
from cuggino.sandbox import Views

TIMEOUT = 30.0
"""Seconds that the command may take."""


class CommandNotifier:
    """A notifier that starts a shell command, such as `mail -s cuggino me@example.com`.

    Its input is the title, a blank line and the text; `CUGGINO_TITLE` and `CUGGINO_BODY` hold them
    too. No part of a message is added to the command line. With `views` it runs in the view of
    commands, as it may be a script that an agent can write.
    """

    def __init__(
        self, command: str, *, cwd: Path, views: Views | None = None, timeout: float = TIMEOUT
    ) -> None:
        self._command = command
        self._cwd = cwd
        self._views = views
        self._timeout = timeout

    def notify(self, title: str, body: str) -> Observable[Any]:
        """Start the command; complete when it exits with 0."""
        late = CugginoError(f"the notify command did not end within {self._timeout:g} s")
        env = {**os.environ, "CUGGINO_TITLE": title, "CUGGINO_BODY": body}
        output = process_output(
            ["/bin/sh", "-c", self._command],
            cwd=self._cwd,
            env=env,
            stdin=f"{title}\n\n{body}\n".encode("utf-8", "replace"),
            merge_stderr=True,
            enclosure=None if self._views is None else self._views.of_commands(self._cwd),
        )
        return output.pipe(
            ops.ignore_elements(),
            ops.catch(_failed),
            interrupt_when(timer(self._timeout).pipe(ops.flat_map(lambda _: throw(late)))),
        )


def _failed(error: Exception, _source: object) -> Observable[Any]:
    """Fail without quoting the command, which may contain a password."""
    if isinstance(error, ProcessFailed):
        return throw(CugginoError(f"the notify command exited with {error.child_exit_code}"))
    if isinstance(error, ProcessError):
        return throw(CugginoError("the notify command could not be started"))
    return throw(error)
