"""`cuggino runs`: the runs that have a journal."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from cuggino_cli.completing import run_ids
from cuggino_cli.follow import OutputOptions, follow, output_options, stdout_terminal
from cuggino_cli.manual import Sectioned, manual

if TYPE_CHECKING:
    from reactivex import Observable

    from cuggino.errors import StorageError
    from cuggino.events import WatchEvent
    from cuggino_cli.output.runs import Row
    from cuggino_cli.output.terminal import ColorMode, Terminal
    from cuggino_cli.recorded import RecordedRun, Runs


class _ListedGroup(click.Group):
    """Without the name of a subcommand, `list` is meant."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
_color_option = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="When to use colours; NO_COLOR counts for auto.",
)


@click.group(
    "runs",
    cls=_ListedGroup,
    epilog=manual(
        ("cuggino runs", "List them."),
        ("cuggino runs show 0193b2c1", "One, by the beginning of its id."),
        ("cuggino runs replay 0193b2c1 --speed 10 --verbose", "See it again, ten times as fast."),
        ("cuggino runs --json | jq -r .run_id", "For another program."),
        exits="0 shown, 2 no such run, or wrong usage.",
        see=("report", "run"),
    ),
)
def command() -> None:
    """Look at the runs of this project, newest first, and play them again.

    An ID is that of a run, or its beginning. Without a subcommand the runs are listed.
    """


@command.command("list", epilog=manual(("cuggino runs list --json", "An object a line.")))
@_json_option
@_color_option
def list_runs(as_json: bool, color: ColorMode) -> int:
    """List the runs; --json prints an object a line."""
    from cuggino_cli.output.runs import runs_fragments
    from cuggino_cli.recorded_json import about, unreadable

    runs = _runs()
    if as_json:
        for found in runs.all():
            _write_json(unreadable(*found) if isinstance(found, tuple) else about(found))
        return 0
    short = runs.short_ids()
    rows = [_row(found, short) for found in runs.all()]
    if not rows:
        click.echo("There are no runs yet.")
        return 0
    terminal = _terminal(color)
    terminal.print(runs_fragments(rows, columns=_columns(terminal)))
    return 0


@command.command("show", epilog=manual(("cuggino runs show 0193b2c1 --json", "As one object.")))
@click.argument("run_id", metavar="ID", shell_complete=run_ids)
@_json_option
@_color_option
def show(run_id: str, as_json: bool, color: ColorMode) -> int:
    """Sum up a run: its stages or sessions, what it came to, and how to go on with it."""
    from cuggino_cli.output.runs import run_fragments
    from cuggino_cli.output.runs_delivery import delivery_state
    from cuggino_cli.recorded_json import about, more_about, stage_rows

    runs = _runs()
    run = runs.read(runs.find(run_id))
    journal, stages, delivery = run.journal, stage_rows(run.journal), run.delivery
    if as_json:
        _write_json({**about(run), **more_about(run, stages)})
        return 0
    terminal = _terminal(color)
    terminal.print(
        run_fragments(
            journal.started,
            state=delivery_state(run.state, delivery),
            at=journal.entries[0].at,
            totals=run.totals,
            stages=stages,
            message=run.message,
            hint=_how_to_resume(run, runs.short_ids()),
            columns=_columns(terminal),
            delivery=delivery,
        )
    )
    return 0


@command.command(
    "replay",
    cls=Sectioned,
    epilog=manual(
        ("cuggino runs replay 0193b2c1", "At once."),
        ("cuggino runs replay 0193b2c1 --json", "The events of its journal."),
    ),
)
@click.argument("run_id", metavar="ID", shell_complete=run_ids)
@click.option(
    "--speed",
    type=click.FloatRange(min=0),
    default=0,
    metavar="X",
    help="1 takes the time that the run took, 10 a tenth of it; 0, the default, none.",
)
@output_options
def replay(run_id: str, speed: float, output: OutputOptions) -> int:
    """Play a run again, as it was shown when it ran."""
    from cuggino_cli.recorded import replayed

    if math.isnan(speed):
        raise click.UsageError("--speed is no number.")
    runs = _runs()
    run = runs.read(runs.find(run_id))
    stream = cast("Observable[WatchEvent]", replayed(run.path, speed=speed))
    if output.json:
        follow(stream, output)
    else:
        _play(run, stream, output, hint=_how_to_resume(run, runs.short_ids()))
    return 0


def _play(
    run: RecordedRun, stream: Observable[WatchEvent], output: OutputOptions, *, hint: str | None
) -> None:
    from cuggino import run as run_stream
    from cuggino.domain.run_summary import RunSummary
    from cuggino.events import Event
    from cuggino_cli.output.render import with_cli_output
    from cuggino_cli.output.runs import STATES
    from cuggino_cli.output.summary import summary_fragments
    from cuggino_cli.output.theme import Fragment

    terminal = stdout_terminal(output)
    summary = RunSummary()

    def add(event: Event) -> None:
        nonlocal summary
        summary = summary.add(event)

    shown = with_cli_output(terminal, verbosity=output.verbosity, bell=False)
    run_stream(stream.pipe(shown), add)
    delivery = run.delivery
    if delivery is not None and delivery.ended is not None:  # which has summed it up itself
        if hint:
            terminal.print([Fragment("plain", "\n"), Fragment("round", f"Next: {hint}")])
        return
    ended = run.journal.ended
    if ended is not None and ended.message:
        label, word = STATES[ended.state]
        terminal.print([Fragment(label, f"[{word.capitalize()}] {ended.message}")])
    summary = summary.recounted(run.totals)  # a run that was resumed has told a part of it twice
    if summary.outcome is None:
        match run.state:
            case "failed" | "quota" | "budget":
                summary = summary.ended("failed")
            case "interrupted" | "killed":
                summary = summary.ended("interrupted")
            case _:
                pass
    terminal.print(summary_fragments(summary, duration_s=run.totals.duration, hint=hint))


def _runs() -> Runs:
    from cuggino_cli.recorded import Runs

    return Runs(Path.cwd())


def _terminal(color: ColorMode) -> Terminal:
    return stdout_terminal(OutputOptions(verbose=False, quiet=False, json=False, color=color))


def _columns(terminal: Terminal) -> int | None:
    """How wide a line may be: what is read by a program is not cut."""
    return terminal.columns() if sys.stdout.isatty() else None


def _how_to_resume(run: RecordedRun, short: dict[str, str]) -> str | None:
    if not run.resumable:
        return None
    if run.journal.started.kind == "watch" or run.journal.started.item is not None:
        return "go on with it: cuggino watch"
    return f"go on with it: cuggino {run.journal.started.kind} --resume {short[run.path.stem]}"


def _row(found: RecordedRun | tuple[Path, StorageError], short: dict[str, str]) -> Row:
    from cuggino_cli.output.runs import Row, item_name
    from cuggino_cli.output.runs_delivery import delivery_focus, delivery_state

    if isinstance(found, tuple):
        path, error = found
        return Row(id=short[path.stem], state="unreadable", focus=error.message)
    started, totals, delivery = found.journal.started, found.totals, found.delivery
    focus = started.focus or item_name(started)
    if delivery is not None:
        focus = delivery_focus(delivery, started)
    return Row(
        id=short[found.path.stem],
        state=delivery_state(found.state, delivery),
        started=found.journal.entries[0].at,
        seconds=totals.duration,
        iterations=totals.rounds,
        cost_usd=totals.cost_usd,
        agent=started.agent,
        focus=focus or f"({started.command})",
    )


def _write_json(value: dict[str, Any]) -> None:
    click.echo(json.dumps(value))
