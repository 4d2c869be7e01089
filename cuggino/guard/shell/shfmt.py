"""Fast runs of `shfmt`, the parser of shell scripts: one for every tool call."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from typing import IO, Any

from cuggino.guard.shell.tree import Refused

_NO_BASH = 1
"""Exit code of shfmt for a text that is not bash."""
TIMEOUT_SECONDS = 20.0
"""Long enough for a busy machine; `hook.ALARM_SECONDS` is longer."""
_LARGEST_ANSWER = 16 * 1024 * 1024
_CHUNK = 64 * 1024
_POLL_SECONDS = 0.0005


def find_shfmt() -> str:
    """Return the absolute path of `shfmt`, preferring the one installed with cuggino.

    Raises `ConfigError` with a hint when it is missing.
    """
    from pathlib import Path

    from cuggino.errors import ConfigError

    folders = [Path(sys.executable).parent, Path(sys.prefix, "bin")]
    # The `bin` folder beside the `lib/pythonX.Y/site-packages` of this package.
    folders += [folder / "bin" for folder in Path(__file__).parents[6:7]]
    # The `bin` folder of `pip install --target`, also used by single-file programs.
    folders += [Path(__file__).parents[3] / "bin"]
    folders += [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    for folder in folders:
        path = folder / "shfmt"
        # `Path.is_file` raises where a folder cannot be searched.
        if path.is_absolute() and os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
            return str(path)
    raise ConfigError(
        "The program `shfmt`, with which commands are judged, is not installed.",
        hint="Install cuggino again, or the package `shfmt-py` beside it.",
    )


def run_shfmt(path: str, text: str) -> dict[str, Any]:
    """Return shfmt's syntax tree of `text`; it runs with an empty environment.

    Raises `Refused` when the text is not bash, or when shfmt fails or times out.
    """
    try:
        code, answer = _exchange(path, text.encode())
    except UnicodeEncodeError:
        raise Refused("It contains characters that are not text; remove them.") from None
    except TimeoutError:
        raise Refused("It took too long to parse; split it into several commands.") from None
    except OSError as error:
        raise Refused(f"The parser `{path}` cannot be run: {error.strerror or error}.") from None
    if code == _NO_BASH:
        raise Refused(_why(answer.decode(errors="replace")))
    if code != 0:
        raise Refused(_crash(code, answer.decode(errors="replace")))
    try:
        tree = json.loads(answer)
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, dict):
        raise Refused("The parser's output cannot be read; simplify the command.")
    return tree


def _why(message: str) -> str:
    """Turn shfmt's error message into a reason."""
    message = message.strip().removeprefix("<standard input>:")
    if "without closing quote" in message:
        return f"Unbalanced quotes ({message}): close every quote, or escape it."
    return f"It cannot be parsed as bash ({message}); simplify it."


def _crash(code: int, message: str) -> str:
    """Turn the end of a shfmt that crashed into a reason, without the dump of its stacks."""
    how = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith("fatal error:")), "".join(lines[:1]))
    why = f" ({said})" if said else ""
    return f"The parser {how}{why}; with too little memory it cannot work (`ulimit -v`)."


def _exchange(path: str, data: bytes) -> tuple[int, bytes]:
    """Run shfmt with `data` as its input; return its exit code and its output."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    stdin, feed = _pipe()
    answers, stdout = _pipe()
    with feed, answers:
        with stdin, stdout:
            pid = os.posix_spawn(
                path,
                [path, "-ln", "bash", "--to-json"],
                {},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, stdin.fileno(), 0),
                    (os.POSIX_SPAWN_DUP2, stdout.fileno(), 1),
                    (os.POSIX_SPAWN_DUP2, stdout.fileno(), 2),
                ],
            )
        try:
            answer = _converse(feed, answers, data, deadline)
            return _wait(pid, deadline), answer
        except BaseException:
            _end(pid)
            raise


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    """Open a pipe as unbuffered files that close themselves."""
    read, write = os.pipe()
    return os.fdopen(read, "rb", buffering=0), os.fdopen(write, "wb", buffering=0)


def _converse(feed: IO[bytes], answers: IO[bytes], data: bytes, deadline: float) -> bytes:
    """Write all of `data` while reading the output, so that neither side blocks."""
    os.set_blocking(feed.fileno(), False)
    poll = select.poll()
    poll.register(answers, select.POLLIN)
    poll.register(feed, select.POLLOUT)
    left, size = memoryview(data), 0
    chunks: list[bytes] = []
    while True:
        ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not ready:
            raise TimeoutError
        for fd, _ in ready:
            if fd == answers.fileno():
                chunk = os.read(fd, _CHUNK)
                if not chunk:
                    return b"".join(chunks)
                chunks.append(chunk)
                size += len(chunk)
                if size > _LARGEST_ANSWER:
                    raise TimeoutError
                continue
            try:
                left = left[os.write(fd, left) :]
            except BrokenPipeError:  # it has exited; its output has the reason
                left = left[:0]
            if not left:
                poll.unregister(fd)
                feed.close()


def _wait(pid: int, deadline: float) -> int:
    """Return the exit code of a program that has closed its output and is about to exit."""
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(_POLL_SECONDS)  # macOS cannot wait for a child with a timeout


def _end(pid: int) -> None:
    """Kill the program if it still runs, and reap it."""
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass
