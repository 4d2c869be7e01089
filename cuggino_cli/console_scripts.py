"""The console scripts: Ctrl-C and SIGTERM end a start with their exit codes from its first moment.

What the command imports takes longer than all else of its start. Nothing of it has been imported
when the signals are handled.
"""

import os
import signal
import sys
from types import FrameType
from typing import NoReturn


def cuggino() -> NoReturn:
    """Run `cuggino`, also for users of Lopen."""
    _handle_signals()
    from cuggino_cli.main import entry

    entry()


def autonoe() -> NoReturn:
    """Run the console script of Autonoe's users: its `run` and `sync` are `deliver`."""
    _handle_signals()
    from cuggino_cli.main import entry

    match sys.argv[1:]:
        case ["run", *rest]:
            entry(["deliver", *rest])
        case ["sync", *rest]:
            entry(["deliver", "sync", *rest])
        case args:
            entry(args)


def _handle_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(number, _leave)


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    """End at once: nothing has been started or written yet, or all has ended."""
    os._exit(128 + number)
