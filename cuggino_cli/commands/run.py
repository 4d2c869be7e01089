"""`cuggino run`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
from reactivex import Observable

from cuggino import Runtime, load_config, resumed_agent
from cuggino.placement import run_on_cluster
from cuggino.storage import Workspace, find_run, read_text_file
from cuggino_cli.follow.follower import follow
from cuggino_cli.follow.output import OutputOptions, output_options
from cuggino_cli.follow.views import View
from cuggino_cli.help.manual import Sectioned, manual
from cuggino_cli.options.clustering import cluster_of_run, cluster_options
from cuggino_cli.options.naming import one_line
from cuggino_cli.options.project import (
    agent_from_project,
    focus_from_project,
    from_project,
    project_folder,
)
from cuggino_cli.options.recording import recording_options
from cuggino_cli.options.resuming import resume_option
from cuggino_cli.options.serving import beside_page, serve_option
from cuggino_cli.options.supervision import (
    AGENT_HELP,
    CODING_ROLES,
    agent_names,
    approval_options,
    dirty_option,
    gate_options,
    policy_options,
    warn_if_loose,
    with_policies,
)
from cuggino_cli.options.trusting import check_trust


@click.command(
    "run",
    cls=Sectioned,
    epilog=manual(
        ('cuggino run "the login page"', "Work until the login page is as .specs says."),
        (
            "cuggino run @todo/search.md --budget 5 --max-duration 2h",
            "What to work on is in a file; at most 5 dollars and two hours.",
        ),
        ("gh issue view 12 | cuggino run -", "From another program."),
        (
            "cuggino run --resume --budget 10",
            "Resume the latest unfinished run with a larger budget.",
        ),
        (
            'cuggino run "the API" --hands 4 --cluster tls://head:8786',
            "Several tasks at once, on the workers of a Dask cluster.",
        ),
        ('cuggino run "the API" --json | jq -r ._tag', "Print events for another program."),
        (
            'cuggino run "the API" --record api.jsonl',
            "Record all sessions, to play them with --agent replay:api.jsonl.",
        ),
        exits="0 approved, 10 spec issue, 11 max iterations, 12 usage limit, 13 budget, 14 stalled,"
        " 1 failed, 2 wrong usage, 130 interrupted (129 by SIGHUP, 143 by SIGTERM). After 1, 12, "
        "13, 129, 130 and 143 the run can be resumed.",
        see=("setup", "watch", "runs", "help exit-codes"),
    ),
)
@click.argument("text", metavar="[TEXT]", nargs=-1)
@click.option(
    "--focus", "-f", metavar="TEXT|@FILE|-", help="What to work on: the same as the argument."
)
@resume_option
@click.option("--review", metavar="FILE", help="Your own review, for the first planning agent.")
@click.option("--slow", is_flag=True, help="Review after every task.")
@click.option(
    "--hands",
    type=click.IntRange(1, 16),
    metavar="N",
    help="Do up to N tasks of a plan at once, each in its own clone (see help hands).",
)
@click.option("--agent", "-a", metavar="NAME", help=AGENT_HELP, shell_complete=agent_names)
@cluster_options
@gate_options
@approval_options
@dirty_option
@policy_options
@recording_options
@serve_option
@output_options
def command(
    text: tuple[str, ...],
    focus: str | None,
    resume: str | None,
    review: str | None,
    slow: bool,
    agent: str | None,
    cluster: str | None,
    detach: bool | None,
    insecure: bool | None,
    serve: bool,
    output: OutputOptions,
    recording: dict[str, Any],
    **policies: Any,
) -> int:
    """Plan, implement and review until the work matches the specs.

    TEXT is what to work on, as for a colleague; `@FILE` is a file with it, `-` standard input. All
    other settings come from .cuggino.json; see `cuggino setup`. Each run has a journal, so that it
    can be resumed after a limit or a crash.
    """
    focus = _focus(text, focus)
    if focus is not None and resume is not None:
        raise click.UsageError("A resumed run has its text: leave out the text, or --resume.")
    if focus is None and resume is None:
        example = 'say what to work on, as in `cuggino run "the login page"`'
        raise click.UsageError(f"For a new run, {example}; to finish one, pass --resume.")
    if resume is not None and (review is not None or slow or policies["hands"]):
        raise click.UsageError("--review, --slow and --hands are for a new run.")
    if slow and (policies["hands"] or 1) > 1:
        raise click.UsageError("--slow reviews after every task, so it needs a single hand.")
    folder = project_folder(announce=True)
    config = with_policies(load_config(folder), policies)
    check_trust(folder)
    agent = agent_from_project(agent, folder)
    if focus is not None:
        focus = focus_from_project(focus, folder)
    if recording["record"] is not None:
        recording["record"] = from_project(recording["record"], folder)
    view = View(output=output, bell=config.rings, journaled=config.journal, focus=focus or "")
    run_id = resume or None
    at_once = max(config.hands, len(config.choices))
    if resume is not None:
        agent = resumed_agent(folder, run_id, given=agent or None)
        started = find_run(Workspace(folder).journal, run_id).started
        hands: Any = started.options.get("hands", 1)
        at_once = max(hands, started.attempts)
    chosen = cluster_of_run(
        config, at_once, folder=folder, cluster=cluster, detach=detach, insecure=insecure
    )
    runtime = Runtime.live(
        cwd=folder, config=config, agent=agent, drafts=output.verbose, **recording
    )
    warn_if_loose(config, runtime.agent, roles=CODING_ROLES)
    opinion = read_text_file(Path.cwd() / review, what="--review") if review else None

    begin: Callable[..., Observable[Any]] = partial(runtime.resume, run_id)
    if resume is None:
        begin = partial(runtime.run, focus=focus or "", review=opinion, slow=slow)

    def start(stop: Observable[object]) -> Observable[Any]:
        if chosen is None:
            return begin(interrupt=stop)
        return run_on_cluster(runtime, chosen, begin, interrupt=stop)

    return beside_page(lambda: follow(start, view, runtime), folder, serve=serve)


def _focus(text: tuple[str, ...], focus: str | None) -> str | None:
    """Return what to work on, wherever it is given; None if it is not."""
    if len(text) > 1:
        whole = shlex.join([" ".join(text)])
        raise click.UsageError(f"Put the text in quotes: cuggino run {one_line(whole)}")
    if text and focus is not None:
        raise click.UsageError("Give the text once: as the argument or as --focus.")
    given = text[0] if text else focus
    if given != "-":
        return given
    piped = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not piped.strip():
        raise click.UsageError("Standard input is empty: write what to work on.")
    return f"\n{piped}" if piped.startswith("@") else piped  # no file: others may have written it
