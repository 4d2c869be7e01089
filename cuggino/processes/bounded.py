"""`run_bounded`: a short command that must answer soon."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path


def run_bounded(
    argv: Sequence[str],
    *,
    seconds: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> subprocess.CompletedProcess[bytes]:
    """Run a command without a terminal and return its output; end it after `seconds`.

    Its process group is killed when the time is up, or when a person presses Ctrl-C. The output
    goes to files, so that a child that it leaves behind cannot hold up the answer.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it has not ended in time.
    """
    with (
        tempfile.TemporaryFile() as source,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        source.write(stdin)
        source.seek(0)
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=source,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout=seconds)
        finally:
            if process.returncode is None:  # not reaped yet: its group id is still its own
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(argv, code, output.read(), errors.read())
