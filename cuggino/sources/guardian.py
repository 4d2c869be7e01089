"""The program that terminates the children of a process that was killed.

Run as `python -I -S guardian.py COOKIE FOLDER...` with a pipe as standard input whose only writer
is the guarded process. Lines: `+ PGID` and `- PGID` when a process group starts and ends, `quit`
when nothing is left. The end of the input without `quit` means that the guarded process is gone:
its groups, their descendants and all processes whose cookie starts with COOKIE are terminated.
`cuggino` and `psutil` are imported from the FOLDERs, and only then.
"""

import os
import signal
import sys

GRACE = 2.0
"""Seconds for SIGINT, and for SIGTERM."""


def guarded_groups() -> set[int] | None:
    """Read until the guarded process ends; return its remaining groups, None after `quit`."""
    groups: set[int] = set()
    rest = b""
    while chunk := os.read(0, 4096):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            sign, _, group = line.partition(b" ")
            if sign == b"+":
                groups.add(int(group))
            elif sign == b"-":
                groups.discard(int(group))
            else:
                return None
    return groups


def main(cookie: str, folders: list[str]) -> None:
    """Wait for the guarded process to die, then terminate the processes it left behind."""
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, signal.SIG_IGN)
    groups = guarded_groups()
    if groups is None:
        return
    sys.path.extend(folders)
    from cuggino.sources.process_tree import ProcessTree

    ProcessTree(groups, cookie).end(((signal.SIGINT, GRACE), (signal.SIGTERM, GRACE)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
