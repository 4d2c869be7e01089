"""What is given to `cuggino deliver`: numbers that are whole, and whose exit codes hold."""

from __future__ import annotations

import contextlib
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cuggino_cli.manual import Sectioned

COMPAT = "--compat-exit-codes"
THINKING = "--thinking"
USUAL_THINKING = 8192
"""Tokens of a bare `--thinking`."""
LEAST_THINKING = 1024

_WHOLE = re.compile(r"[+-]?[0-9]+")

if TYPE_CHECKING:
    from cuggino.config import Config

Callback = Callable[[click.Context, click.Parameter, Any], Any]


def whole_number(text: str) -> int | None:
    """The number that the whole text is; None when it is none (AUT-240)."""
    return int(text) if _WHOLE.fullmatch(text.strip()) else None


def max_iterations(text: str) -> int:
    """How many sessions there may be.

    Raises:
        ValueError: it is no whole number, or none above zero.
    """
    number = whole_number(text)
    if number is None:
        raise ValueError(f"Max iterations must be a whole number, got {text}")
    if number < 1:
        raise ValueError(f"Max iterations must be positive, got {number}")
    return number


def max_retries(text: str) -> int:
    """How many sessions in a row may fail and be followed by another.

    Raises:
        ValueError: it is no whole number, or one below zero.
    """
    number = whole_number(text)
    if number is None:
        raise ValueError(f"Max retries must be a whole number, got {text}")
    if number < 0:
        raise ValueError(f"Max retries must be non-negative, got {number}")
    return number


def thinking_tokens(text: str) -> int:
    """Tokens that the model may think for.

    Raises:
        ValueError: it is no whole number, or too small.
    """
    number = whole_number(text)
    if number is None:
        raise ValueError(f"Invalid thinking budget: {text}")
    if number < LEAST_THINKING:
        least = f"Thinking budget must be at least {LEAST_THINKING} tokens"
        raise ValueError(f"{least}, got {number}")
    return number


def project_folder(path: str) -> Path:
    """The absolute path of the project; a relative one begins at the present folder.

    Raises:
        ValueError: there is no such directory.
    """
    folder = Path(path).absolute()
    if not folder.is_dir():
        raise ValueError(f"Project directory does not exist: {folder}")
    return folder.resolve()


def read_by(read: Callable[[str], object]) -> Callback:
    """A callback of an option: the text as it is read; one that cannot be is wrong usage."""

    def callback(ctx: click.Context, _parameter: click.Parameter, text: str | None) -> object:
        if text is None:
            return None
        try:
            return read(text)
        except ValueError as error:
            raise click.UsageError(str(error), ctx) from error

    return callback


def guarded(config: Config) -> Config:
    """The configuration for this loop, which holds its agents in full unless the guard is off."""
    return config if config.guard == "off" else config.model_copy(update={"guard": "full"})


class DeliverCommand(Sectioned):
    """A command with `--compat-exit-codes`, `--debug`, and a bare `--thinking` before a word."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; wrong ones end with the exit code that they ask for."""
        with _codes(compat=COMPAT in args):
            return super().parse_args(ctx, list(_filled(args)))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what goes wrong ends with the exit code that is asked for."""
        with _codes(compat=ctx.params["compat_exit_codes"]):
            try:
                return super().invoke(ctx)
            except Exception as error:
                if not _is_unexpected(error):
                    raise
                return _complain_of(error, debug=ctx.params["debug"])


def _filled(args: list[str]) -> Iterator[str]:
    """The arguments, where the name of the workflow is no number of tokens to think for."""
    for place, arg in enumerate(args):
        is_bare = arg == THINKING and args[place + 1 : place + 2] == ["sync"]
        yield f"{THINKING}={USUAL_THINKING}" if is_bare else arg


@contextlib.contextmanager
def _codes(*, compat: bool) -> Iterator[None]:
    """With `compat`, what goes wrong within it ends with 1 (AUT-244)."""
    from cuggino.errors import CugginoError

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
        from cuggino_cli.main import complain

        complain(error.message, error.hint)
        raise click.exceptions.Exit(1) from error


def _is_unexpected(error: Exception) -> bool:
    from cuggino.errors import CugginoError

    expected = (CugginoError, click.ClickException, click.Abort, click.exceptions.Exit)
    return not isinstance(error, (*expected, BrokenPipeError))


def _complain_of(error: Exception, *, debug: bool) -> int:
    """One line, and with `debug` where it happened (AUT-245)."""
    click.echo(f"Error: {error}", err=True)
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    return 1
