"""`cuggino plan`: talk with the project manager (CUG-092 to CUG-094)."""

from __future__ import annotations

import os
import signal
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import TextIO

import click

from cuggino import Runtime, iterate
from cuggino.config import load_config
from cuggino_cli.follow.output import plain_lines
from cuggino_cli.help.manual import manual
from cuggino_cli.options.project import project_folder
from cuggino_cli.options.supervision import with_policies
from cuggino_cli.options.trusting import check_trust
from cuggino_cli.screen.console import complain
from cuggino_cli.screen.event_lines import EventLines
from cuggino_cli.screen.fragments import Verbosity

_RESET = (
    "\x1b[0m"  # no colors
    "\x1b[?25h"  # cursor visible
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l"  # no mouse reports
    "\x1b[?1004l"  # no focus reports
    "\x1b[?2004l"  # no bracketed paste
)
_RESET_KEYS = "\x1b[<u"
"""Ends the killed program's keyboard protocol."""
_RESET_SCREEN = "\x1b[?1049l\x1b[999B\r\n"
"""Leaves the killed program's alternate screen; the cursor goes below everything, because its
position then differs between terminals."""


@click.command(
    "plan",
    epilog=manual(
        ("cuggino plan", "Talk about what to build, in the folder of the project."),
        ("cuggino pm --agent claude", "The same, with a named agent."),
        ("cuggino plan --chat", "From your phone, until Ctrl-C (see `cuggino help chat`)."),
        exits="that of the agent's program; 2 if it cannot be started.",
        see=("backlog", "issues", "watch"),
    ),
)
@click.option(
    "--agent", "-a", metavar="NAME", help="An agent with an interactive mode, such as claude."
)
@click.option(
    "--chat", is_flag=True, help='Talk by the configured "chat" instead of this terminal.'
)
def command(agent: str | None, chat: bool) -> int:
    """Talk with a project manager about specs and backlog (also: pm).

    This is an interactive agent session in this terminal; the agent leads the project and writes no
    code. Bare `cuggino` starts it too, on a terminal in a configured project.
    """
    folder = project_folder(announce=True)
    check_trust(folder)
    config = with_policies(load_config(folder), {})
    runtime = Runtime.live(cwd=folder, config=config, agent=agent)
    if chat:
        return _by_chat(runtime)
    session = runtime.plan_session()
    code = hand_over(session.run)
    if code < 0:
        complain(f"{session.agent.name} was ended by signal {-code}")
        return 128 - code
    if code:
        complain(f"{session.agent.name} exited with code {code}")
    return code


def _by_chat(runtime: Runtime) -> int:
    """Print what is said, until Ctrl-C."""
    lines, view = plain_lines("auto"), EventLines(project=str(runtime.cwd))
    for event in iterate(runtime.plan_by_chat()):
        shown = view.fragments(event, Verbosity.NORMAL, at=datetime.now().astimezone())
        if shown is not None:
            lines.print(shown)
    return 1


def hand_over(program: Callable[[], int]) -> int:
    """Run a program that takes over the terminal, then restore the terminal; return its exit code.

    Restored are the line settings and the foreground group of standard input, the cursor, and the
    reporting of mouse and pastes. Without a terminal nothing is restored.
    """
    stdin, stdout = _terminal(sys.stdin), _terminal(sys.stdout)
    settings = termios.tcgetattr(stdin) if stdin is not None else None
    code = -1
    try:
        code = program()
    finally:
        # A background process is stopped when it changes the terminal.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with suppress(OSError, termios.error):  # the window was closed
            if stdin is not None and settings is not None:
                os.tcsetpgrp(stdin, os.getpgrp())
                termios.tcsetattr(stdin, termios.TCSADRAIN, settings)
            if stdout is not None:
                killed = _RESET_KEYS + _RESET_SCREEN if code < 0 else ""
                os.write(stdout, (_RESET + killed).encode())
        signal.signal(signal.SIGTTOU, before)
    return code


def _terminal(stream: TextIO | None) -> int | None:
    """Return the file descriptor of a stream if it is a terminal."""
    with suppress(OSError, ValueError):
        if stream is not None and stream.isatty():
            return stream.fileno()
    return None
