"""The program that terminates the children of a process that was killed.

Run as `python -I -S guardian.py COOKIE CUGGINO PSUTIL PGID...` when the guarded process is gone, by
the shell that has waited for it (`guardian_client`). Its groups, their descendants and all
processes whose cookie starts with COOKIE are terminated. `cuggino` and `psutil` are imported from
the two folders.
"""

import signal
import sys

GRACE = 2.0
"""Seconds for SIGINT, and for SIGTERM."""


def main(cookie: str, folders: list[str], groups: set[int]) -> None:
    """Terminate the processes that a dead process left behind."""
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, signal.SIG_IGN)
    sys.path.extend(folders)
    from cuggino.processes.process_tree import ProcessTree

    ProcessTree(groups, cookie).end(((signal.SIGINT, GRACE), (signal.SIGTERM, GRACE)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:4], {int(group) for group in sys.argv[4:]})
