"""Options of `cuggino deliver`."""

from __future__ import annotations

import contextlib
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from cuggino.config import Config
from cuggino.errors import CugginoError
from cuggino_cli.help.manual import Sectioned
from cuggino_cli.options.supervision import MODEL_HELP, Command, with_options
from cuggino_cli.screen.console import complain

COMPAT = "--compat-exit-codes"
THINKING = "--thinking"
USUAL_THINKING = 8192
"""Tokens of a bare `--thinking`."""

_WHOLE = re.compile(r"[+-]?[0-9]+")

Callback = Callable[[click.Context, click.Parameter, Any], Any]


def whole_number(text: str) -> int | None:
    """Parse a whole number; return None for any other text (AUT-240)."""
    return int(text) if _WHOLE.fullmatch(text.strip()) else None


def _at_least(least: int, *, no_number: str, too_small: str) -> Callable[[str], int]:
    """Return a parser of whole numbers; it raises `ValueError` with the message."""

    def parse(text: str) -> int:
        number = whole_number(text)
        if number is None:
            raise ValueError(f"{no_number} {text}")
        if number < least:
            raise ValueError(f"{too_small}, got {number}")
        return number

    return parse


max_iterations = _at_least(
    1,
    no_number="Max iterations must be a whole number, got",
    too_small="Max iterations must be positive",
)
max_retries = _at_least(
    0,
    no_number="Max retries must be a whole number, got",
    too_small="Max retries must be non-negative",
)
thinking_tokens = _at_least(
    1024,
    no_number="Invalid thinking budget:",
    too_small="Thinking budget must be at least 1024 tokens",
)


def project_folder(path: str) -> Path:
    """Return the absolute path of the project folder.

    Raises:
        ValueError: the directory does not exist.
    """
    folder = Path(path).absolute()
    if not folder.is_dir():
        raise ValueError(f"Project directory does not exist: {folder}")
    return folder.resolve()


def read_by(read: Callable[[str], object]) -> Callback:
    """Return an option callback that parses the text; a `ValueError` is a usage error."""

    def callback(ctx: click.Context, _parameter: click.Parameter, text: str | None) -> object:
        if text is None:
            return None
        try:
            return read(text)
        except ValueError as error:
            raise click.UsageError(str(error), ctx) from error

    return callback


def session_options(unit: str) -> Callable[[Command], Command]:
    """Add `--max-iterations`, which counts this unit, `--max-retries` and `--model`."""
    options = (
        click.option(
            "--max-iterations",
            "-n",
            "max_sessions",
            metavar="N",
            callback=read_by(max_iterations),
            help=f"Maximum number of {unit}. [default: no limit]",
        ),
        click.option(
            "--max-retries",
            metavar="N",
            callback=read_by(max_retries),
            help="Maximum number of failed sessions in a row.",
        ),
        click.option("--model", "-m", metavar="M", help=MODEL_HELP),
    )
    return lambda command: with_options(command, *options)


def guarded(config: Config) -> Config:
    """Return the configuration with the guard at `full`, unless it is off."""
    return config if config.guard == "off" else config.model_copy(update={"guard": "full"})


class DeliverCommand(Sectioned):
    """A command with `--compat-exit-codes`, `--debug`, and a bare `--thinking` before a word."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; usage errors honor `--compat-exit-codes`."""
        with _codes(compat=COMPAT in args):
            return super().parse_args(ctx, list(_filled(args)))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors honor `--compat-exit-codes`."""
        with _codes(compat=ctx.params["compat_exit_codes"]):
            try:
                return super().invoke(ctx)
            except Exception as error:
                if not _is_unexpected(error):
                    raise
                return _complain_of(error, debug=ctx.params["debug"])


def _filled(args: list[str]) -> Iterator[str]:
    """Fill in the number of a bare `--thinking` before the name of the workflow."""
    for place, arg in enumerate(args):
        is_bare = arg == THINKING and args[place + 1 : place + 2] == ["sync"]
        yield f"{THINKING}={USUAL_THINKING}" if is_bare else arg


@contextlib.contextmanager
def _codes(*, compat: bool) -> Iterator[None]:
    """With `compat`, map every error to exit code 1 (AUT-244)."""
    try:
        yield
    except click.ClickException as error:
        if not compat:
            raise
        error.show()
        raise click.exceptions.Exit(1) from error
    except CugginoError as error:
        if not compat:
            raise
        complain(error.message, error.hint)
        raise click.exceptions.Exit(1) from error


def _is_unexpected(error: Exception) -> bool:
    expected = (CugginoError, click.ClickException, click.Abort, click.exceptions.Exit)
    return not isinstance(error, (*expected, BrokenPipeError))


def _complain_of(error: Exception, *, debug: bool) -> int:
    """Print the error, and with `debug` its traceback (AUT-245)."""
    click.echo(f"Error: {error}", err=True)
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    return 1
