"""The table of checks, in the order of `cuggino doctor`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import reactivex
from reactivex import Observable

from cuggino.config import CONFIG_FILE, config_path, load_config
from cuggino.doctor import loops, project, repository, sandbox
from cuggino.doctor.agent_checks import budget, check_agents
from cuggino.doctor.result import Check, CheckResult, Place, ok, problem
from cuggino.errors import ConfigError

CHECKS = (
    Check("sandbox", sandbox.roles),
    Check("sandboxHide", sandbox.hidden),
    Check("logins", sandbox.logins),
    Check("sandbox", sandbox.in_views),
    Check("workspace", project.workspace, without_config=True),
    Check("git", repository.repository, without_config=True),
    Check("push", repository.pushing),
    Check("specs", project.specifications),
    Check("backlog", project.backlog),
    Check("setup command", project.setup_command),
    Check("check command", project.check_command),
    Check("slots", loops.slots),
    Check("forge", project.forges),
    Check("notifications", project.notifications),
    Check("chat", project.chats),
    Check("budget", budget),
    Check("sleep", project.staying_awake),
    Check("report and live page", project.page_packages),
    Check("cluster", project.cluster_packages),
    Check("deliverables", loops.deliverables, without_config=True),
    Check("jobs", loops.jobs, without_config=True),
    Check("session files", loops.session_files, without_config=True),
)
"""The checks that follow those of configuration and agents."""


def doctor(
    project: str | os.PathLike[str] = ".",
    *,
    agent: str | None = None,
    env: Mapping[str, str] | None = None,
    trusted: bool = False,
) -> Observable[CheckResult]:
    """Emit the result of every check of the project.

    An unusable `.cuggino.json` is a problem among the results, not an error; checks that need the
    configuration are skipped then. Nothing that lies in the project is started, nor what the
    settings of its repository name.

    Args:
        project: the folder to check.
        agent: the agent to check instead of the configured ones.
        env: the environment that agents would get; default this process's.
        trusted: whether the user has accepted the commands of the project (`cuggino.trust`), so
            that modules named in its configuration are imported.
    """
    place = Place(
        folder=Path(project).resolve(),
        env=os.environ if env is None else env,
        uid=os.getuid(),
        agent=agent,
        trusted=trusted,
    )
    return reactivex.defer(lambda _: reactivex.from_iterable(diagnose(place)))


def diagnose(place: Place) -> Iterator[CheckResult]:
    """Yield every result as soon as its check is done."""
    found, place = configuration(place)
    yield found
    yield from check_agents(place)
    for check in CHECKS:
        yield from check.results(place)


def configuration(place: Place) -> tuple[CheckResult, Place]:
    """Check `.cuggino.json`, and return the place with its settings."""
    try:
        config = load_config(place.folder)
    except ConfigError as error:
        return problem(f"configuration: {error.message}", error.hint), replace(
            place, is_configured=False
        )
    is_there = config_path(place.folder).exists()
    source = f"{CONFIG_FILE} is valid" if is_there else f"defaults, no {CONFIG_FILE}"
    return ok(f"configuration: {source}"), replace(place, config=config)
