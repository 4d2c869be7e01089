"""The options of a watch, or of several hands or attempts, on a cluster."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import click

from cuggino.config import Config
from cuggino.errors import ConfigError
from cuggino.placement import ClusterAddress, cluster_address, load_distributed
from cuggino_cli.options.supervision import Command, with_options

INSECURE = click.option(
    "--insecure",
    is_flag=True,
    default=None,
    help="Allow an address of another machine without TLS.",
)
_OPTIONS = (
    click.option(
        "--cluster",
        metavar="ADDRESS",
        help="Work on the workers of this Dask cluster: tls://HOST:8786, local or none.",
    ),
    click.option(
        "--detach",
        is_flag=True,
        default=None,
        help="Let the workers continue when this ends; the next watch, or --resume, takes over.",
    ),
    INSECURE,
)


def cluster_options(command: Command) -> Command:
    """Add `--cluster`, `--detach` and `--insecure`; each is None unless given."""
    return with_options(command, *_OPTIONS)


def chosen_cluster(
    config: Config,
    *,
    folder: Path,
    cluster: str | None,
    detach: bool | None = None,
    insecure: bool | None = None,
) -> ClusterAddress | None:
    """Return the cluster of these options, or of the configuration; None for this machine.

    The log of Dask's client is kept off the terminal: events and errors report what matters.

    Raises:
        ConfigError: it cannot be connected to, or must not be without TLS; `--detach` without one;
            the extra `cluster` is not installed.
    """
    settings = config.cluster_settings
    if cluster is None and settings.address is None:
        for option, given in (("--detach", detach), ("--insecure", insecure)):
            if given:
                raise ConfigError(
                    f"{option} is for a cluster", hint="name it with --cluster ADDRESS"
                )
        return None
    found = cluster_address(
        settings, folder=folder, address=cluster, detach=detach, insecure=insecure
    )
    if found is not None:
        load_distributed()  # sets its own levels
        for name in ("distributed.client", "distributed.core", "distributed.comm"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return found


def cluster_of_run(
    config: Config, at_once: int, *, cluster: str | None, **given: Any
) -> ClusterAddress | None:
    """Return the cluster of a run with so many hands or attempts, as `chosen_cluster`.

    One that is configured has nothing to do for a single hand and attempt.

    Raises:
        ConfigError: the options name one nevertheless; those of `chosen_cluster`.
    """
    if at_once > 1:
        return chosen_cluster(config, cluster=cluster, **given)
    if cluster not in (None, "none") or given["detach"] or given["insecure"]:
        raise ConfigError(
            "a cluster works for several hands or attempts, and this run has one",
            hint="pass --hands N or --attempts N with it",
        )
    return None
