"""What git says, for people."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from cuggino.errors import ProcessFailed

STALE = re.compile(
    r"stale info|is at \w+ but expected|reference already exists|incorrect old value"
)
"""Git's messages when a push with a lease finds another commit."""
_CREDENTIALS = re.compile(r"(\w+://)[^/@\s']+@")


def command_of(args: Iterable[str]) -> str:
    """Return the name of the command among the arguments of git."""
    return next((word for word in args if not word.startswith("-") and "=" not in word), "")


def failed(args: Sequence[str], code: int, words: str) -> ProcessFailed:
    """Return the error of a failed command, with the gist of what it printed."""
    command = command_of(args)
    error = ProcessFailed("git", code, words)
    told = push_gist(words) if command == "push" else gist(words)
    ended = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
    error.message = f"git {command} {ended}"
    error.message += f": {told}" if told else ""
    error.args = (error.message,)
    return error


def gist(text: str, count: int = 3) -> str:
    """Summarize the output of git or a hook: from the first error on, or the last lines."""
    return _shortened([line.strip() for line in text.splitlines() if line.strip()], count)


def push_gist(text: str) -> str:
    """Summarize the output of `git push --porcelain` without advice and credentials.

    A rejection gives the remote's message and git's reason, such as `[rejected] (fetch first)`.
    """
    lines = [line.strip() for line in _CREDENTIALS.sub(r"\1", text).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("To ", "hint:", "Done"))]
    # `!<TAB>from:to<TAB>reason`
    rejections = [line.split("\t")[-1] for line in told if line.startswith("!\t")]
    if rejections:
        remote = [line for line in told if line.startswith("remote:") and line != "remote:"]
        return " / ".join([*rejections[:1], *remote[-2:]])
    said = [line for line in told if not line.startswith("error: failed to push some refs")]
    return _shortened(said or told)


def joined(paths: Iterable[str]) -> bytes:
    """Return paths as a command with `-z` reads them."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _shortened(lines: list[str], count: int = 3) -> str:
    errors = (n for n, line in enumerate(lines) if line.startswith(("fatal:", "error:")))
    start = next(errors, max(len(lines) - count, 0))
    return " / ".join(lines[start : start + count])
