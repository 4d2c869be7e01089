"""`cuggino cluster`: a cluster on this machine, and whether the workers of one can work."""

from __future__ import annotations

import click

from cuggino import load_config, run
from cuggino.errors import ConfigError
from cuggino.placement import (
    LocalCluster,
    MachineCheck,
    amounts_of,
    check_cluster,
    local_cluster,
)
from cuggino_cli.commands.doctor import result_fragments
from cuggino_cli.follow.output import plain_lines, write_json
from cuggino_cli.help.manual import manual
from cuggino_cli.options.clustering import INSECURE, chosen_cluster
from cuggino_cli.options.project import project_folder
from cuggino_cli.options.supervision import agent_names
from cuggino_cli.screen.fragments import Fragment


@click.group(
    "cluster",
    epilog=manual(
        ("cuggino cluster up", "A cluster on this machine, for trying one."),
        ("cuggino cluster check tls://head:8786", "Whether its workers can work."),
        exits="0 done, 1 a worker cannot work, 2 wrong usage.",
        see=("watch", "help clusters"),
    ),
)
def command() -> None:
    """Start a cluster for trying one, and check the workers of one.

    A watch with --cluster places its items on the workers of a Dask cluster (pip install
    'cuggino[cluster]'). `cuggino help clusters` has recipes for SSH hosts, Slurm, PBS and
    Kubernetes.
    """


@command.command(
    "up",
    epilog=manual(
        ("cuggino cluster up", "Two workers; Ctrl-C ends them."),
        ("cuggino cluster up --workers 4 --resources claude=1", "One item per worker with claude."),
        exits="130 ended by Ctrl-C, 143 by SIGTERM, 1 failed, 2 wrong usage.",
    ),
)
@click.option(
    "--workers",
    type=click.IntRange(min=1, max=64),
    default=2,
    show_default=True,
    metavar="N",
    help="How many items are worked on at once.",
)
@click.option(
    "--resources",
    default="",
    metavar="LIST",
    help="What each worker offers, such as claude=1,gpu=1.",
)
def up(workers: int, resources: str) -> int:
    """Run a scheduler and workers on this machine until Ctrl-C.

    They listen on loopback, with TLS. The certificate lies in your state folder
    (~/.local/state/cuggino/cluster) while the cluster runs, readable by you alone, and is new each
    time. Nothing is left when it ends.
    """
    words = [word for word in resources.split(",") if word.strip()]
    offered = amounts_of(words, where="--resources")
    run(local_cluster(workers=workers, resources=offered), _show)
    return 1


def _show(cluster: LocalCluster) -> None:
    count = f"{cluster.workers} worker{'s' * (cluster.workers != 1)}"
    click.echo(f"A cluster with {count} runs at {cluster.address}")
    if cluster.dashboard:
        click.echo(f"Dashboard: {cluster.dashboard}")
    click.echo("In another terminal: cuggino watch --cluster local")
    click.echo("Ctrl-C ends it.", err=True)


@command.command(
    "check",
    epilog=manual(
        ("cuggino cluster check local", "That of `cuggino cluster up`."),
        ("cuggino cluster check", "The configured one."),
        (
            "cuggino cluster check --json | jq -r 'select(.works | not) | .name'",
            "The workers that cannot work.",
        ),
        exits="0 all can work, 1 the scheduler or a worker cannot, 2 wrong usage.",
        see=("doctor", "help clusters"),
    ),
)
@click.argument("address", required=False)
@click.option(
    "--agent",
    "-a",
    metavar="NAME",
    help="Check for this agent, not the configured one.",
    shell_complete=agent_names,
)
@INSECURE
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line.")
def check(address: str | None, agent: str | None, insecure: bool | None, as_json: bool) -> int:
    """Check whether the scheduler and each worker can work on items of this project.

    ADDRESS is that of the scheduler, such as tls://HOST:8786, or local; the default is "cluster" in
    .cuggino.json, which also names the TLS files. For each worker: its version of cuggino, the
    agents and their logins, whether git reaches the shared remote, the sandbox, free disk space and
    resources. Nothing is placed, and nothing pushed: a push is only tried.
    """
    folder = project_folder()
    config = load_config(folder)
    cluster = chosen_cluster(config, folder=folder, cluster=address, insecure=insecure)
    if cluster is None:
        raise ConfigError(
            "no cluster is configured", hint="name one: cuggino cluster check tls://HOST:8786"
        )
    works = True

    def show(machine: MachineCheck) -> None:
        nonlocal works
        works = works and machine.works
        if as_json:
            write_json(_as_json(machine))
        else:
            _print(machine)

    run(check_cluster(cluster, folder=folder, config=config, agent=agent), show)
    return 0 if works else 1


def _print(machine: MachineCheck) -> None:
    lines = plain_lines()
    lines.print([Fragment("plain", f"{machine.name}  {machine.address}")])
    for result in machine.results:
        lines.print(result_fragments(result))
    lines.print([])


def _as_json(machine: MachineCheck) -> dict[str, object]:
    return {
        "name": machine.name,
        "address": machine.address,
        "works": machine.works,
        "resources": dict(machine.resources),
        "results": [
            {"status": one.status, "what": one.what, "hint": one.hint} for one in machine.results
        ],
    }
