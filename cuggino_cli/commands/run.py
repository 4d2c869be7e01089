"""`cuggino run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cuggino_cli.follow.follower import follow
from cuggino_cli.follow.output import OutputOptions, output_options
from cuggino_cli.follow.views import CodingView
from cuggino_cli.help.manual import Sectioned, manual
from cuggino_cli.options.completing import agent_names
from cuggino_cli.options.recording import recording_options
from cuggino_cli.options.resuming import resume_option
from cuggino_cli.options.serving import serve_option
from cuggino_cli.options.supervision import (
    AGENT_HELP,
    CODING_ROLES,
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
        ('cuggino run --focus "the login page"', "Work until the login page is as .specs says."),
        (
            "cuggino run -f @todo/search.md --budget 5 --max-duration 2h",
            "The focus is in a file; at most 5 dollars and two hours.",
        ),
        (
            "cuggino run --resume --budget 10",
            "Resume the latest unfinished run with a larger budget.",
        ),
        ('cuggino run -f "the API" --json | jq -r ._tag', "Print events for another program."),
        (
            'cuggino run -f "the API" --record api.jsonl',
            "Record all sessions, to play them with --agent replay:api.jsonl.",
        ),
        exits="0 approved, 10 spec issue, 11 max iterations, 12 usage limit, 13 budget, 14 stalled,"
        " 1 failed, 2 wrong usage, 130 interrupted (143 by SIGTERM). After 1, 12, 13, 130 and 143 "
        "the run can be resumed.",
        see=("setup", "watch", "runs", "help exit-codes"),
    ),
)
@click.option("--focus", "-f", metavar="TEXT|@FILE", help="What to work on, or a file with it.")
@resume_option
@click.option("--review", metavar="FILE", help="Your own review, for the first planning agent.")
@click.option("--slow", is_flag=True, help="Review after every task.")
@click.option("--agent", "-a", metavar="NAME", help=AGENT_HELP, shell_complete=agent_names)
@gate_options
@dirty_option
@policy_options
@recording_options
@serve_option
@output_options
def command(
    focus: str | None,
    resume: str | None,
    review: str | None,
    slow: bool,
    agent: str | None,
    output: OutputOptions,
    recording: dict[str, Any],
    **policies: Any,
) -> int:
    """Plan, implement and review until the work matches the specs.

    All other settings come from .cuggino.json; see `cuggino setup`. Each run has a journal, so that
    it can be resumed after a limit or a crash.
    """
    from cuggino import Runtime, load_config, resumed_agent
    from cuggino.storage import read_text_file

    if (focus is None) == (resume is None):
        raise click.UsageError("Give either --focus (a new run) or --resume (an unfinished one).")
    if resume is not None and (review is not None or slow):
        raise click.UsageError("--review and --slow are for a new run.")
    folder = Path.cwd()
    config = with_policies(load_config(folder), policies)
    check_trust(folder)
    view = CodingView(output, bell=config.rings, journaled=config.journal, focus=focus or "")
    run_id = resume or None
    if resume is not None:
        agent = resumed_agent(folder, run_id, given=agent or None)
    runtime = Runtime.live(
        cwd=folder, config=config, agent=agent, drafts=output.verbose, **recording
    )
    warn_if_loose(config, runtime.agent, roles=CODING_ROLES)
    if resume is not None:
        return follow(lambda stop: runtime.resume(run_id, interrupt=stop), view, runtime)
    text = read_text_file(folder / review, what="--review") if review else None
    return follow(
        lambda stop: runtime.run(focus=focus or "", review=text, slow=slow, interrupt=stop),
        view,
        runtime,
    )
