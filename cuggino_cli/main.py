"""The `cuggino` command: runs the subcommand and maps every outcome to an exit code.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 nothing runs, 4 waiting for a
person, 10 spec issue, 11 max iterations, 12 quota, 13 budget, 14 stalled, 15 all blocked,
129 interrupted by SIGHUP, 130 by Ctrl-C, 143 by SIGTERM.
"""

from __future__ import annotations

import contextlib
import difflib
import gc
import importlib
import io
import os
import signal
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import NoReturn

import click

from cuggino import __version__
from cuggino.errors import CugginoError
from cuggino_cli.commands import ALIASES, COMMANDS, GROUPS, SELDOM, module_of
from cuggino_cli.help import TOPICS
from cuggino_cli.screen import console
from cuggino_cli.screen.console import INTERRUPTED
from cuggino_cli.screen.standard_output import (
    discard_output,
    give_up_soon,
    output_failure,
    use_patient_output,
)

_REFUSED = 2
_LIMITS = (12, 13)
"""Exit codes of a usage limit and a spent budget."""
_COLLECTED = 10_000
"""Objects between collections of garbage, of which events leave little."""
_ANYWHERE = (["-h"], ["--help"], ["-v"], ["--version"])
"""Arguments that work on Windows too, because they import nothing else."""


class Terminated(BaseException):
    """Termination by a signal; like `KeyboardInterrupt`, not an `Exception`."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.exit_code = 128 + signum


class CtrlC(KeyboardInterrupt):
    """Ctrl-C before a run has begun, or while it is being prepared.

    Python lets the signal end the program, without its exit code, once a plain `KeyboardInterrupt`
    has passed through code that is run by `exec`, as dataclasses and pydantic do while they are
    imported.
    """


class LazyGroup(click.Group):
    """A group that imports a subcommand on first use, so that `--version` is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands without importing any."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the subcommand with this name or alias."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        command: click.Command = _imported(module_of(name)).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands by use, without importing any; of seldom needed ones the names."""
        for title, group in GROUPS.items():
            with formatter.section(title):
                if title == SELDOM:
                    formatter.write_text(", ".join(group))
                else:
                    rows = [(f"{name:<{_COLUMNS}}", about) for name, about in group.items()]
                    formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve the subcommand; suggest the nearest name for an unknown one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], [*COMMANDS, *ALIASES], n=1)
            if not near or "mean" in error.message:
                raise
            message = f"{error.message} Did you mean '{near[0]}'?"
            raise click.UsageError(message, ctx) from error


def _imported(name: str) -> ModuleType:
    """Import a module; no garbage is searched for in what that loads, neither then nor later."""
    if name not in sys.modules:
        gc.disable()
        try:
            importlib.import_module(name)
        finally:
            gc.freeze()
            gc.enable()
    return sys.modules[name]


_COLUMNS = max(map(len, COMMANDS))
_TOPICS = textwrap.fill(
    ", ".join(TOPICS), width=78, initial_indent=" " * 37, subsequent_indent=" " * 37
).lstrip()


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"""\b
First steps:
  cuggino demo                       watch a whole run, no key needed
  cuggino setup                      answer a few questions in your project
  cuggino run "add a login page"     work until it matches the specs

\b
More:
  cuggino COMMAND --help             what a command takes, with examples
  cuggino help WORD                  a key, an option, an event, a name of the library
  cuggino help TOPIC                 {_TOPICS}""",
)
@click.version_option(__version__, "-v", "--version", prog_name="cuggino")
@click.pass_context
def cli(ctx: click.Context) -> int | None:
    """Run coding agents in a loop until the work matches its specification."""
    if ctx.invoked_subcommand is not None:
        return None
    if _is_set_up_on_terminal():
        plan = cli.get_command(ctx, "plan")
        assert plan is not None
        code: int = ctx.invoke(plan)
        return code
    click.echo(ctx.get_help())
    return 0


def _is_set_up_on_terminal() -> bool:
    """Return whether this is a terminal, in a project with a configuration (CUG-092)."""
    from cuggino.files import find_project  # not on Windows

    return console.on_terminal() and (find_project(Path.cwd()) / ".cuggino.json").exists()


def main(args: list[str]) -> int:
    """Run the command line; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal cannot show must not end the run.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    with _termination_as_exception():
        try:
            result = cli.main(args, prog_name="cuggino", standalone_mode=False)
            sys.stdout.flush()
            return result if isinstance(result, int) else 0
        except click.ClickException as error:
            error.show()
            return error.exit_code
        except (click.Abort, KeyboardInterrupt) as error:
            if isinstance(error.__cause__, EOFError):  # not of a question: click takes it for one
                raise error.__cause__ from None
            give_up_soon()
            return INTERRUPTED
        except Terminated as ended:
            return ended.exit_code
        except BrokenPipeError:
            discard_output()  # its reader has exited
            return 1
        except Exception as error:
            if isinstance(error, OSError) and error is output_failure():
                discard_output()
                console.complain(f"standard output cannot be written: {error.strerror}")
                return 1
            if isinstance(error, FileNotFoundError) and _folder_is_gone():
                console.complain("the current folder does not exist any more", "change the folder")
                return _REFUSED
            if not isinstance(error, CugginoError):
                raise
            cause = error.__cause__  # a limit is no error of the stage that it ended
            if not (isinstance(cause, CugginoError) and cause.exit_code in _LIMITS):
                cause = error
            console.complain(cause.message, error.hint)
            return error.code


def _folder_is_gone() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


@contextlib.contextmanager
def _termination_as_exception() -> Iterator[None]:
    """Within it, SIGTERM and SIGHUP raise `Terminated` in the main thread, SIGINT `CtrlC`.

    SIGINT and SIGHUP stay ignored if they are, as in the background of a shell or under `nohup`.
    """

    def interrupt(_signum: int, _frame: FrameType | None) -> NoReturn:
        raise CtrlC

    def terminate(signum: int, _frame: FrameType | None) -> NoReturn:
        give_up_soon()
        raise Terminated(signum)

    handlers = {signal.SIGINT: interrupt, signal.SIGTERM: terminate}
    if (hang_up := getattr(signal, "SIGHUP", None)) is not None:
        handlers[hang_up] = terminate
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _use_utf8() -> None:
    """Start this program again in Python's UTF-8 mode where the locale knows only ASCII.

    File names, arguments and what agents write are UTF-8 there too; invalid bytes are kept.
    """
    ascii_only = sys.getfilesystemencoding().lower() not in ("utf-8", "utf8")
    if ascii_only and not sys.flags.utf8_mode and sys.platform != "win32":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def entry(args: list[str] | None = None) -> NoReturn:
    """Run the console script; refuse on Windows, where much cannot be imported."""
    _use_utf8()
    use_patient_output()
    gc.set_threshold(_COLLECTED)
    args = sys.argv[1:] if args is None else args
    if sys.platform == "win32" and args[:1] not in _ANYWHERE:
        console.complain(
            "Windows is not supported, only Linux and macOS: use WSL, which works as Linux"
        )
        sys.exit(_REFUSED)
    try:
        sys.exit(main(args))
    except ImportError as error:
        if not (error.name or "").startswith("cuggino"):
            raise
        console.complain(f"cuggino was replaced or upgraded as it started: start again ({error})")
        sys.exit(1)
