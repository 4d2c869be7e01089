"""Following a stream to its end: print it, sum it up, say with which code to exit."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from reactivex import Observable

    from cuggino.events import WatchEvent
    from cuggino_cli.output.terminal import ColorMode, Terminal
    from cuggino_cli.output.verbosity import Verbosity

EXIT_CODES = {"LoopApproved": 0, "LoopSpecIssue": 10, "LoopMaxIterations": 11, "LoopStalled": 14}
"""Exit codes of the endings that are no error."""

INTERRUPTED = 130

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """How much is shown, and how."""

    verbose: bool
    quiet: bool
    json: bool
    color: ColorMode

    @property
    def verbosity(self) -> Verbosity:
        from cuggino_cli.output.verbosity import Verbosity

        if self.quiet:
            return Verbosity.QUIET
        return Verbosity.VERBOSE if self.verbose else Verbosity.NORMAL


def output_options(command: Command) -> Command:
    """Add `--verbose`, `--quiet`, `--json` and `--color`, given as one `output` argument."""

    def collected(**kwargs: Any) -> Any:
        names = ("verbose", "quiet", "json", "color")
        output = OutputOptions(**{name: kwargs.pop(name) for name in names})
        if output.verbose and output.quiet:
            raise click.UsageError("--verbose and --quiet exclude each other.")
        return command(output=output, **kwargs)

    collected.__doc__ = command.__doc__
    collected.__name__ = command.__name__
    collected.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    for option in (
        click.option("--verbose", is_flag=True, help="Show agent texts and tool results too."),
        click.option("--quiet", is_flag=True, help="Show phases and endings only."),
        click.option("--json", is_flag=True, help="Print one event per line, nothing else."),
        click.option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            help="When to use colours; NO_COLOR counts for auto.",
        ),
    ):
        collected = option(collected)
    return collected  # type: ignore[return-value]


def stdout_terminal(output: OutputOptions) -> Terminal:
    """The writer to standard output."""
    from cuggino_cli.output.terminal import (
        Terminal,
        choose_color,
        choose_interactive,
        columns_of,
    )

    return Terminal(
        sys.stdout,
        color=choose_color(output.color, sys.stdout, os.environ),
        interactive=choose_interactive(sys.stdout, os.environ),
        columns=columns_of(sys.stdout),
    )


def follow(stream: Observable[WatchEvent], output: OutputOptions, *, bell: bool = True) -> int:
    """Subscribe, print every event, end with a summary; gives the exit code.

    Errors and interruptions are raised again after the summary. A second Ctrl-C, while the first
    one still ends the agent, leaves at once. `bell` rings the terminal's when a person is needed.
    """
    with _second_interrupt_leaves():
        return _follow_as_json(stream) if output.json else _follow_as_text(stream, output, bell)


@contextlib.contextmanager
def _second_interrupt_leaves() -> Iterator[None]:
    """Within it, a first SIGINT raises `KeyboardInterrupt` and a second one ends the process.

    What it had started is then ended by the guardian, as after any sudden death.
    """
    interrupted = False

    def interrupt(_signum: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        if interrupted:
            os._exit(INTERRUPTED)
        interrupted = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _follow_as_text(stream: Observable[WatchEvent], output: OutputOptions, bell: bool) -> int:
    from cuggino import LoopScheduler, run
    from cuggino.domain.run_summary import RunSummary
    from cuggino_cli.output.render import with_cli_output
    from cuggino_cli.output.summary import summary_fragments

    terminal = stdout_terminal(output)
    lane = LoopScheduler()
    started = lane.now
    summary = RunSummary()
    last: WatchEvent | None = None

    def add(event: WatchEvent) -> None:
        nonlocal summary, last
        summary, last = summary.add(event), event

    def conclude(hint: str | None = None) -> None:
        seconds = (lane.now - started).total_seconds()
        if summary.rounds:  # else nothing has begun
            terminal.print(summary_fragments(summary, duration_s=seconds, hint=hint))

    try:
        shown = with_cli_output(terminal, verbosity=output.verbosity, bell=bell)
        run(stream.pipe(shown), add, scheduler=lane)
    except Exception as error:
        if not isinstance(error, BrokenPipeError):
            summary = summary.ended("failed")
            conclude(getattr(error, "hint", None))
        raise
    except BaseException:
        summary = summary.ended("interrupted")
        conclude()
        raise
    finally:
        lane.dispose()
    conclude()
    return EXIT_CODES.get(last.tag if last else "", 1)


def _follow_as_json(stream: Observable[WatchEvent]) -> int:
    from cuggino import dump_event, run

    def write(event: WatchEvent) -> None:
        sys.stdout.write(dump_event(event) + "\n")
        sys.stdout.flush()

    last = run(stream, write)
    return EXIT_CODES.get(last.tag if last else "", 1)
