"""`cuggino runs`: lists, shows and replays recorded runs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import cast

import click
from reactivex import Observable, operators as ops

from cuggino import run as run_stream
from cuggino.events import StageCost, WatchEvent
from cuggino.runs import (
    RecordedRun,
    Runs,
    TimedEvent,
    UnreadableRun,
    item_name,
    replay as replay_run,
    replay_timed,
    run_details_json,
    run_json,
    run_stats,
    stats_json,
    unreadable_json,
    waiting_runs,
)
from cuggino_cli.follow.journals import print_recorded
from cuggino_cli.follow.output import (
    OutputOptions,
    color_option,
    output_options,
    plain_lines,
    table_columns,
    write_json,
)
from cuggino_cli.help.manual import Sectioned, manual
from cuggino_cli.options.completing import run_ids
from cuggino_cli.options.project import project_folder
from cuggino_cli.options.recording import AT_ONCE, Speed
from cuggino_cli.screen.runs import run_fragments, run_rows, runs_fragments
from cuggino_cli.screen.stats import stats_fragments
from cuggino_cli.screen.terminal import ColorMode


class _ListedGroup(click.Group):
    """A group whose default subcommand is `list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")


@click.group(
    "runs",
    cls=_ListedGroup,
    epilog=manual(
        ("cuggino runs", "List them."),
        ("cuggino runs show 0193b2c1", "One, by a prefix of its id."),
        ("cuggino runs --stats", "Success, cost and time by loop, role, agent, model, prompts."),
        ("cuggino runs replay 0193b2c1 --speed 10 --verbose", "Replay it ten times as fast."),
        ("cuggino runs --json | jq -r .run_id", "For another program."),
        exits="0 shown, 1 its journal is broken, 2 no such run, or wrong usage.",
        see=("report", "run"),
    ),
)
def command() -> None:
    """List or compare the runs of this project, show one, or replay it.

    An ID is the id of a run, or a prefix of it. Without a subcommand the runs are listed.
    """


@command.command(
    "list",
    epilog=manual(
        ("cuggino runs list --json", "An object a line."),
        ("cuggino runs --stats", "Which loop, agent, model or prompts do best."),
    ),
)
@click.option(
    "--stats",
    is_flag=True,
    help="Show success, iterations, cost and time by loop, role, agent, model and prompts instead.",
)
@_json_option
@color_option
def list_runs(stats: bool, as_json: bool, color: ColorMode) -> int:
    """List the runs; --json prints an object a line, or one object with --stats."""
    if stats:
        return _show_stats(as_json=as_json, color=color)
    runs = _runs().all()
    if as_json:
        for run in runs:
            if isinstance(run, UnreadableRun):
                write_json(unreadable_json(run))
            else:
                write_json(run_json(run))
        return 0
    listed = list(runs)
    if not listed:
        click.echo("There are no runs yet.")
        return 0
    readable = (run for run in listed if isinstance(run, RecordedRun))
    waits = waiting_runs(project_folder(), readable)
    lines = plain_lines(color)
    lines.print(runs_fragments(run_rows(listed, waits), columns=table_columns(lines)))
    if waits:
        which = "1 run waits" if len(waits) == 1 else f"{len(waits)} runs wait"
        click.echo(f"{which} for you: `cuggino status` lists what to do")
    return 0


@command.command("show", epilog=manual(("cuggino runs show 0193b2c1 --json", "As one object.")))
@click.argument("run_id", metavar="ID", shell_complete=run_ids)
@_json_option
@color_option
def show(run_id: str, as_json: bool, color: ColorMode) -> int:
    """Show a run: totals, stages or sessions, and how to resume it."""
    run = _runs().find(run_id)
    if as_json:
        write_json(run_details_json(run))
    else:
        lines = plain_lines(color)
        lines.print(run_fragments(run, columns=table_columns(lines)))
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
    type=Speed(),
    default=AT_ONCE,
    metavar="X",
    help=f"1 is as recorded, 10 ten times as fast; {AT_ONCE}, the default, without pauses.",
)
@output_options
def replay(run_id: str, speed: float, output: OutputOptions) -> int:
    """Replay a run as it was shown."""
    run = _runs().find(run_id)
    if output.json:
        stream = cast("Observable[WatchEvent]", replay_run(run.path, speed=speed))
        run_stream(stream, output.write_json)
        return 0
    item = item_name(run.started.item)

    def of_item(timed: TimedEvent) -> TimedEvent:
        """Name the item of a cost, whose total is that of the watch."""
        is_cost = item and isinstance(timed.event, StageCost)
        return timed._replace(event=timed.event.of_item(item)) if is_cost else timed

    print_recorded(
        replay_timed(run.path, speed=speed).pipe(ops.map(of_item)),
        output,
        project=_folder_of(run),
        kind=lambda: run.started.kind,
        read=lambda: run,
    )
    return 0


def _folder_of(run: RecordedRun) -> Path:
    """Return the folder that the run worked in: the project, or that of its slot."""
    project = project_folder()
    match run.started.options:
        case {"slot": int(slot), "apart": [str(slots), str(repository)]}:
            with suppress(ValueError):
                return Path(slots, f"slot-{slot}", project.relative_to(repository))
        case _:
            pass
    return project


def _show_stats(*, as_json: bool, color: ColorMode) -> int:
    stats = run_stats(_runs().all())
    if as_json:
        write_json(stats_json(stats))
    elif not stats.runs:
        unreadable = f" ({stats.unreadable} cannot be read)" if stats.unreadable else ""
        click.echo(f"There are no finished runs yet{unreadable}.")
    else:
        lines = plain_lines(color)
        lines.print(stats_fragments(stats, columns=table_columns(lines)))
    return 0


def _runs() -> Runs:
    return Runs(project_folder())
