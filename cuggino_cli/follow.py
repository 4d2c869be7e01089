"""Following a stream to its end: print it, sum it up, say with which code to exit."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

import click

if TYPE_CHECKING:
    from reactivex import Observable

    from cuggino.events import Event, WatchEvent
    from cuggino_cli.output.terminal import ColorMode, Terminal
    from cuggino_cli.output.verbosity import Verbosity

EXIT_CODES = {"LoopApproved": 0, "LoopSpecIssue": 10, "LoopMaxIterations": 11, "LoopStalled": 14}
"""Exit codes of the endings that are no error."""

INTERRUPTED = 130

Command: TypeAlias = Callable[..., int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """How much is shown, and how."""

    verbose: bool
    quiet: bool
    json: bool
    color: ColorMode

    @property
    def verbosity(self) -> Verbosity:
        """How much of a stream is shown."""
        from cuggino_cli.output.verbosity import Verbosity

        if self.quiet:
            return Verbosity.QUIET
        return Verbosity.VERBOSE if self.verbose else Verbosity.NORMAL

    def write_json(self, event: Event) -> None:
        """The event as a line; text that is still being written only when all is to be shown."""
        from cuggino import dump_event
        from cuggino.events import MessageDelta

        if self.verbose or not isinstance(event, MessageDelta):
            sys.stdout.write(dump_event(event) + "\n")
            sys.stdout.flush()


def output_options(command: Command) -> Command:
    """Add `--verbose`, `--quiet`, `--json` and `--color`, given as one `output` argument."""

    @functools.wraps(command)
    def collected(**kwargs: Any) -> int:
        names = ("verbose", "quiet", "json", "color")
        output = OutputOptions(**{name: kwargs.pop(name) for name in names})
        if output.verbose and output.quiet:
            raise click.UsageError("--verbose and --quiet exclude each other.")
        return command(output=output, **kwargs)

    decorated: Command = collected
    for option in (
        click.option(
            "--verbose",
            is_flag=True,
            help="Show agent texts as they come, and tool results too.",
        ),
        click.option("--quiet", is_flag=True, help="Show phases and endings only."),
        click.option(
            "--json",
            is_flag=True,
            help="Print one event per line, nothing else; deltas only with --verbose.",
        ),
        click.option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            show_default=True,
            help="When to use colours; NO_COLOR counts for auto.",
        ),
    ):
        decorated = option(decorated)
    return decorated


def stdout_terminal(output: OutputOptions, *, quietly: bool = False) -> Terminal:
    """The writer to standard output; `quietly` with nothing drawn below the lines.

    Complaints go to standard error.
    """
    from cuggino_cli.output.terminal import (
        Terminal,
        choose_color,
        choose_interactive,
        columns_of,
        rows_of,
    )

    errors: TextIO | None = sys.stderr  # None when there is none
    return Terminal(
        sys.stdout,
        color=choose_color(output.color, sys.stdout, os.environ),
        interactive=choose_interactive(sys.stdout, os.environ) and not quietly,
        columns=columns_of(sys.stdout),
        height=rows_of(sys.stdout),
        errors=errors,
        error_color=errors is not None and choose_color(output.color, errors, os.environ),
    )


def follow(
    stream: Observable[WatchEvent],
    output: OutputOptions,
    *,
    bell: bool = True,
    journaled: bool = True,
) -> int:
    """Subscribe, print every event, end with a summary; gives the exit code.

    Errors and interruptions are raised again after the summary. A second Ctrl-C, while the first
    one still ends the agent, leaves at once; but for `--json`, a line on standard error says so.
    `bell` rings the terminal's when a person is needed. What is not `journaled` cannot be resumed,
    and the summary says so.
    """
    if output.json:
        with _second_interrupt_leaves():
            return _follow_as_json(stream, output)
    terminal = stdout_terminal(output)
    with _second_interrupt_leaves(_stopping(over_spinner=terminal.interactive)):
        return _follow_as_text(stream, output, terminal, bell, journaled)


@contextlib.contextmanager
def _second_interrupt_leaves(notice: bytes = b"") -> Iterator[None]:
    """Within it, a first SIGINT raises `KeyboardInterrupt` and a second one ends the process.

    `notice` is written to standard error at the first one. What the process had started is ended
    by the guardian after the second one, as after any sudden death.
    """
    interrupted = False

    def interrupt(_signum: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        if interrupted:
            os._exit(INTERRUPTED)
        interrupted = True
        with contextlib.suppress(OSError):  # the window was closed
            # Past the buffer, which the interrupted code may be in the midst of writing.
            os.write(sys.stderr.fileno(), notice)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _stopping(*, over_spinner: bool) -> bytes:
    """What is said after the first Ctrl-C; the spinner may stand where it goes."""
    erasure = b"\r\x1b[2K" if over_spinner and sys.stderr.isatty() else b""
    return erasure + b"cuggino: stopping; Ctrl-C once more ends it at once\n"


def _follow_as_text(
    stream: Observable[WatchEvent],
    output: OutputOptions,
    terminal: Terminal,
    bell: bool,
    journaled: bool,
) -> int:
    from cuggino import LoopScheduler, run
    from cuggino.domain.run_summary import RunSummary
    from cuggino_cli.output.render import with_cli_output
    from cuggino_cli.output.summary import summary_fragments

    lane = LoopScheduler()
    started = lane.now
    summary = RunSummary()
    last: WatchEvent | None = None

    def add(event: WatchEvent) -> None:
        nonlocal summary, last
        summary, last = summary.add(event), event

    def conclude() -> None:
        seconds = summary.earlier_s + (lane.now - started).total_seconds()
        if summary.rounds:  # else nothing has begun
            terminal.print(summary_fragments(summary, duration_s=seconds, journaled=journaled))

    try:
        shown = with_cli_output(terminal, verbosity=output.verbosity, bell=bell)
        run(stream.pipe(shown), add, scheduler=lane)
    except Exception as error:
        if not isinstance(error, BrokenPipeError):
            summary = summary.ended("failed")
            conclude()  # the error and its hint follow, on standard error
        raise
    except BaseException:
        summary = summary.ended("interrupted")
        conclude()
        raise
    finally:
        lane.dispose()
    conclude()
    return EXIT_CODES.get(last.tag if last else "", 1)


def _follow_as_json(stream: Observable[WatchEvent], output: OutputOptions) -> int:
    from cuggino import run

    last = run(stream, output.write_json)
    return EXIT_CODES.get(last.tag if last else "", 1)
