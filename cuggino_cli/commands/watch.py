"""`cuggino watch`."""

from __future__ import annotations

from typing import Any

import click

from cuggino import Runtime, load_config
from cuggino.placement import watch_on_cluster
from cuggino_cli.follow.follower import follow
from cuggino_cli.follow.output import OutputOptions, output_options
from cuggino_cli.follow.views import View
from cuggino_cli.help.manual import Sectioned, manual
from cuggino_cli.options.clustering import chosen_cluster, cluster_options
from cuggino_cli.options.project import agent_from_project, from_project, project_folder
from cuggino_cli.options.recording import recording_options
from cuggino_cli.options.serving import beside_page, serve_option
from cuggino_cli.options.supervision import (
    AGENT_HELP,
    CODING_ROLES,
    Command,
    agent_names,
    approval_options,
    dirty_option,
    gate_options,
    policy_options,
    warn_if_loose,
    with_options,
    with_policies,
)
from cuggino_cli.options.trusting import check_trust

_SLOTS = (
    click.option(
        "--slots",
        type=click.IntRange(min=1, max=400),
        metavar="N",
        help="Work on up to N items at once, each in a clone of its own.",
    ),
    click.option(
        "--slot-folder",
        metavar="DIR",
        help="The folder of these clones, outside the project.",
    ),
    click.option(
        "--land-on",
        type=click.Choice(["follow", "branch", "pr"]),
        help="Fast-forward your branch to what passed the check, make a branch per item, or open "
        "a pull request per item.",
    ),
)


def _slot_options(command: Command) -> Command:
    """Add `--slots`, `--slot-folder` and `--land-on`; each is None unless given."""
    return with_options(command, *_SLOTS)


@click.command(
    "watch",
    cls=Sectioned,
    epilog=manual(
        (
            'cuggino backlog add "Login page" --text "as in .specs/login.md"',
            "Something to work on.",
        ),
        ("cuggino watch", "Work through it, then wait for more."),
        (
            "cuggino watch --wait-for-quota --budget 50",
            "Overnight: wait for usage limits, spend at most 50 dollars.",
        ),
        (
            "cuggino watch --slots 4",
            "Four items at once. .worktreeinclude names ignored files that they need.",
        ),
        (
            'cuggino watch --hours "22:00-07:00 Europe/Rome"',
            "Only at night; in between it waits.",
        ),
        ("cuggino watch --cluster tls://head:8786", "On the workers of a Dask cluster."),
        ("cuggino watch --json >> watch.jsonl", "Save the events, for another program."),
        exits="130 ended by Ctrl-C, 129 by SIGHUP, 143 by SIGTERM, 13 budget, 14 a check that "
        "passes in the project but not in a slot, 1 failed, 2 wrong usage. A watch does not end "
        "by itself.",
        see=("backlog", "slots", "cluster", "runs"),
    ),
)
@click.option("--slow", is_flag=True, help="Review after every task.")
@click.option("--agent", "-a", metavar="NAME", help=AGENT_HELP, shell_complete=agent_names)
@click.option(
    "--hours",
    multiple=True,
    metavar="HOURS",
    help="Begin items and stages within these hours only, such as 22:00-07:00.",
)
@_slot_options
@cluster_options
@gate_options
@approval_options
@dirty_option
@policy_options
@recording_options
@serve_option
@output_options
def command(
    slow: bool,
    agent: str | None,
    hours: tuple[str, ...],
    cluster: str | None,
    detach: bool | None,
    insecure: bool | None,
    serve: bool,
    output: OutputOptions,
    recording: dict[str, Any],
    **policies: Any,
) -> int:
    """Work through the backlog, item by item, until stopped.

    Items are files in .cuggino/backlog, processed in the order of their names; see `cuggino
    backlog`. With --slots several are worked on at once, and land one after the other, each after
    a green check of exactly what lands. The workers of a Dask cluster can do the work (--cluster);
    all of it lands here, see `cuggino help clusters`. With "audit" in .cuggino.json an agent looks
    for contradictions in idle time. Ctrl-C stops the agent, then the watch; a second Ctrl-C exits
    immediately.
    """
    folder = project_folder(announce=True)
    config = with_policies(load_config(folder), {**policies, "hours": list(hours) or None})
    chosen = chosen_cluster(
        config, folder=folder, cluster=cluster, detach=detach, insecure=insecure
    )
    check_trust(folder)
    agent = agent_from_project(agent, folder)
    if recording["record"] is not None:
        recording["record"] = from_project(recording["record"], folder)
    runtime = Runtime.live(
        cwd=folder, config=config, agent=agent, drafts=output.verbose, **recording
    )
    roles = (*CODING_ROLES, "audit") if config.audit else CODING_ROLES
    warn_if_loose(config, runtime.agent, roles=roles)
    view = View(output=output, bell=config.rings, journaled=config.journal, kind="watch")
    if chosen is None:
        return beside_page(
            lambda: follow(lambda stop: runtime.watch(slow=slow, interrupt=stop), view, runtime),
            folder,
            serve=serve,
        )
    slots = config.slots if config.slots > 1 else None
    return beside_page(
        lambda: follow(
            lambda stop: watch_on_cluster(runtime, chosen, slots=slots, slow=slow, interrupt=stop),
            view,
            runtime,
        ),
        folder,
        serve=serve,
    )
