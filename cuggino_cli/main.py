"""The `cuggino` command: finds the subcommand, turns every ending into an exit code.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 10 spec issue, 11 max iterations,
12 quota, 13 budget, 14 stalled, 15 all blocked, 130 interrupted by Ctrl-C, 143 by SIGTERM.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import NoReturn

import click

from cuggino._version import __version__

COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "run": "Plan, implement and review until the work matches the specs.",
        "watch": "Work off the backlog, item by item, for as long as it runs.",
        "deliver": "Work until every deliverable of SPEC.md has passed.",
        "loop": "Plan the work into jobs, then build them one by one until all are verified.",
        "plan": "Talk with a project manager about specs and backlog (also: pm).",
        "backlog": "Add, look at and take back what `cuggino watch` is to work on.",
        "issues": "Look at and settle spec issues and findings of the audit.",
        "runs": "Look at the runs of this project, newest first, and play them again.",
        "report": "Write a page about a run: stages, cost, commits, reviews and all events.",
        "demo": "Watch a whole run in a throw-away project; no key needed.",
        "setup": "Save the settings of this project in .cuggino.json.",
        "doctor": "Look whether a run could work here, and say what to do if not.",
        "agents": "List the agents that are installed, and what each can do.",
        "guard": "Ask what the guard says of what an agent does; nothing is run.",
        "mcp": "Serve tools to an agent over standard input and output (MCP).",
        "help": "Explain a command or a topic.",
    }
)
"""The subcommands: each is `command` in the module of its name in `cuggino_cli.commands`, and here
is what the first line of its own help says, so that no list of them has to import them all."""

ALIASES = {"pm": "plan"}
"""Other names of subcommands."""

INTERRUPTED = 130
_REFUSED = 2
_ANYWHERE = (["-h"], ["--help"], ["-v"], ["--version"])
"""What is answered on Windows too: no more of the program is imported for it."""


class Terminated(BaseException):
    """The program was asked to end by a signal; like `KeyboardInterrupt`, it is no `Exception`."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.exit_code = 128 + signum


class LazyGroup(click.Group):
    """A group that imports a subcommand when it is asked for, so that `--version` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the subcommands, none of which is imported."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of that name, or other name; its module is imported."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"cuggino_cli.commands.{name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of subcommands, none of which is imported."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand that is meant; one that does not exist is told with the nearest name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], [*COMMANDS, *ALIASES], n=1)
            if not near or "mean" in error.message:
                raise
            message = f"{error.message} Did you mean '{near[0]}'?"
            raise click.UsageError(message, ctx) from error


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
First steps:
  cuggino demo                       watch a whole run, no key needed
  cuggino setup                      answer a few questions in your project
  cuggino run --focus "add login"    work until it matches the specs

\b
More:
  cuggino COMMAND --help             what a command takes, with examples
  cuggino help TOPIC                 events, markers, config or exit-codes""",
)
@click.version_option(__version__, "-v", "--version", prog_name="cuggino")
@click.pass_context
def cli(ctx: click.Context) -> int | None:
    """Run coding agents in a loop until the work matches its specification."""
    if ctx.invoked_subcommand is not None:
        return None
    if _is_set_up_on_terminal():
        from cuggino_cli.commands import plan

        code: int = ctx.invoke(plan.command)
        return code
    click.echo(ctx.get_help())
    return 0


def _is_set_up_on_terminal() -> bool:
    """Whether somebody sits at a terminal, in a project that has a configuration (CUG-092)."""
    from cuggino_cli.commands import setup

    return setup.on_terminal() and Path(".cuggino.json").exists()


def main(args: list[str]) -> int:
    """Run the command line; gives the exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a substitute; that is no reason to end.
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
        except (click.Abort, KeyboardInterrupt):
            return INTERRUPTED
        except Terminated as ended:
            return ended.exit_code
        except BrokenPipeError:
            # The reader of our output has gone; nothing more can be said, and Python must not try.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except Exception as error:
            from cuggino.errors import CugginoError

            if not isinstance(error, CugginoError):
                raise
            complain(error.message, error.hint)
            return error.code


def complain(message: str, hint: str | None = None) -> None:
    """Tell what went wrong on standard error: one sentence, and what to do about it."""
    from cuggino_cli.output.sanitize import inert

    click.echo(f"cuggino: {inert(message)}", err=True)
    if hint:
        click.echo(f"  {inert(hint)}", err=True)


@contextlib.contextmanager
def _termination_as_exception() -> Iterator[None]:
    """Within it, SIGTERM and SIGHUP raise `Terminated` in the main thread."""

    def terminate(signum: int, _frame: FrameType | None) -> NoReturn:
        raise Terminated(signum)

    before = {
        number: signal.signal(number, terminate)
        for name in ("SIGTERM", "SIGHUP")
        if (number := getattr(signal, name, None)) is not None
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def entry() -> NoReturn:
    """The console script. On Windows, where much cannot even be imported, it says so."""
    args = sys.argv[1:]
    if sys.platform == "win32" and args[:1] not in _ANYWHERE:
        complain("Windows is not supported, only Linux and macOS: use WSL, which works as Linux")
        sys.exit(_REFUSED)
    sys.exit(main(args))
